"""NumPy indexing over an array that lies on disk: which rows to read, in which pieces, into what.

Nothing here knows files: a `Source` brings rows, and every result equals what NumPy gives for the
same index of the same data in memory. What is read beyond the result passes through one scratch
buffer of `Source.scratch_bytes`.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._window import STRIDE_BYTES, RowSource, Window, as_slice, pieces, row_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._window import Columns, Source

    AnyArray = npt.NDArray[Any]
    # What basic indexing selects on one axis: some of it, or one place that drops the axis.
    Pick = range | int

BORROWED = (np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.int32), np.dtype(np.uint32))


def get(source: Source, index: Any, columns: Columns | None = None) -> Any:
    """What NumPy gives for `array[index]`, in memory of its own.

    `columns` is the same data with its axes reversed, where that is how the files lie (Fortran
    order): an index that leaves out part of a row is then read from there. Raises what NumPy
    raises for the index, and what the source raises.
    """
    if not source.shape:
        cell = np.empty((), source.dtype)
        source.read_rows(0, 1, cell.reshape(1))
        found = cell[index]
        return found.copy() if isinstance(found, np.ndarray) else found
    if _is_field(index):
        return _get_fields(source, index)
    rows = _plain_rows(index)
    if rows is not None:
        return take(source, rows)
    entries, axes = _expand(index, source.shape)
    if not any(isinstance(entry, (bool, np.ndarray)) for entry in entries):
        return _get_basic(source, columns, entries, axes, index)
    out = np.empty(_advanced_shape(entries, axes, source.shape), source.dtype)
    if out.size:
        _fill_advanced(source, entries, axes, out)
    return out


def check_rows(rows: Any, length: int) -> AnyArray:
    """`rows` as a C-contiguous, non-negative array of one of the four types the core borrows.

    Copied only where it must be. Raises TypeError for anything but integers, IndexError (NumPy's
    text) for an entry outside -length .. length - 1.
    """
    found = np.asarray(rows)
    if found.size == 0 and not isinstance(rows, np.ndarray):
        found = found.astype(np.int64)
    if found.dtype.kind not in "iu":
        raise TypeError(f"row indices must be integers, not {found.dtype}")
    if found.dtype not in BORROWED:
        found = found.astype(np.int64)
    # Mostly all is well, which one pass tells: as unsigned numbers the negative are the largest.
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
    """Rows in the order asked for, duplicates allowed: into `out`, or into an array of its own."""
    found = check_rows(rows, source.shape[0])
    shape = found.shape + source.shape[1:]
    if out is None:
        out = np.empty(shape, source.dtype)
    if out.size:
        source.take_rows(found.reshape(-1), out.reshape((found.size, *source.shape[1:])))
    return out


def _is_field(index: Any) -> bool:
    if isinstance(index, str):
        return True
    return isinstance(index, list) and bool(index) and all(isinstance(i, str) for i in index)


def _plain_rows(index: Any) -> Any:
    """The index itself where it is only a list or an array of row numbers, else None."""
    if isinstance(index, list):
        index = np.asarray(index) if index and all(type(i) is int for i in index) else None
    if isinstance(index, np.ndarray) and index.dtype.kind in "iu" and index.ndim:
        return index
    return None


def _expand(index: Any, shape: tuple[int, ...]) -> tuple[list[Any], list[int | None]]:
    """The index as one entry for each axis, and new axes; beside each the axis it uses.

    Entries are slice, int (from 0), an integer array (from 0), None, True or False, and Ellipsis
    where it stands for no axis at all (NumPy lets that one, too, part the arrays beside it).
    """
    items = index if isinstance(index, tuple) else (index,)
    parts = [_entry(item) for item in items]
    missing = len(shape) - sum(_uses_axis(entry) for part in parts for entry in part)
    ellipses = sum(item is Ellipsis for item in items)
    if missing < 0 or ellipses > 1:
        _probe(shape, index)
    for place, item in enumerate(items):
        if item is Ellipsis and missing > 0:
            parts[place] = [slice(None)] * missing
    if not ellipses:
        parts.append([slice(None)] * missing)
    entries = [entry for part in parts for entry in part]
    if any(not isinstance(entry, (slice, int, type(None), type(Ellipsis))) for entry in entries):
        whole = [p if item is Ellipsis else [item] for item, p in zip(items, parts)]
        _probe((*shape, 0), tuple(e for part in whole for e in part if e is not Ellipsis))
    else:
        _probe(shape, index)
    axes = _number(entries)
    for place, axis in enumerate(axes):
        if axis is None or isinstance(entries[place], slice):
            continue
        entries[place] = _from_zero(entries[place], shape[axis])
    return entries, axes


def _probe(shape: tuple[int, ...], index: Any) -> None:
    # NumPy itself checks the index, on an array without bytes; a last axis of no places keeps it
    # from walking through all that an array and a slice select together.
    np.broadcast_to(np.empty((), "V0"), shape)[index]


def _number(entries: list[Any]) -> list[int | None]:
    axes: list[int | None] = []
    axis = 0
    for entry in entries:
        axes.append(axis if _uses_axis(entry) else None)
        axis += _uses_axis(entry)
    return axes


def _from_zero(entry: Any, extent: int) -> Any:
    if isinstance(entry, int):
        return entry + extent if entry < 0 else entry
    found = entry.astype(np.int64)
    return np.where(found < 0, found + extent, found) if found.size and found.min() < 0 else found


def _uses_axis(entry: Any) -> bool:
    return not (entry is None or entry is Ellipsis or isinstance(entry, bool))


def _entry(item: Any) -> Sequence[Any]:
    if item is None or item is Ellipsis or isinstance(item, (slice, bool)):
        return (item,)
    if isinstance(item, (int, np.integer)):
        return (int(item),)
    if not hasattr(item, "__array__") and hasattr(item, "__index__"):
        return (operator.index(item),)
    found = np.asarray(item)
    if found.dtype.kind == "b":
        return (bool(found),) if found.ndim == 0 else found.nonzero()
    if found.ndim == 0 and found.dtype.kind in "iu":
        return (int(found),)
    return (found,)


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
    out = np.empty(shape, source.dtype)
    if out.size:
        flat = out.reshape(kept)
        if columns is not None and not _is_whole(picks[1:], source.shape[1:]):
            _fill_columns(columns, picks, flat)
        else:
            fill(source, picks, flat)
    has_ellipsis = isinstance(index, tuple) and any(item is Ellipsis for item in index)
    return out if shape or has_ellipsis else out[()]


def _fill_columns(columns: Columns, picks: Sequence[Pick], out: AnyArray) -> None:
    rows = picks[0]
    if isinstance(rows, int):
        rows = range(rows, rows + 1)
        out = out[None]
    for places, part, here in columns.parts(rows):
        fill(part, [*picks[:0:-1], here], out[places].T)


def _is_whole(picks: Sequence[Pick], shape: tuple[int, ...]) -> bool:
    return all(pick == range(extent) for pick, extent in zip(picks, shape))


def fill(source: Source, picks: Sequence[Pick], out: AnyArray) -> None:
    """Basic indexing: what `picks` (one for each axis, nothing empty) selects, into `out`."""
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


def _fill_advanced(
    source: Source, entries: list[Any], axes: list[int | None], out: AnyArray
) -> None:
    zero = axes.index(0)
    for place, axis in enumerate(axes):
        entry = entries[place]
        if axis is not None and axis > 0 and isinstance(entry, slice):
            entries[place] = as_slice(range(*entry.indices(source.shape[axis])))
    window = Window(source, [e for e, axis in zip(entries, axes) if axis])
    inner = iter(window.inner)
    entries = [next(inner) if axis else entry for entry, axis in zip(entries, axes)]
    rows = entries[zero]
    if isinstance(rows, int):
        chunk = window.scratch(1)
        window.take(np.array([rows], np.int64), chunk)
        entries[zero] = 0
        out[...] = chunk[tuple(entries)]
        return
    fancy, arrays_shape, before = _placement(entries)
    if isinstance(rows, slice):
        leads = before == 0 and fancy[-1] - fancy[0] >= len(fancy)
        shift = len(arrays_shape) if leads or fancy[0] < zero else 0
        lead = (slice(None),) * (shift + entries[:zero].count(None))
        entries[zero] = slice(None)
        for first, last, chunk in window.chunks(range(*rows.indices(source.shape[0]))):
            out[(*lead, slice(first, last))] = chunk[tuple(entries)]
        return
    count = int(np.prod(arrays_shape, dtype=np.int64))
    after = out.shape[before + len(arrays_shape) :]
    flat = out.reshape((*out.shape[:before], count, *after))
    for place in fancy:
        if not isinstance(entries[place], bool):
            entries[place] = np.broadcast_to(entries[place], arrays_shape).reshape(-1)
    _scatter(window, entries, zero, flat, before)


def _advanced_shape(
    entries: list[Any], axes: list[int | None], shape: tuple[int, ...]
) -> tuple[int, ...]:
    _, arrays_shape, before = _placement(entries)
    kept = [
        len(range(*entry.indices(shape[axis])))
        if isinstance(entry, slice) and axis is not None
        else 1
        for entry, axis in zip(entries, axes)
        if entry is None or isinstance(entry, slice)
    ]
    return (*kept[:before], *arrays_shape, *kept[before:])


def _placement(entries: list[Any]) -> tuple[list[int], tuple[int, ...], int]:
    """Where the arrays stand, their common shape, and how many result axes come before it.

    NumPy's rule: beside arrays an int is an array too; the common shape replaces them where they
    stand together, and comes first where something stands between them.
    """
    fancy = [
        place
        for place, entry in enumerate(entries)
        if isinstance(entry, (int, np.ndarray))  # bool is an int here, as NumPy has it
    ]
    shape = np.broadcast_shapes(
        *(
            (int(e),) if isinstance(e, bool) else np.shape(e)
            for e in map(entries.__getitem__, fancy)
        )
    )
    together = fancy[-1] - fancy[0] == len(fancy) - 1
    before = 0
    if together:
        before = sum(1 for e in entries[: fancy[0]] if e is None or isinstance(e, slice))
    return fancy, shape, before


def _scatter(window: Window, entries: list[Any], zero: int, flat: AnyArray, before: int) -> None:
    """Each row that is named is read once, in file order, and serves all places that name it."""
    lead = (slice(None),) * before
    rows = entries[zero]
    order = None if bool((rows[1:] >= rows[:-1]).all()) else np.argsort(rows, kind="stable")
    ordered = rows if order is None else rows[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    names = ordered[starts]
    place_bytes = max(1, flat.nbytes // len(rows))
    places_at_once = max(1, window.rows_at_once() * window.row_bytes // place_bytes)
    at_once = window.rows_at_once()
    scratch = window.scratch(min(at_once, len(names)))
    varying = [p for p, e in enumerate(entries) if isinstance(e, np.ndarray)]
    for first, last in pieces(len(names), at_once):
        chunk = scratch[: last - first]
        window.take(names[first:last], chunk)
        low = int(starts[first])
        high = int(starts[last]) if last < len(starts) else len(rows)
        for begin in range(low, high, places_at_once):
            end = min(begin + places_at_once, high)
            places: Any = slice(begin, end) if order is None else order[begin:end]
            local = list(entries)
            for p in varying:
                local[p] = entries[p][places]
            local[zero] = np.searchsorted(names[first:last], ordered[begin:end])
            flat[(*lead, places)] = chunk[tuple(local)]


def _get_fields(source: Source, names: Any) -> AnyArray:
    one = np.empty((), source.dtype)[names]
    out = np.empty(source.shape + one.shape, one.dtype)
    if out.size:
        window = Window(source, [slice(None)] * (len(source.shape) - 1))
        for first, last, chunk in window.chunks(range(source.shape[0])):
            out[first:last] = chunk[names]
    return out
