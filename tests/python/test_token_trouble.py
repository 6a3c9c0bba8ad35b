"""Token files that are too short, do not fit, or change under a reader."""

from __future__ import annotations

import os

import lowtide as lt
import numpy as np
import pytest
from token_files import BLOCK, write_megatron, write_nanogpt, write_shards


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


@pytest.mark.parametrize("place", [0, 700, 2001])
def test_a_token_that_does_not_fit(tmp_path, place):
    data = np.arange(2002) % 100
    data[place] = 70_000
    path = write_nanogpt(tmp_path / "t.bin", data, "<u4")
    says = f"t.bin: token 70000 at position {place} of the stream does not fit dtype uint16"
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
        with pytest.raises(ValueError, match="token -1 at position 0"):
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


def test_an_engine_that_cannot_hold_the_file(tmp_path):
    path = write_nanogpt(tmp_path / "t.bin", np.arange(1 << 20) % 50_000)
    with pytest.raises(ValueError, match="memory"):
        lt.tokens(path, engine="memory", memory="1MiB").windows([0], BLOCK)
