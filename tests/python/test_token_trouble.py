"""Token files and arguments that are wrong: which error, and what its text says."""

from __future__ import annotations

import gc
import json
import os
import pickle
import struct
import time

import lowtide as lt
import numpy as np
import pytest
from conftest import open_files, run, status_kib, threads
from token_files import write_llmc, write_megatron, write_nanogpt, write_shards

BLOCK = 16


@pytest.fixture
def tokens(tmp_path):
    data = np.random.default_rng(0).integers(0, 50257, 2000)
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", data), memory="2MiB") as t:
        yield t


def test_an_empty_file(tmp_path):
    (tmp_path / "t.bin").touch()
    with pytest.raises(lt.FormatError, match=r"t\.bin: expected data, found an empty file"):
        lt.tokens(tmp_path / "t.bin")


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK])
def test_fewer_tokens_than_a_window(tmp_path, count):
    path = write_nanogpt(tmp_path / "t.bin", np.arange(count) + 300)
    with lt.tokens(path) as t:
        np.testing.assert_array_equal(t[:], np.arange(count) + 300)
        says = f"block_size.*{BLOCK}.*{count}"
        for ask in (
            lambda: t.windows([0], BLOCK),
            lambda: t.batch(1, BLOCK, seed=0),
            lambda: lt.Loader(t, 1, BLOCK),
            lambda: lt.Loader(t, 1, BLOCK, order="random"),
        ):
            with pytest.raises((ValueError, IndexError), match=says):
                ask()


def test_exactly_one_window(tmp_path):
    data = np.arange(BLOCK + 1) + 300
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", data)) as t:
        x, y = t.windows([0], BLOCK)
        assert (x[0].tolist(), y[0].tolist()) == (data[:-1].tolist(), data[1:].tolist())
        assert t.batch(2, BLOCK, seed=1)[0].tolist() == [data[:-1].tolist()] * 2
        for order in ("shuffle", "sequential", "random"):
            with lt.Loader(t, 1, BLOCK, order=order, epochs=3) as loader:
                assert len(loader) == 1
                for epoch in range(3):
                    (batch,) = loader
                    assert (batch.epoch, batch.step) == (epoch, 0)
                    assert batch.y[0].tolist() == data[1:].tolist()
        with pytest.raises(ValueError, match=r"2 windows of block_size 16, but there are 1"):
            lt.Loader(t, 2, BLOCK)


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
def test_sizes_that_are_none(tokens, name):
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
def test_seeds_outside(tokens, seed):
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
        ({"documents": "separate"}, ValueError, "eot="),
        ({"documents": None}, TypeError, "documents must be a str"),
        ({"drop_last": 1}, TypeError, "drop_last must be a bool"),
        ({"drop_last": False, "world_size": 2}, ValueError, "drop_last"),
        ({"prefetch": 0}, ValueError, "prefetch"),
        ({"prefetch": "2"}, TypeError, "prefetch"),
        ({"dtype": "float32"}, ValueError, "dtype of tokens must be one of int64.*not float32"),
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
def test_paths_that_are_none(path, error):
    with pytest.raises(error):
        lt.tokens(path)


def test_paths_that_are_not_there(tmp_path):
    for path in (tmp_path / "no.bin", tmp_path / "no_*.bin", "", [str(tmp_path / "no.bin")]):
        with pytest.raises(FileNotFoundError):
            lt.tokens(path)
    with pytest.raises(lt.FormatError, match="no token files"):
        lt.tokens(tmp_path)
    os.mkfifo(tmp_path / "pipe.bin")
    with pytest.raises((OSError, ValueError)):
        lt.tokens(tmp_path / "pipe.bin")


def test_uint32_that_is_called_nothing_is_caught(tmp_path):
    path = write_nanogpt(tmp_path / "t.bin", np.arange(1, 5000), "<u4")
    with pytest.raises(lt.FormatError, match=r"dtype=.uint32"):
        lt.tokens(path)
    with lt.tokens(path, dtype="uint32") as t:
        assert t[4998] == 4999
    with lt.tokens(path, dtype="uint16") as t:
        assert len(t) == 9998


def test_a_size_that_is_no_multiple(tmp_path):
    (tmp_path / "t.bin").write_bytes(b"\1" * 101)
    with pytest.raises(lt.FormatError, match=r"multiple of 2.*101"):
        lt.tokens(tmp_path / "t.bin")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"version": 2}, "expected version 1"),
        ({"magic": 20240801}, "version 7"),
        ({"magic": 20240522}, "evaluation file"),
        ({"count": 99}, "99"),
        ({"count": 101}, "101"),
        ({"count": -1}, "-1"),
    ],
    ids=repr,
)
def test_llmc_headers_that_lie(tmp_path, asked, says):
    path = write_llmc(tmp_path / "t.bin", np.arange(100) + 300, **asked)
    with pytest.raises(lt.FormatError, match=says):
        lt.tokens(path)


