"""Rows of an array, and the part of each that an index needs, read in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

# Rows above this size are read in part if an index needs only a part.
LONG_ROW_BYTES = 64 << 10
# Rows closer together than this are read together with the bytes between them.
STRIDE_BYTES = 16 << 10


class Source(Protocol):
    """Delivers rows of an array; `out` is always C-contiguous and has the source's dtype."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def scratch_bytes(self) -> int: ...
    @property
    def has_parts(self) -> bool:
        """Whether `take_part` works, that is, whether each row is contiguous in the file."""

    def read_rows(self, first: int, count: int, out: AnyArray) -> None: ...
    def take_rows(self, rows: AnyArray, out: AnyArray) -> None: ...
    def take_part(self, rows: AnyArray, offset_bytes: int, out: AnyArray) -> None:
        """Fills out[i] with the bytes of rows[i] from `offset_bytes` on."""


class Columns(Protocol):
    """The same data with its axes reversed, file by file, for arrays in Fortran order."""

    def parts(self, rows: range) -> Iterator[tuple[slice, Source, range]]:
        """Yields for each file with any of `rows`: places in `rows`, the file, its rows."""


class RowSource:
    """One row of a Source as a Source, so that a row longer than the scratch can stream."""

    __slots__ = ("_parent", "_row", "dtype", "has_parts", "scratch_bytes", "shape")

    def __init__(self, parent: Source, row: int) -> None:
        self._parent = parent
        self._row = np.array([row], np.int64)
        self.shape = parent.shape[1:]
        self.dtype = parent.dtype
        self.scratch_bytes = parent.scratch_bytes
        self.has_parts = True

    def read_rows(self, first: int, count: int, out: AnyArray) -> None:
        self._parent.take_part(self._row, first * row_bytes(self), out[None])

    def take_rows(self, rows: AnyArray, out: AnyArray) -> None:
        self.take_part(rows, 0, out)

    def take_part(self, rows: AnyArray, offset_bytes: int, out: AnyArray) -> None:
        size = row_bytes(self)
        for place, row in enumerate(rows.tolist()):
            self._parent.take_part(self._row, row * size + offset_bytes, out[place : place + 1])


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> AnyArray:
    """Like np.empty, but keeps types without bytes ("S0", "U0"), which np.empty would widen."""
    return np.ndarray(shape, dtype) if dtype.itemsize == 0 else np.empty(shape, dtype)


def row_bytes(source: Source) -> int:
    """Returns the size of one row of `source` in bytes."""
    count = source.dtype.itemsize
    for extent in source.shape[1:]:
        count *= extent
    return count


def as_slice(pick: range) -> slice:
    last = pick[-1]
    stop = last + 1 if pick.step > 0 else last - 1
    return slice(pick.start, None if stop < 0 else stop, pick.step)


def pieces(count: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, size):
        yield first, min(first + size, count)


class Window:
    """The contiguous part of every row that an index needs; reads it in chunks of rows."""

    __slots__ = ("_narrow", "_offset_bytes", "_source", "inner", "row_bytes", "shape")

    def __init__(self, source: Source, inner: list[Any]) -> None:
        """`inner` has one slice, int or integer array per axis after the first."""
        self._source = source
        self.inner = inner
        self.shape = source.shape[1:]
        self.row_bytes = row_bytes(source)
        self._offset_bytes = 0
        self._narrow = False
        if source.has_parts and self.row_bytes > LONG_ROW_BYTES:
            self._shrink()

    def _shrink(self) -> None:
        whole_bytes = size_bytes = self.row_bytes
        shape, inner, offset_bytes = list(self.shape), list(self.inner), 0
        for axis, entry in enumerate(inner):
            low, high = _hull(entry, shape[axis])
            size_bytes //= shape[axis]
            offset_bytes += low * size_bytes
            size_bytes *= high - low
            shape[axis] = high - low
            inner[axis] = _shift(entry, low)
            if high - low > 1:
                break
        # If the part is almost a whole row, reading whole neighbouring rows together is faster.
        if size_bytes * 4 <= whole_bytes * 3:
            self._narrow = True
            self.shape, self.inner = tuple(shape), inner
            self.row_bytes, self._offset_bytes = size_bytes, offset_bytes

    def rows_at_once(self) -> int:
        return max(1, self._source.scratch_bytes // max(1, self.row_bytes))

    def scratch(self, count: int) -> AnyArray:
        return np.empty((count, *self.shape), self._source.dtype)

    def take(self, rows: AnyArray, out: AnyArray) -> None:
        if self._narrow:
            self._source.take_part(rows, self._offset_bytes, out)
        else:
            self._source.take_rows(rows, out)

    def chunks(self, rows: range) -> Iterator[tuple[int, int, AnyArray]]:
        """Yields (first, last, rows[first:last]); each chunk overwrites the one before."""
        step = abs(rows.step)
        dense = not self._narrow and (step == 1 or step * self.row_bytes <= STRIDE_BYTES)
        at_once = self.rows_at_once()
        if not dense:
            scratch = self.scratch(min(at_once, len(rows)))
            for first, last in pieces(len(rows), at_once):
                part, chunk = rows[first:last], scratch[: last - first]
                self.take(np.arange(part.start, part.stop, part.step), chunk)
                yield first, last, chunk
            return
        at_once = max(1, at_once // step)
        scratch = self.scratch((min(at_once, len(rows)) - 1) * step + 1)
        for first, last in pieces(len(rows), at_once):
            part = rows[first:last]
            low = min(part[0], part[-1])
            span = (last - first - 1) * step + 1
            self._source.read_rows(low, span, scratch[:span])
            yield first, last, scratch[:span][:: rows.step]


def _hull(entry: Any, extent: int) -> tuple[int, int]:
    if isinstance(entry, int):
        return entry, entry + 1
    if isinstance(entry, np.ndarray):
        return int(entry.min()), int(entry.max()) + 1
    pick = range(*entry.indices(extent))
    return min(pick[0], pick[-1]), max(pick[0], pick[-1]) + 1


def _shift(entry: Any, low: int) -> Any:
    if isinstance(entry, slice):
        if entry.start is None:
            return entry
        return as_slice(range(entry.start - low, _stop(entry) - low, entry.step))
    return entry - low


def _stop(entry: slice) -> int:
    return -1 if entry.stop is None else int(entry.stop)
