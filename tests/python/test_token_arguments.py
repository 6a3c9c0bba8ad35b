"""Wrong arguments: which error they raise, and what its message says."""

from __future__ import annotations

import os

import lowtide as lt
import numpy as np
import pytest
from token_files import BLOCK, write_nanogpt


@pytest.fixture
def tokens(tmp_path):
    data = np.random.default_rng(0).integers(0, 50257, 2000)
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", data), memory="2MiB") as t:
        yield t


@pytest.mark.parametrize("block_size", [2000, 10**6, 2**62])
def test_a_block_larger_than_the_file(tokens, block_size):
    for ask in (
        lambda: tokens.windows([0], block_size),
        lambda: tokens.batch(1, block_size, seed=0),
        lambda: lt.Loader(tokens, 1, block_size),
    ):
        with pytest.raises((ValueError, IndexError), match=r"block_size.*2000"):
            ask()


@pytest.mark.parametrize("name", ["batch_size", "block_size"])
def test_invalid_sizes_are_refused(tokens, name):
    for value, error, says in (
        (0, ValueError, "at least 1, not 0"),
        (-1, ValueError, "at least 1, not -1"),
        (2**63, ValueError, "at most"),
        (1.0, TypeError, "integer, not float"),
        ("1", TypeError, "integer, not str"),
        (True, TypeError, "integer, not bool"),
        (None, TypeError, "integer, not NoneType"),
    ):
        asked = {"batch_size": 2, "block_size": BLOCK, name: value}
        for ask in (
            lambda a=asked: lt.Loader(tokens, **a),
            lambda a=asked: tokens.batch(seed=0, **a),
        ):
            with pytest.raises(error, match=f"{name} must be .*{says}"):
                ask()
    if name == "block_size":
        with pytest.raises(ValueError, match="block_size must be at least 1"):
            tokens.windows([0], 0)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(tokens, seed):
    with pytest.raises(ValueError, match="seed must be at"):
        lt.Loader(tokens, 2, BLOCK, seed=seed)
    with pytest.raises(ValueError, match="seed must be at"):
        tokens.batch(2, BLOCK, seed=seed)


@pytest.mark.parametrize("seed", [1.0, "1", None, True])
def test_seeds_of_another_type(tokens, seed):
    with pytest.raises(TypeError, match="seed must be an integer"):
        lt.Loader(tokens, 2, BLOCK, seed=seed)
    with pytest.raises(TypeError, match="seed must be an integer"):
        tokens.batch(2, BLOCK, seed=seed)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"rank": 2, "world_size": 2}, ValueError, r"rank must be below world_size \(2\), not 2"),
        ({"rank": -1}, ValueError, "rank must be at least 0"),
        ({"world_size": 0}, ValueError, "world_size must be at least 1"),
        ({"epochs": 0}, ValueError, "epochs must be at least 1"),
        ({"epochs": 1.5}, TypeError, "epochs must be an integer"),
        ({"order": "random "}, ValueError, "order"),
        ({"order": np.arange(5)}, TypeError, "order must be a str"),
        ({"documents": "apart"}, ValueError, "documents must be 'cross' or 'separate'"),
        ({"documents": "separate"}, ValueError, "; give eot, the token between documents"),
        ({"documents": None}, TypeError, "documents must be a str"),
        ({"drop_last": 1}, TypeError, "drop_last must be a bool"),
        ({"drop_last": False, "world_size": 2}, ValueError, "drop_last"),
        ({"prefetch": 0}, ValueError, "prefetch"),
        ({"prefetch": "2"}, TypeError, "prefetch"),
        ({"dtype": "float32"}, ValueError, "dtype of tokens must be one of uint8.*not float32"),
        ({"dtype": "nonsense"}, TypeError, "nonsense"),
        ({"dtype": ">i8"}, ValueError, ">i8"),
        ({"dtype": bool}, ValueError, "not bool"),
        ({"memory": "1 parsec"}, ValueError, "parsec"),
        ({"memory": -5}, ValueError, "memory"),
        ({"memory": 1000}, ValueError, "memory|budget|bytes"),
        ({"batch_size": 126}, ValueError, "126 windows of block_size 16, but there are 124"),
        ({"batch_size": 63, "world_size": 2}, ValueError, "2 ranks needs 126 windows"),
    ],
    ids=repr,
)
def test_arguments_of_a_loader(tokens, asked, error, says):
    with pytest.raises(error, match=says):
        lt.Loader(tokens, **{"batch_size": 2, "block_size": BLOCK, **asked})


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"dtype": "float32"}, lt.FormatError, "integer"),
        ({"dtype": "O"}, ValueError, "object|Object|'O'"),
        ({"dtype": ">u2"}, lt.FormatError, "little-endian"),
        ({"dtype": "nonsense"}, TypeError, "nonsense"),
        ({"format": "nonsense"}, ValueError, "megatron.*nanogpt"),
        ({"format": 5}, TypeError, "format must be a str"),
        ({"format": "megatron"}, ValueError, "megatron|Megatron"),
        ({"format": "llmc"}, ValueError, "llm"),
        ({"eot": -1}, ValueError, "eot must be at least 0"),
        ({"eot": 1.0}, TypeError, "eot must be an integer"),
        ({"eot": True}, TypeError, "eot must be an integer"),
        ({"memory": 0}, ValueError, "memory"),
        ({"memory": "lots"}, ValueError, "lots"),
        ({"engine": "steam"}, ValueError, "steam"),
        ({"cache": "burn"}, ValueError, "burn"),
        ({"engine": None}, TypeError, "engine must be a str"),
    ],
    ids=repr,
)
def test_arguments_of_open(tokens, asked, error, says):
    with pytest.raises(error, match=says):
        lt.tokens(tokens.paths[0], **asked)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (None, TypeError),
        (5, TypeError),
        ([], ValueError),
        ("a\0b", ValueError),
        ([None], TypeError),
    ],
)
def test_invalid_paths_are_refused(path, error):
    with pytest.raises(error):
        lt.tokens(path)


def test_missing_paths_are_refused(tmp_path):
    for path in (tmp_path / "no.bin", tmp_path / "no_*.bin", "", [str(tmp_path / "no.bin")]):
        with pytest.raises(FileNotFoundError):
            lt.tokens(path)
    with pytest.raises(lt.FormatError, match="no token files"):
        lt.tokens(tmp_path)
    os.mkfifo(tmp_path / "pipe.bin")
    with pytest.raises((OSError, ValueError)):
        lt.tokens(tmp_path / "pipe.bin")


@pytest.mark.parametrize("rows", [2**40, 2**58, 2**62])
def test_a_batch_that_no_memory_holds_is_named(train, rows):
    with (
        lt.tokens(train) as t,
        pytest.raises(MemoryError, match=f"{rows} windows of 8 tokens need"),
    ):
        t.batch(rows, 8, seed=0)


def test_a_call_that_failed_leaves_nothing_half_made(train):
    with lt.tokens(train) as t:
        for _ in range(2):
            advice = "exceed the address space; use a smaller batch_size"
            with pytest.raises(ValueError, match=advice):
                t._core.batch(2**58, 8, 0, "int64")
            with pytest.raises(MemoryError):
                t._core.batch(2**45, 8, 0, "int64")
        assert t.batch(3, 8, seed=0)[0].shape == (3, 8)
