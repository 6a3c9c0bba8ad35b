"""NumPy indexing over an array on disk: which rows to read, in which pieces, into what.

Nothing here knows about files: a `Source` delivers rows. Every result equals what NumPy returns for
the same index of the same data in memory. Extra bytes that must be read pass through one scratch
buffer of `Source.scratch_bytes`. A result without bytes needs no read, whatever its shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._index.arrays import advanced_shape, fill_advanced
from lowtide._index.entries import expand
from lowtide._index.window import (
    STRIDE_BYTES,
    RowSource,
    Window,
    as_slice,
    empty,
    pieces,
    row_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._index.window import Columns, Source

    AnyArray = npt.NDArray[Any]
    # What basic indexing selects on one axis: a range, or one position, which drops the axis.
    Pick = range | int

BORROWED = (np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.int32), np.dtype(np.uint32))


def get(source: Source, index: Any, columns: Columns | None = None) -> Any:
    """Returns what NumPy returns for `array[index]`, in memory of its own.

    For files in Fortran order, `columns` is the same data with its axes reversed; an index that
    leaves out part of a row is read from there. Raises what NumPy raises for the index, and what
    the source raises.
    """
    if not source.shape:
        cell = empty((), source.dtype)
        if cell.nbytes:
            source.read_rows(0, 1, cell.reshape(1))
        found = cell[index]
        return found.copy() if isinstance(found, np.ndarray) and found.nbytes else found
    if _is_field(index):
        return _get_fields(source, index)
    rows = _plain_rows(index)
    if rows is not None:
        return take(source, rows)
    entries, axes = expand(index, source.shape)
    if not any(isinstance(entry, (bool, np.ndarray)) for entry in entries):
        return _get_basic(source, columns, entries, axes, index)
    out = empty(advanced_shape(entries, axes, source.shape), source.dtype)
    if out.nbytes:
        fill_advanced(source, entries, axes, out)
    return out


def check_rows(rows: Any, length: int) -> AnyArray:
    """Returns `rows` as a C-contiguous, non-negative array of a type that the core borrows.

    Copies only if it must. Raises TypeError for anything but integers, and IndexError with NumPy's
    message for an entry outside -length .. length - 1.
    """
    found = np.asarray(rows)
    if found.size == 0 and not isinstance(rows, np.ndarray):
        found = found.astype(np.int64)
    if found.dtype.kind not in "iu":
        raise TypeError(f"row indices must be integers, not {found.dtype}")
    if found.dtype not in BORROWED:
        found = found.astype(np.int64)
    # Usually every entry is valid, and one pass shows it: as unsigned numbers, negative entries
    # are the largest.
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    limit = min(length, int(np.iinfo(found.dtype).max) + 1)
    if found.size and int(found.view(unsigned).max()) >= limit:
        low, high = int(found.min()), int(found.max())
        if high >= length or low < -length:
            wrong = found[(found >= length) | (found < -length)][0]
            raise IndexError(f"index {wrong} is out of bounds for axis 0 with size {length}")
        if low < 0:
            found = np.where(found < 0, found + np.int64(length), found)
    return np.ascontiguousarray(found) if found.ndim else found


def take(source: Source, rows: Any, out: AnyArray | None = None) -> AnyArray:
    """Reads rows in the given order, duplicates allowed, into `out` or into a new array."""
    found = check_rows(rows, source.shape[0])
    shape = found.shape + source.shape[1:]
    if out is None:
        out = empty(shape, source.dtype)
    if out.nbytes:
        source.take_rows(found.reshape(-1), out.reshape((found.size, *source.shape[1:])))
    return out


def _is_field(index: Any) -> bool:
    if isinstance(index, str):
        return True
    return isinstance(index, list) and bool(index) and all(isinstance(i, str) for i in index)


def _plain_rows(index: Any) -> Any:
    """Returns the index if it is just a list or an array of row numbers, else None."""
    if isinstance(index, list):
        index = np.asarray(index) if index and all(type(i) is int for i in index) else None
    if isinstance(index, np.ndarray) and index.dtype.kind in "iu" and index.ndim:
        return index
    return None


def _get_basic(
    source: Source, columns: Columns | None, entries: list[Any], axes: list[int | None], index: Any
) -> Any:
    picks: list[Pick] = [
        range(*entry.indices(source.shape[axis])) if isinstance(entry, slice) else entry
        for entry, axis in zip(entries, axes)
        if axis is not None
    ]
    kept = [len(pick) for pick in picks if isinstance(pick, range)]
    lengths = iter(kept)
    shape = [1 if e is None else next(lengths) for e in entries if e is None or type(e) is slice]
    out = empty(shape, source.dtype)
    if out.nbytes:
        flat = out.reshape(kept)
        if columns is not None and not _is_whole(picks[1:], source.shape[1:]):
            fill_columns(columns, picks, flat)
        else:
            fill(source, picks, flat)
    has_ellipsis = isinstance(index, tuple) and any(item is Ellipsis for item in index)
    return out if shape or has_ellipsis else out[()]


def fill_columns(columns: Columns, picks: Sequence[Pick], out: AnyArray) -> None:
    """As `fill`, for files in Fortran order; it is fastest if `out` has that order too."""
    rows = picks[0]
    if isinstance(rows, int):
        rows = range(rows, rows + 1)
        out = out[None]
    for places, part, here in columns.parts(rows):
        fill(part, [*picks[:0:-1], here], out[places].T)


def _is_whole(picks: Sequence[Pick], shape: tuple[int, ...]) -> bool:
    return all(pick == range(extent) for pick, extent in zip(picks, shape))


def fill(source: Source, picks: Sequence[Pick], out: AnyArray) -> None:
    """Reads what `picks` (one per axis, none empty) selects by basic indexing into `out`."""
    rows = picks[0]
    if isinstance(rows, int):
        rows = range(rows, rows + 1)
        out = out[None]
    if _is_whole(picks[1:], source.shape[1:]) and out.flags.c_contiguous:
        if rows.step == 1:
            source.read_rows(rows.start, len(rows), out)
            return
        if abs(rows.step) * row_bytes(source) > STRIDE_BYTES:
            for first, last in pieces(len(rows), 1 << 16):
                part = rows[first:last]
                source.take_rows(np.arange(part.start, part.stop, part.step), out[first:last])
            return
    inner: list[Any] = [p if isinstance(p, int) else as_slice(p) for p in picks[1:]]
    window = Window(source, inner)
    if window.row_bytes > source.scratch_bytes and source.has_parts and len(source.shape) > 1:
        for place, row in enumerate(rows):
            fill(RowSource(source, row), picks[1:], out[place, ...])
        return
    for first, last, chunk in window.chunks(rows):
        out[first:last] = chunk[(slice(None), *window.inner)]


def _get_fields(source: Source, names: Any) -> AnyArray:
    one = empty((), source.dtype)[names]
    out = empty(source.shape + one.shape, one.dtype)
    if out.nbytes:
        window = Window(source, [slice(None)] * (len(source.shape) - 1))
        for first, last, chunk in window.chunks(range(source.shape[0])):
            out[first:last] = chunk[names]
    return out
