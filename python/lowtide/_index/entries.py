"""Expands an index to one entry per axis, as NumPy reads it; NumPy itself checks it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def expand(index: Any, shape: tuple[int, ...]) -> tuple[list[Any], list[int | None]]:
    """Returns one entry per axis or new axis, and for each entry the axis that it uses.

    Entries are slices, non-negative ints and integer arrays, None, True or False. An Ellipsis that
    stands for no axis stays an entry, because in NumPy it still separates the arrays around it.
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
    axes = _number(entries)
    if any(not isinstance(entry, (slice, int, type(None), type(Ellipsis))) for entry in entries):
        whole = [p if item is Ellipsis else [item] for item, p in zip(items, parts)]
        _probe((*shape, 0), tuple(e for part in whole for e in part if e is not Ellipsis))
        _check_bounds(entries, axes, shape)
    else:
        _probe(shape, index)
    for place, axis in enumerate(axes):
        if axis is None or isinstance(entries[place], slice):
            continue
        entries[place] = _from_zero(entries[place], shape[axis])
    return entries, axes


def _probe(shape: tuple[int, ...], index: Any) -> None:
    # NumPy checks the index on an array without bytes. If the last axis has length 0, NumPy does
    # not walk through everything that an array and a slice select together.
    np.broadcast_to(np.empty((), "V0"), shape)[index]


def _number(entries: list[Any]) -> list[int | None]:
    axes: list[int | None] = []
    axis = 0
    for entry in entries:
        axes.append(axis if _uses_axis(entry) else None)
        axis += _uses_axis(entry)
    return axes


def _check_bounds(entries: list[Any], axes: list[int | None], shape: tuple[int, ...]) -> None:
    # Before 2.3, NumPy only warns of an entry out of bounds if the result is empty, and that of a
    # probe always is. No NumPy checks the arrays if they select nothing together.
    if any(entry is False or (_is_array(entry) and not entry.size) for entry in entries):
        return
    for entry, axis in zip(entries, axes):
        if axis is None or not _is_array(entry):
            continue
        extent = shape[axis]
        if entry.min() < -extent or entry.max() >= extent:
            wrong = entry[(entry < -extent) | (entry >= extent)][0]
            raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {extent}")


def _from_zero(entry: Any, extent: int) -> Any:
    if isinstance(entry, int):
        return entry + extent if entry < 0 else entry
    found = entry.astype(np.int64)
    return np.where(found < 0, found + extent, found) if found.size and found.min() < 0 else found


def _is_array(entry: Any) -> bool:
    return isinstance(entry, np.ndarray)


def _uses_axis(entry: Any) -> bool:
    return not (entry is None or entry is Ellipsis or isinstance(entry, bool))


def _entry(item: Any) -> Sequence[Any]:
    if item is None or item is Ellipsis or isinstance(item, (slice, bool)):
        return (item,)
    if isinstance(item, int) or (isinstance(item, np.integer) and item.dtype.kind in "iu"):
        return (int(item),)  # of kind "m" is a timedelta, which NumPy derives from its integers
    if not hasattr(item, "__array__") and hasattr(item, "__index__"):
        return (operator.index(item),)
    found = np.asarray(item)
    if found.dtype.kind == "b":
        return (bool(found),) if found.ndim == 0 else found.nonzero()
    if found.ndim == 0 and found.dtype.kind in "iu":
        return (int(found),)
    return (found,)
