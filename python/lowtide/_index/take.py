"""`take` along any axis, and what it does with numbers out of range."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments

if TYPE_CHECKING:
    import numpy.typing as npt

    from lowtide._data.array import Array

    AnyArray = npt.NDArray[Any]


def take_along(
    array: Array, idx: npt.ArrayLike, out: AnyArray | None, axis: int | None, mode: str
) -> AnyArray:
    """Returns what `np.take(data, idx, axis, out, mode)` returns. `Array.take` documents it."""
    found = np.asarray(idx)
    if found.dtype.kind not in "iu" and found.size:
        raise TypeError(f"row indices must be integers, not {found.dtype}")
    if axis is None:
        found = _within(found.astype(np.intp), array.size, mode)
        index: Any = np.unravel_index(found, array.shape) if array.ndim > 1 else found
        shape, rows = found.shape, False
    else:
        axis = _axis(axis, array.ndim)
        found = _within(found.astype(np.intp), array.shape[axis], mode)
        index = (slice(None),) * axis + (found,)
        shape = array.shape[:axis] + found.shape + array.shape[axis + 1 :]
        rows = axis == 0
    if out is not None:
        _arguments.check_out(out, shape, array.dtype)
    if rows:
        return array.take(found, out)
    result: AnyArray = np.asarray(array[index])
    if out is None:
        return result if shape else result[()]
    out[...] = result
    return out


def _axis(axis: Any, ndim: int) -> int:
    place = operator.index(axis)
    np.empty((0,) * ndim).sum(axis=place)  # raises NumPy's own error if there is no such axis
    return place % ndim


def _within(numbers: AnyArray, length: int, mode: str) -> AnyArray:
    """Returns the numbers as `mode` maps them to 0 .. length - 1."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode must be 'raise', 'wrap' or 'clip', not {mode!r}")
    if numbers.size and not length:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if mode == "wrap":
        return np.mod(numbers, max(1, length))
    if mode == "clip":
        return np.clip(numbers, 0, max(0, length - 1))
    wrong = numbers[(numbers >= length) | (numbers < -length)]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for axis with size {length}")
    return np.where(numbers < 0, numbers + length, numbers)
