"""A Dataset by path, and what `dir(lt.torch)` shows."""

from __future__ import annotations

import pickle

import lowtide as lt
import numpy as np
import pytest
from torch_files import BLOCK, TOKENS, WINDOWS, write_tokens

torch = pytest.importorskip("torch")


def test_a_dataset_opens_a_path_as_lt_tokens_does(tmp_path):
    path, _ = write_tokens(tmp_path)
    with lt.tokens(path) as t:
        x, y = lt.torch.Dataset(t, BLOCK)[5]
    glob = str(tmp_path / "tr*.bin")
    for where in (path, str(path), bytes(path), [path], (str(path),), glob, tmp_path):
        dataset = lt.torch.Dataset(where, BLOCK)
        assert len(dataset) == WINDOWS
        assert torch.equal(dataset[5][0], x) and torch.equal(dataset[5][1], y)
    both = lt.torch.Dataset([path, path], BLOCK)
    assert len(both) == (2 * TOKENS - 1) // BLOCK
    assert torch.equal(pickle.loads(pickle.dumps(dataset))[5][0], x)


def test_a_path_that_holds_no_tokens_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        lt.torch.Dataset("train.bin", 64)
    np.savez(tmp_path / "x.npz", a=np.arange(3))
    with pytest.raises(lt.FormatError, match=r"x\.npz.*unzip"):
        lt.torch.Dataset(tmp_path / "x.npz", 64)
    for wrong, says in (
        (3, "source must be a lowtide.Array .*Tokens on their own, not int"),
        (None, "source is None: give arrays or Tokens"),
        (np.arange(1000), "source is an ndarray.*lowtide.open"),
        ({"train": "train.bin"}, "'train' is a path: open an Array with lowtide.open or Tokens"),
    ):
        with pytest.raises(TypeError, match=says):
            lt.torch.Dataset(wrong, 64)
    with pytest.raises(TypeError, match=r"tokens must be a lowtide\.Tokens \(.*, not str"):
        lt.torch.windows("train.bin", [0], 64)
    with pytest.raises(TypeError, match=r"block_size must be an integer, not float \(2.5\)"):
        lt.torch.Dataset("train.bin", 2.5)


def test_dir_shows_only_what_is_public():
    assert dir(lt.torch) == ["Batch", "Dataset", "Loader", "windows"]
