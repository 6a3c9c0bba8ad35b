"""Tokens travel by reference: pickled, reopened, from another folder."""

from __future__ import annotations

import pathlib
import pickle

import lowtide as lt
import numpy as np
import pytest
from token_files import write_nanogpt, write_shards


def test_pickles_travel_by_reference(tmp_path, train, train_data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = write_shards(tmp_path, train_data, [9_000])
    for named in ("train.bin", pathlib.Path("train.bin"), shards, "shard_*.bin", b"train.bin"):
        with lt.tokens(named, memory="1MiB", engine="pread", cache="keep") as t:
            text = pickle.dumps(t)
            assert len(text) < 4096
            monkeypatch.chdir("/")
            with pickle.loads(text) as again:
                np.testing.assert_array_equal(again[:], train_data)
                assert again.memory == 1 << 20
                assert again.stats()["engine"] == "pread"
                assert again.paths == t.paths
                assert pickle.dumps(again) == text
            monkeypatch.chdir(tmp_path)


def test_relative_shards_are_found_from_another_folder(tmp_path, train_data, monkeypatch):
    """More of them than stay open: most are opened when they are read."""
    write_shards(tmp_path, train_data, [10] * 2000)
    monkeypatch.chdir(tmp_path)
    with lt.tokens("shard_*.bin", dtype="uint16") as t:
        monkeypatch.chdir("/")
        np.testing.assert_array_equal(t[:], train_data)


def test_a_pattern_in_a_folder_named_like_one(tmp_path, train_data, monkeypatch):
    folder = tmp_path / "run[1]*"
    folder.mkdir()
    write_shards(folder, train_data, [9_000])
    monkeypatch.chdir(folder)
    with lt.tokens("shard_*.bin") as t:
        text = pickle.dumps(t)
    monkeypatch.chdir("/")
    with pickle.loads(text) as again:
        np.testing.assert_array_equal(again[:], train_data)


def test_a_pickle_of_files_that_have_changed_is_refused(train):
    with lt.tokens(train) as t:
        text = pickle.dumps(t)
    write_nanogpt(train, np.zeros(5000) + 3)
    with pytest.raises(lt.FormatError, match=r"20000 tokens.*5000 tokens"):
        pickle.loads(text)


def test_reopen_has_a_budget_of_its_own(train, train_data):
    with lt.tokens(train, memory="4MiB", engine="pread") as t:
        with t.reopen(memory="1MiB") as other, t.reopen() as same:
            assert (other.memory, same.memory) == (1 << 20, 4 << 20)
            assert other.stats()["engine"] == "pread"
        np.testing.assert_array_equal(t[:10], train_data[:10])
