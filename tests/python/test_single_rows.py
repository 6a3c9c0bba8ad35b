"""An integer or a short slice takes a way of its own; it returns what NumPy returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest

DTYPES = [
    "<f4", ">f4", "?", "<f2", "<M8[ns]", "<m8[s]", "S3", "<U2", "V5",
    [("a", "<i2"), ("b", "<f8", (2,))],
]  # fmt: skip
INDICES: list[Any] = [
    0, 6, -1, -7, np.int64(3), np.uint8(2), np.int32(-2),
    slice(2, 3), slice(-3, None), slice(None), slice(1, 100), slice(None, None, 1), slice(5, 2),
    slice(None, None, 2), slice(np.int64(1), 4),
]  # fmt: skip


def _filled(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    known = np.dtype(dtype)
    size = int(np.prod(shape)) * known.itemsize
    raw = np.random.default_rng(3).integers(65, 91, size, dtype=np.uint8)
    if known.kind == "b":
        raw %= 2
    if known.kind == "U":
        raw[np.arange(size) % 4 > 0] = 0
    return np.frombuffer(raw.tobytes(), known).reshape(shape)


@pytest.mark.parametrize("engine", ["pread", "memory"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_row_or_a_short_slice_is_what_numpy_returns(
    tmp_path: Path, dtype: Any, order: str, engine: str
) -> None:
    for shape in ((7,), (7, 3), (7, 2, 2)):
        held = np.array(_filled(shape, dtype), order="F" if order == "F" else "C")
        np.save(tmp_path / "m.npy", held)
        with lt.open(tmp_path / "m.npy", memory="1MiB", engine=engine) as a:
            for index in INDICES:
                found, expected = a[index], held[index]
                assert type(found) is type(expected), index
                assert found.dtype == expected.dtype, index
                assert found.shape == expected.shape, index
                assert found.tobytes() == expected.tobytes(), index
                if isinstance(found, np.ndarray):
                    assert (
                        found.flags.owndata and found.flags.writeable and found.flags.c_contiguous
                    )


def test_a_token_or_a_short_slice_is_what_numpy_returns(tmp_path: Path) -> None:
    held = np.arange(7, dtype=np.uint16) * 1000
    held.tofile(tmp_path / "train.bin")
    with lt.tokens(tmp_path / "train.bin", memory="1MiB") as t:
        for index in INDICES:
            found, expected = t[index], held[index]
            assert type(found) is type(expected), index
            assert np.array_equal(found, expected), index


@pytest.mark.parametrize(
    "index", [7, -8, True, np.timedelta64(1, "s"), np.timedelta64(1, "ns"), 1.0, "x"]
)
def test_what_is_no_row_fails_as_in_numpy(tmp_path: Path, index: Any) -> None:
    held = np.arange(14, dtype="<i4").reshape(7, 2)
    np.save(tmp_path / "m.npy", held)
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        try:
            expected = held[index]
        except IndexError as error:
            with pytest.raises(IndexError) as found:
                a[index]
            assert str(found.value).startswith(str(error)[:10])
        else:
            assert np.array_equal(a[index], expected)


def test_an_integer_beyond_64_bits_is_no_row(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.arange(7))
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        for index in (2**63, -(2**70)):
            with pytest.raises((IndexError, OverflowError)):
                a[index]


def test_rows_without_bytes_and_arrays_without_rows_are_read_without_a_read(tmp_path: Path) -> None:
    for held in (np.empty((3, 0), "<f4"), np.empty((0, 3), "<f4"), np.array(5.0)):
        np.save(tmp_path / "m.npy", held)
        with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
            if held.shape and len(held):
                assert a[1].shape == held[1].shape
                assert a[1:2].shape == held[1:2].shape
            else:
                with pytest.raises(IndexError):
                    a[0]


def test_single_rows_are_counted_and_end_with_close(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.arange(1000, dtype="<f4").reshape(100, 10))
    a = lt.open(tmp_path / "m.npy", memory="1MiB", engine="pread")
    for row in range(10):
        assert a[row][0] == row * 10
    assert len(a[3:8]) == 5
    now = a.stats()
    assert now["bytes_asked"] == 15 * 40
    assert now["reads"] == 11
    assert now["bytes_read"] >= 15 * 40
    assert now["wait_ns"] > 0
    a.close()
    for index in (3, slice(3, 8)):
        with pytest.raises(ValueError, match=r"m\.npy.* is closed"):
            a[index]