def test_an_unknown_magic_under_a_given_format(tmp_path):
    path = write_llmc(tmp_path / "t.bin", np.arange(100) + 300, magic=12345)
    with pytest.raises(lt.FormatError, match=r"magic 20240520 or 20240801"):
        lt.tokens(path, format="llmc")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"version": 2}, "version 1, found 2"),
        ({"code": 6}, "float|6"),
        ({"code": 7}, "float|7"),
        ({"code": 99}, "99"),
    ],
    ids=repr,
)
def test_megatron_headers_that_lie(tmp_path, asked, says):
    path = write_megatron(tmp_path / "d", [[1, 2, 3]], **asked)
    with pytest.raises(lt.FormatError, match=says):
        lt.tokens(path)


def test_megatron_pairs_that_do_not_fit(tmp_path):
    path = write_megatron(tmp_path / "d", [[1, 2, 3], [4, 5]])
    whole = (tmp_path / "d.bin").read_bytes()
    (tmp_path / "d.bin").write_bytes(whole[:-2])
    with pytest.raises(lt.FormatError, match=r"d\.(idx|bin).*sequence 1"):
        lt.tokens(path)
    (tmp_path / "d.bin").unlink()
    with pytest.raises((lt.FormatError, OSError), match=r"d\.bin"):
        lt.tokens(tmp_path / "d.idx")
    (tmp_path / "d.bin").write_bytes(whole)
    index = (tmp_path / "d.idx").read_bytes()
    (tmp_path / "d.idx").write_bytes(index[:-1])
    with pytest.raises(lt.FormatError, match=r"d\.idx"):
        lt.tokens(path)
    (tmp_path / "d.idx").write_bytes(index[:18] + struct.pack("<Q", 2**60) + index[26:])
    with pytest.raises(lt.FormatError, match=r"d\.idx"):
        lt.tokens(path)


def test_shards_of_different_types(tmp_path):
    paths = [
        write_llmc(tmp_path / "a.bin", np.arange(50)),
        write_llmc(tmp_path / "b.bin", np.arange(50), 20240801, 7, dtype="<u4"),
    ]
    with pytest.raises(lt.FormatError, match=r"b\.bin"):
        lt.tokens(paths)
    plain = write_nanogpt(tmp_path / "c.bin", np.arange(50) + 300)
    with pytest.raises(lt.FormatError, match=r"c\.bin"):
        lt.tokens([paths[0], plain])


@pytest.mark.parametrize("place", [0, 700, 2001])
def test_a_token_that_does_not_fit(tmp_path, place):
    data = np.arange(2002) % 100
    data[place] = 70_000
    path = write_nanogpt(tmp_path / "t.bin", data, "<u4")
    says = f"t.bin: token 70000 at place {place} of the stream does not fit dtype uint16"
    with lt.tokens(path, dtype="uint32") as t:
        start = min(place, 2002 - BLOCK - 1)
        with pytest.raises(ValueError, match=says):
            t.windows([5, start], BLOCK, dtype="uint16")
        assert 70_000 in np.stack(t.windows([5, start], BLOCK, dtype="int32"))
        asked = {"batch_size": 4, "block_size": 3, "drop_last": False}
        with lt.Loader(t, dtype="uint16", order="sequential", **asked) as loader:
            with pytest.raises(ValueError, match=says):
                list(loader)
        with lt.Loader(t, dtype="uint32", **asked) as loader:
            assert len(list(loader)) == len(loader)


def test_a_negative_token_does_not_become_a_huge_one(tmp_path):
    path = write_megatron(tmp_path / "d", [np.arange(40) - 1], dtype="i4")
    with lt.tokens(path) as t:
        with pytest.raises(ValueError, match="token -1 at place 0"):
            t.windows([0], BLOCK, dtype="uint64")
        assert t.windows([0], BLOCK)[0][0, 0] == -1


def test_a_file_truncated_under_the_loader(tmp_path):
    """In mid-epoch: an error that names the file, not a crash and not other bytes."""
    path = tmp_path / "t.bin"
    data = np.random.default_rng(0).integers(0, 50257, 1 << 20)
    write_nanogpt(path, data)
    with lt.tokens(path, memory="1MiB", engine="pread") as t:
        with lt.Loader(t, 2, BLOCK, seed=1) as loader:
            loader.next()
            os.truncate(path, 1 << 16)
            with pytest.raises((lt.FormatError, OSError), match=r"t\.bin"):
                for batch in loader:
                    starts = batch.samples * BLOCK
                    assert batch.x[0].tolist() == data[starts[0] : starts[0] + BLOCK].tolist()


def test_a_shard_truncated_under_windows(tmp_path):
    paths = write_shards(tmp_path, np.arange(3000) + 300, [1000, 1000])
    with lt.tokens(paths, memory="1MiB", engine="pread") as t:
        t.windows([1500], BLOCK)
        os.truncate(paths[1], 100)
        with pytest.raises((lt.FormatError, OSError), match="shard_000001"):
            t.windows([100, 1500], BLOCK)
        assert t.windows([100], BLOCK)[0][0, 0] == 400


