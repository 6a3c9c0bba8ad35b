"""The sum of a block, at least as accurate as NumPy's pairwise sum."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

_WIDE: dict[str, np.dtype[Any]] = {
    "e": np.dtype(np.float64),
    "f": np.dtype(np.float64),
    "d": np.dtype(np.longdouble),
    "F": np.dtype(np.complex128),
    "D": np.dtype(np.clongdouble),
}
# So many terms are added before a sum is widened: as in NumPy's pairwise sum, which adds up to 128
# terms in eight sums. The product of a vector and so small a matrix stays on one thread.
_GROUP_ROWS = 16
# Above this length of a row, NumPy's own loop over the rows is as fast.
_LONG_ROW = 512


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type in which sums of blocks are merged if the result has `dtype`."""
    return _WIDE.get(dtype.char, dtype.newbyteorder("="))


def sum_block(block: AnyArray, axes: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
    """Returns the sum over `axes`, which stay with length 1, as a new array of `wide(dtype)`."""
    kind = wide(dtype)
    if block.dtype.kind in "iub" and kind.kind in "fc":
        exact = block.dtype.itemsize < 8  # a block of these cannot overflow an int64
        part = np.add.reduce(block, axes, np.int64 if exact else np.float64, keepdims=True)
    elif block.dtype.kind == "f" and kind.kind in "fc":
        part = _sum_floats(block.astype(_asked(block.dtype, dtype), copy=False), axes)
    elif block.dtype.kind == "c" and kind.kind == "c":
        part = np.add.reduce(block, axes, keepdims=True)
    else:
        part = np.add.reduce(block, axes, None if kind.kind == "m" else kind, keepdims=True)
    return np.asarray(part).astype(kind, copy=False)


@functools.cache
def _asked(stored: np.dtype[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type in which to add: the caller may request a wider one than is stored."""
    return np.result_type(stored, np.empty(0, result).real.dtype)


@functools.cache
def _ones(dtype: np.dtype[Any]) -> AnyArray:
    return np.ones(_GROUP_ROWS, dtype)


def _sum_floats(block: AnyArray, axes: tuple[int, ...]) -> AnyArray:
    if block.flags.f_contiguous and not block.flags.c_contiguous:
        mirrored = tuple(block.ndim - 1 - axis for axis in reversed(axes))
        return _sum_floats(block.T, mirrored).T
    count, ndim = len(axes), block.ndim
    known = block.dtype.char in "fd" and block.dtype.isnative
    found: AnyArray
    if known and axes == tuple(range(ndim - count, ndim)):
        found = np.add.reduce(block, axes, keepdims=True)  # pairwise along each row
        return found
    if known and axes == tuple(range(count)):
        kept = block.shape[count:]
        rows = block.reshape(-1, math.prod(kept))
        return _sum_rows(rows).reshape((1,) * count + kept)
    found = np.add.reduce(block, axes, np.result_type(block.dtype, np.float64), keepdims=True)
    return found


def _sum_rows(rows: AnyArray) -> AnyArray:
    count, length = rows.shape
    groups, rest = divmod(count, _GROUP_ROWS)
    grouped = rows[: count - rest].reshape(groups, _GROUP_ROWS, length)
    if length <= _LONG_ROW:
        parts = np.matmul(_ones(rows.dtype), grouped)
    else:
        parts = np.add.reduce(grouped, 1)
    total: AnyArray = np.add.reduce(parts, 0, np.float64)
    if rest:
        total += np.add.reduce(rows[count - rest :], 0)
    return total
