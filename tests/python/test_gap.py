"""`gap=` bounds how many unwanted bytes are read when neighbours share a request."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest

ROWS, COLUMNS = 16_384, 648  # 40 MiB in rows of 2592 bytes
ROW_BYTES = 4 * COLUMNS
MOST_ALIGNMENT = 4096


@pytest.fixture
def cold(tmp_path: Path) -> Path:
    """A matrix of which nothing is in the page cache."""
    path = tmp_path / "m.f32"
    np.arange(ROWS * COLUMNS, dtype="float32").tofile(path)
    evict(path)
    return path


def evict(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    cached = lt.info(path, dtype="float32", shape=(ROWS, COLUMNS))["cached"]
    if cached is None or cached > 1 << 20:  # checking it reads the first bytes
        pytest.skip(f"the page cache of this file system cannot be emptied: {cached} bytes stay")


def epoch_of(path: Path, gap: int | str | None) -> dict[str, Any]:
    """Where the bytes of one shuffled epoch came from; each row is checked."""
    evict(path)
    with lt.open(
        path, dtype="float32", shape=(ROWS, COLUMNS), memory="8MiB", cache="drop", gap=gap
    ) as a:
        for idx, rows in a.batches(256, order="shuffle", seed=1):
            assert (rows[:, 0] == idx.astype("float32") * COLUMNS).all()
        return a.stats()


def test_a_shuffled_epoch_reads_fewer_bytes_the_smaller_the_gap(cold: Path) -> None:
    fitted, narrow, none = (epoch_of(cold, gap) for gap in (None, "4KiB", 0))
    assert {one["bytes_asked"] for one in (fitted, narrow, none)} == {ROWS * ROW_BYTES}
    assert fitted["merged"] > 0 and fitted["gap_bytes"] >= 4096
    assert narrow["gap_bytes"] <= 4096 and none["gap_bytes"] == 0
    assert none["bytes_read"] < fitted["bytes_read"]
    assert none["bytes_read"] <= ROWS * (ROW_BYTES + 2 * (MOST_ALIGNMENT - 1))
    # Unwanted bytes lie between two wanted reads, and are never longer than the gap.
    assert narrow["bytes_read"] <= none["bytes_read"] + narrow["merged"] * 4096
    assert none["reads"] > fitted["reads"]


def test_tokens_their_loaders_and_pickles_keep_it(tmp_path: Path) -> None:
    np.arange(1_000_000, dtype="uint16").tofile(tmp_path / "t.bin")
    for none in (0, "0", "0KiB"):
        with lt.tokens(tmp_path / "t.bin", memory="1MiB", engine="pread", gap=none) as t:
            assert t.stats()["gap_bytes"] == 0
    with lt.tokens(tmp_path / "t.bin", memory="1MiB", engine="pread", gap=0) as t:
        with pickle.loads(pickle.dumps(t)) as again, t.reopen("2MiB") as larger:
            assert again.stats()["gap_bytes"] == larger.stats()["gap_bytes"] == 0
        loader = lt.Loader(t, batch_size=4, block_size=64, memory="1MiB")
        loader.next()
        assert loader.stats()["gap_bytes"] == 0
    with (
        lt.open(tmp_path / "t.bin", dtype="uint16", memory="1MiB", engine="pread", gap="2KiB") as a,
        pickle.loads(pickle.dumps(a)) as again,
    ):
        assert a.stats()["gap_bytes"] == again.stats()["gap_bytes"] == 2048


@pytest.mark.parametrize(
    ("gap", "error"),
    [(-1, ValueError), (1.5, TypeError), (True, TypeError), ("much", ValueError), ([], TypeError)],
)
def test_an_invalid_gap_is_refused_by_name(
    tmp_path: Path, gap: Any, error: type[Exception]
) -> None:
    np.zeros(8, dtype="uint16").tofile(tmp_path / "t.bin")
    with pytest.raises(error, match="gap"):
        lt.open(tmp_path / "t.bin", dtype="uint16", gap=gap)
    with pytest.raises(error, match="gap"):
        lt.tokens(tmp_path / "t.bin", gap=gap)
