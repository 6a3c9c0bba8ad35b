"""Indices that contain arrays: the shape of their result, and reading each row once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._index.window import Window, as_slice, pieces

if TYPE_CHECKING:
    import numpy.typing as npt

    from lowtide._index.window import Source

    AnyArray = npt.NDArray[Any]


def fill_advanced(
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


def advanced_shape(
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
    """Returns the arrays' places, their common shape, and how many result axes precede it.

    NumPy's rule: next to arrays, an int counts as an array too. If the arrays are adjacent, their
    common shape replaces them; if anything separates them, it comes first.
    """
    fancy = [
        place
        for place, entry in enumerate(entries)
        if isinstance(entry, (int, np.ndarray))  # a bool counts as an int here, as in NumPy
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
    """Reads each named row once, in file order, and copies it to all places that name it."""
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
