"""Rows that a caller hands to a writer: which ones an index names, and their bytes in the file."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments
from lowtide._data.array import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

# Rows that are already as in the file are written in slices of this size, so that Ctrl-C works.
_PLAIN_BYTES = 64 << 20


class RowBlock:
    """Rows of one assignment: checked when made, converted slice by slice."""

    __slots__ = ("_count", "_dtype", "_fortran", "_row", "_rows", "_scalar")

    def __init__(
        self,
        rows: Any,
        shape: tuple[int, ...],
        row: tuple[int, ...],
        dtype: np.dtype[Any],
        fortran: bool,
    ) -> None:
        """Raises ValueError unless `rows` is a scalar or has `shape`; TypeError for its dtype."""
        if hasattr(rows, "__array__") and not isinstance(rows, (np.generic, Array)):
            rows = np.asarray(rows)  # a tensor or a table has a type of its own, as an ndarray has
        if not isinstance(rows, (np.ndarray, Array)):
            rows = _from_python(rows, dtype)
        elif rows.dtype != dtype and not np.can_cast(rows.dtype, dtype, "safe"):
            raise TypeError(
                f"rows have dtype {rows.dtype}, which may not fit into {dtype}; convert them "
                f"yourself: rows.astype({dtype.name!r})"
            )
        self._scalar = rows.ndim == 0 and shape != ()
        if not self._scalar and rows.shape != shape:
            raise ValueError(f"rows must have shape {shape}, not {rows.shape}")
        self._rows = rows
        self._row = row
        self._count = shape[0] if len(shape) > len(row) else 1
        self._dtype = dtype
        self._fortran = fortran and len(row) > 0

    def as_one_row(self) -> RowBlock:
        """Turns a row into a block of one."""
        if not self._scalar:
            self._rows = np.asarray(self._rows).reshape(1, *self._row)
        return self

    def slices(self, convert_bytes: int) -> Iterator[tuple[int, int, npt.NDArray[np.uint8]]]:
        """Yields first row, number of rows and their bytes, in the order of the file."""
        row_bytes = self._dtype.itemsize * int(np.prod(self._row, dtype=np.int64))
        if not row_bytes:
            yield 0, self._count, np.empty(0, np.uint8)
            return
        limit = _PLAIN_BYTES if self._is_plain() else convert_bytes
        step = max(1, limit // row_bytes)
        for start in range(0, self._count, step):
            count = min(step, self._count - start)
            yield start, count, self._bytes(start, count)

    def _is_plain(self) -> bool:
        rows = self._rows
        if self._scalar or not isinstance(rows, np.ndarray) or rows.dtype != self._dtype:
            return False
        return not self._fortran and rows.flags.c_contiguous

    def _bytes(self, start: int, count: int) -> npt.NDArray[np.uint8]:
        if self._scalar:
            part = np.broadcast_to(self._rows, (count, *self._row))
        else:
            part = np.asarray(self._rows[start : start + count])
        if self._fortran:
            part = part.T
        plain = np.ascontiguousarray(part, dtype=self._dtype)
        return plain.reshape(-1).view(np.uint8)


def _from_python(value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Converts numbers and lists of them, if nothing is lost but digits of a fraction."""
    found = np.asarray(value)
    if found.dtype == dtype:
        return found
    if not found.size:
        return np.empty(found.shape, dtype)
    numbers = found.dtype.kind in "biu" and dtype.kind in "biuf"
    if not numbers and not np.can_cast(found.dtype, dtype, "same_kind"):
        raise TypeError(
            f"rows of {found.dtype} may not fit into {dtype}; give them as an array of that dtype"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        converted = found.astype(dtype)
    if dtype.kind in "fc":
        lost = np.isfinite(found) & ~np.isfinite(converted)
    elif dtype.kind in "mM":
        lost = (converted != found) & ~np.isnat(found)
    else:
        lost = np.asarray(converted != found)
    if lost.any():
        raise ValueError(f"rows contain {found[lost][0]}, which does not fit into {dtype}")
    return converted


def place(index: Any, rows: int) -> int | range | npt.NDArray[np.int64]:
    """Returns which rows an index names, each at least 0. Raises IndexError, TypeError."""
    if index is Ellipsis:
        return range(rows)
    if isinstance(index, slice):
        for bound in (index.start, index.stop):
            if bound is not None and not -rows <= operator.index(bound) <= rows:
                raise IndexError(
                    f"slice bound {bound} is out of range for {rows} rows; to add rows, use append"
                )
        return range(*index.indices(rows))
    if isinstance(index, tuple):
        raise IndexError("only whole rows can be written: w[rows] = values, with one index")
    if not isinstance(index, (bool, np.bool_)) and hasattr(index, "__index__"):
        if not isinstance(index, np.ndarray) or index.ndim == 0:
            found = operator.index(index)
            if not -rows <= found < rows:
                raise IndexError(f"row {found} is out of range for {rows} rows")
            return found % rows
    numbers = np.asarray(index)
    if numbers.dtype == bool and numbers.ndim == 1:
        if len(numbers) != rows:
            raise IndexError(f"a mask must have one entry per row: {rows}, not {len(numbers)}")
        return np.flatnonzero(numbers)
    if numbers.size == 0 and numbers.ndim == 1 and numbers.dtype.kind == "f":
        numbers = numbers.astype(np.int64)  # an empty list
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise IndexError(
            "rows must be an integer, a slice, a mask or a one-dimensional array of integers, "
            f"not {_arguments.told(index)}"
        )
    if numbers.size and (numbers.min() < -rows or numbers.max() >= rows):
        wrong = numbers[(numbers < -rows) | (numbers >= rows)][0]
        raise IndexError(f"row {wrong} is out of range for {rows} rows")
    found_all = numbers.astype(np.int64)
    return np.where(found_all < 0, found_all + rows, found_all)
