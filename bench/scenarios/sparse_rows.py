"""The rows of the benchmark `sparse`: a pure function of the row number, so that anyone can check.

A row has 500 to 1,499 values in 20,000 columns, sorted and without repetition. Its first value is
its number, which float32 holds exactly; the others are small counts, as in a matrix of cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = 20_000
LEAST, MOST = 500, 1499  # values per row
MEAN = (LEAST + MOST + 1) // 2
MAX_ROWS = 1 << 24  # numbers that float32 holds exactly
CLASSES = 20

_COUNTS = np.minimum(np.random.default_rng(0).geometric(0.5, 1024), 15).astype(np.float32)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 of each word."""
    words = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def lengths(rows: Any) -> NDArray[np.int64]:
    """Number of values of each of these rows."""
    mixed = _mixed(np.asarray(rows, np.uint64))
    return (LEAST + mixed % np.uint64(MOST - LEAST + 1)).astype(np.int64)


def labels(rows: Any) -> NDArray[np.int8]:
    """The class of each row; the first classes are more frequent than the last."""
    drawn = (_mixed(np.asarray(rows, np.uint64)) >> np.uint64(40)) / 2.0**24
    return (drawn**2 * CLASSES).astype(np.int8)


def parts(rows: Any) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]:
    """Values, columns and offsets of these rows, as a matrix of compressed rows has them."""
    numbers = np.asarray(rows, np.uint64)
    sizes = lengths(numbers)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    seeds = np.repeat((_mixed(numbers) >> np.uint64(32)).astype(np.uint32), sizes)
    mixed = (place.astype(np.uint32) + seeds) * np.uint32(0x9E3779B1)
    mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x85EBCA77)
    mixed ^= mixed >> np.uint32(13)
    data = _COUNTS[mixed & np.uint32(1023)]
    data[offsets[:-1]] = numbers
    # One column out of each of `size` equal ranges: sorted, and none comes twice.
    step = np.repeat((COLUMNS // sizes).astype(np.uint32), sizes)
    indices = place.astype(np.uint32) * step + (mixed >> np.uint32(10)) % step
    return data, indices.astype(np.int32), offsets


def check(data: Any, indices: Any, offsets: Any, rows: Any = None) -> None:
    """Raises ValueError unless these are whole rows, those with the numbers `rows` if given."""
    data, indices, offsets = np.asarray(data), np.asarray(indices), np.asarray(offsets)
    starts = offsets[:-1]
    if not len(starts) or starts[-1] >= len(data):
        raise ValueError("a batch has no rows, or rows without values")
    numbers = data[starts].astype(np.int64)
    if rows is not None and not np.array_equal(numbers, np.asarray(rows)):
        raise ValueError("a batch has other rows than it says")
    if (numbers < 0).any() or (numbers >= MAX_ROWS).any():
        raise ValueError("a batch has rows that do not exist")
    expected = parts(numbers)
    for found, right in zip((data, indices, offsets), expected, strict=True):
        if not np.array_equal(found, right):
            raise ValueError("a batch differs from the source")


def check_dense(found: Any, rows: Any, genes: Any) -> None:
    """Raises ValueError unless `found` has the columns `genes` of these rows."""
    data, indices, offsets = parts(rows)
    whole = np.zeros((len(offsets) - 1, COLUMNS), np.float32)
    whole[np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), indices] = data
    if not np.array_equal(np.asarray(found), whole[:, genes]):
        raise ValueError("a dense batch differs from the source")