def test_an_index_that_names_a_path_outside(tmp_path):
    (tmp_path / "data").mkdir()
    write_nanogpt(tmp_path / "secret.bin", np.arange(100))
    index = {"version": 2, "shards": [{"raw_data": {"basename": "../secret.bin"}}]}
    (tmp_path / "data" / "index.json").write_text(json.dumps(index))
    with pytest.raises(lt.FormatError, match=r"index\.json"):
        lt.tokens(tmp_path / "data")


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def test_a_pickle_is_never_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    path = write_nanogpt(tmp_path / "data" / "train.bin", np.arange(100) + 300)
    (tmp_path / "data" / "meta.pkl").write_bytes(pickle.dumps(Bomb()))
    for named in (path, tmp_path / "data"):
        with lt.tokens(named) as t:
            assert len(t) == 100
    np.save(tmp_path / "o.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises((lt.FormatError, ValueError), match=r"o\.npy"):
        lt.tokens(tmp_path / "o.npy")
    assert not (tmp_path / "unpickled").exists()


def test_an_npy_of_two_axes_is_refused(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((4, 5), np.uint16))
    with pytest.raises(lt.FormatError, match="one axis"):
        lt.tokens(tmp_path / "m.npy")


def test_an_engine_that_cannot_hold_the_file(tmp_path):
    path = write_nanogpt(tmp_path / "t.bin", np.arange(1 << 20) % 50_000)
    with pytest.raises(ValueError, match="memory"):
        lt.tokens(path, engine="memory", memory="1MiB").windows([0], BLOCK)


def test_closed_tokens(tokens):
    tokens.close()
    tokens.close()
    for ask in (
        lambda: tokens[0],
        lambda: tokens[:5],
        lambda: tokens.windows([0], BLOCK),
        lambda: tokens.batch(1, BLOCK, seed=0),
        lambda: lt.Loader(tokens, 1, BLOCK),
    ):
        with pytest.raises(ValueError, match="closed"):
            ask()
    assert len(tokens) == 2000


def use(path, how):
    t = lt.tokens(path, memory="1MiB")
    x, _ = t.windows([5, 7], BLOCK)
    loader = lt.Loader(t, 4, BLOCK)
    batch = loader.next()
    assert batch.x.shape == (4, BLOCK) and x.shape == (2, BLOCK)
    if how % 3 == 0:
        loader.close()
        t.close()
    elif how % 3 == 1:
        t.close()


def test_three_hundred_cycles_leave_nothing_behind(tokens):
    path = tokens.paths[0]
    for how in range(30):
        use(path, how)
    gc.collect()
    files, tasks, anon_kib = open_files(), threads(), status_kib("RssAnon")
    for how in range(300):
        use(path, how)
    gc.collect()
    assert open_files() <= files
    due = time.monotonic() + 10  # the kernel lists a thread a moment longer than a join takes
    while threads() > tasks and time.monotonic() < due:
        time.sleep(0.01)
    assert threads() <= tasks
    assert status_kib("RssAnon") - anon_kib < 8 << 10


def test_loaders_that_fail_leave_nothing_behind(tokens):
    files, tasks = open_files(), threads()
    for _ in range(100):
        with pytest.raises(ValueError):
            lt.Loader(tokens, 1000, BLOCK)
        with pytest.raises(ValueError):
            lt.Loader(tokens, 2, BLOCK, memory=1000)
    assert open_files() <= files
    assert threads() <= tasks


@pytest.mark.parametrize("ending", ["pass", "raise SystemExit(0)", "del t", "del loader, first"])
def test_the_interpreter_may_end_while_windows_are_read_ahead(tokens, ending):
    code = f"""
import sys
import lowtide as lt
t = lt.tokens(sys.argv[1], memory="4MiB")
loader = lt.Loader(t, 2, 16)
first = loader.next()
cycle = [loader]; cycle.append(cycle)
sys.modules["kept"] = cycle
{ending}
"""
    found = run(code, tokens.paths[0])
    assert (found.returncode, found.stderr) == (0, "")


def test_the_interpreter_may_end_while_a_thread_trains(tokens):
    code = """
import sys, threading
import lowtide as lt
t = lt.tokens(sys.argv[1], memory="4MiB")
loader = lt.Loader(t, 2, 16)
def work():
    while True:
        loader.next()
threading.Thread(target=work, daemon=True).start()
loader.next()
"""
    found = run(code, tokens.paths[0])
    assert found.returncode == 0, found.stderr


def test_lowtide_torch_is_not_loaded_before_it_is_touched():
    code = """
import sys
import lowtide as lt
assert "torch" not in sys.modules and "lowtide.torch" not in sys.modules
try:
    lt.nothing
except AttributeError as error:
    assert "nothing" in str(error)
try:
    assert lt.torch.__name__ == "lowtide.torch"
except ModuleNotFoundError as error:
    assert error.name == "torch", error
"""
    found = run(code)
    assert found.returncode == 0, found.stderr
