"""The rows of open files, read in pieces so that Ctrl-C takes effect between them."""

from __future__ import annotations

import bisect
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core
from lowtide._index.window import row_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

# One call of the core reads at most this much. Ctrl-C ends a call that waits, so this may be long.
# It must not be short: the next call begins when all has arrived, and servers wait till then.
PIECE_BYTES = 64 << 20
PIECE_ROWS = 1 << 16
# The core does not count this buffer; it is small enough for the fixed margin of the budget.
SCRATCH_BYTES = 8 << 20


def scratch_bytes(memory_bytes: int) -> int:
    """Returns how many bytes an index may use for data that it reads but does not deliver."""
    return min(memory_bytes // 4, SCRATCH_BYTES)


class CoreSource:
    """The rows of an array, each in C order whatever the file's order, or the tokens of a stream.

    A row of a stream is one token.
    """

    __slots__ = (
        "_core", "_piece", "_row_shape", "_rows", "dtype", "has_parts", "scratch_bytes", "shape",
    )  # fmt: skip

    def __init__(
        self,
        core: _core.Array | _core.Tokens,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        has_parts: bool,
    ) -> None:
        self._core = core
        self.shape = shape
        self.dtype = dtype
        self.scratch_bytes = scratch_bytes(core.memory_bytes)
        self.has_parts = has_parts
        size = row_bytes(self)
        self._piece = max(1, PIECE_BYTES // max(1, size))
        self._row_shape = shape[1:]
        self._rows = shape[0] if shape and size else 0

    def get_plain(self, index: Any) -> Any:
        """Returns what NumPy returns for an index that one read answers, or None for any other.

        Such an index is an integer or a short slice. Both are frequent, and the general code path
        costs several times as much as the read itself.
        """
        rows = self._rows
        if type(index) is slice:
            first, last, step = index.indices(rows)
            if step != 1 or not 0 < last - first <= self._piece:
                return None
            out = np.empty((last - first, *self._row_shape), self.dtype)
            self._core.read(first, out)
            return out
        if type(index) is not int:
            if not isinstance(index, np.integer) or index.dtype.kind == "m":
                return None
            index = int(index)
        if not -rows <= index < rows:
            return None
        row = np.empty(self._row_shape, self.dtype)
        self._core.read(index if index >= 0 else index + rows, row)
        return row if self._row_shape else row[()]

    def read_rows(self, first: int, count: int, out: AnyArray) -> None:
        for begin in range(0, count, self._piece):
            self._core.read(first + begin, out[begin : begin + self._piece])

    def take_rows(self, rows: AnyArray, out: AnyArray) -> None:
        piece = min(self._piece, PIECE_ROWS)
        for begin in range(0, len(rows), piece):
            end = begin + piece
            self._core.take(rows[begin:end], out[begin:end])

    def take_part(self, rows: AnyArray, offset_bytes: int, out: AnyArray) -> None:
        assert not isinstance(self._core, _core.Tokens)
        size = out.nbytes // len(rows)
        for begin in range(0, len(rows), PIECE_ROWS):
            end = begin + PIECE_ROWS
            self._core.take_part(rows[begin:end], offset_bytes, size, out[begin:end])


class ColumnSource:
    """A file in Fortran order with its axes reversed, so that a row here is contiguous in it.

    `core` presents all files as one long axis, so that no row is too long for the budget. This
    file begins at its element `first`.
    """

    __slots__ = ("_core", "_first", "_row_items", "dtype", "has_parts", "scratch_bytes", "shape")

    def __init__(
        self, core: _core.Array, first: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._core = core
        self._first = first
        self.shape = shape[::-1]
        self.dtype = dtype
        self.scratch_bytes = scratch_bytes(core.memory_bytes)
        self.has_parts = True
        self._row_items = row_bytes(self) // dtype.itemsize

    def _read_items(self, first: int, out: AnyArray) -> None:
        flat = out.reshape(-1)
        piece = max(1, PIECE_BYTES // self.dtype.itemsize)
        for begin in range(0, len(flat), piece):
            part = flat[begin : begin + piece]
            self._core.read(self._first + first + begin, part)

    def read_rows(self, first: int, count: int, out: AnyArray) -> None:
        self._read_items(first * self._row_items, out)

    def take_rows(self, rows: AnyArray, out: AnyArray) -> None:
        self.take_part(rows, 0, out)

    def take_part(self, rows: AnyArray, offset_bytes: int, out: AnyArray) -> None:
        skip = offset_bytes // self.dtype.itemsize
        for place, row in enumerate(rows.tolist()):
            self._read_items(row * self._row_items + skip, out[place])


class FileColumns:
    """The files of an array in Fortran order, each with its axes reversed."""

    __slots__ = ("_core", "_dtype", "_ends", "_shape")

    def __init__(
        self,
        core: _core.Array,
        file_rows: list[int],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self._core = core
        self._ends = list(itertools.accumulate(file_rows))
        self._shape = shape
        self._dtype = dtype

    def parts(self, rows: range) -> Iterator[tuple[slice, ColumnSource, range]]:
        row_items = math.prod(self._shape[1:])
        number = bisect.bisect_right(self._ends, min(rows[0], rows[-1]))
        end = self._ends[number - 1] if number else 0
        while end <= max(rows[0], rows[-1]):
            first, end = end, self._ends[number]
            number += 1
            places = _places_between(rows, first, end)
            if places.start < places.stop:
                shape = (end - first, *self._shape[1:])
                part = ColumnSource(self._core, first * row_items, shape, self._dtype)
                here = rows[places]
                yield places, part, range(here.start - first, here.stop - first, here.step)

    def stats(self) -> dict[str, Any]:
        return self._core.stats()

    def close(self) -> None:
        self._core.close()


def _places_between(rows: range, first: int, end: int) -> slice:
    """Returns the slice of `rows` whose entries are in first .. end - 1."""
    if rows.step > 0:
        begin, stop = first - rows.start + rows.step - 1, end - rows.start + rows.step - 1
    else:
        begin, stop = rows.start - end - rows.step, rows.start - first - rows.step
    step = abs(rows.step)
    return slice(max(0, begin // step), min(len(rows), stop // step))
