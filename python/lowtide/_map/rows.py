"""Reads and writes rows of a map by number, in pieces that fit under its ceiling.

NumPy's own loop touches pages faster than any thread can release them: in a shuffled gather, every
row can map another 2 MiB. Here rows are sorted by offset, so that each part of the file is mapped
once, and the ceiling is notified before each piece.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._index.indexing import check_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lowtide import _core

    AnyArray = npt.NDArray[Any]

_WINDOW_BITS = 21  # 2 MiB: one touched byte can map this much


def row_numbers(index: Any, length: int) -> AnyArray | None:
    """Returns the row numbers, from 0, that a list, an integer array or a mask selects.

    Returns None for any other index. Raises IndexError as NumPy does.
    """
    if isinstance(index, list):
        if not index or any(
            i is None or isinstance(i, (slice, str)) or i is Ellipsis for i in index
        ):
            return None
        index = np.asarray(index)
    if not isinstance(index, np.ndarray) or index.ndim == 0:
        return None
    if index.dtype.kind == "b":
        return np.flatnonzero(index) if index.shape == (length,) else None
    return check_rows(index, length) if index.dtype.kind in "iu" else None


def gather(ceiling: _core.Ceiling, view: AnyArray, rows: AnyArray) -> AnyArray:
    """Returns `view[rows]` for a plain view of a map; row numbers are not negative."""
    flat = rows.reshape(-1)
    out = np.empty((flat.size, *view.shape[1:]), view.dtype)
    for piece in _pieces(ceiling, view, flat):
        out[piece] = view[flat[piece]]
    return out.reshape(rows.shape + view.shape[1:])


def scatter(ceiling: _core.Ceiling, view: AnyArray, rows: AnyArray, value: Any) -> None:
    """Sets `view[rows] = value`; if a row is named twice, the last value wins, as in NumPy."""
    is_array = isinstance(value, np.ndarray)
    values = np.asarray(value) if is_array else np.asarray(value, view.dtype)  # a tuple: one record
    shape = rows.shape + view.shape[1:]
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    if np.may_share_memory(values, view):
        values = values.copy()  # otherwise a piece could read what an earlier piece wrote
    flat = rows.reshape(-1)
    if values.ndim >= view.ndim:
        values = np.broadcast_to(values, shape).reshape((flat.size, *view.shape[1:]))
        for piece in _pieces(ceiling, view, flat):
            view[flat[piece]] = values[piece]
        return
    for piece in _pieces(ceiling, view, flat):  # the same for every row
        view[flat[piece]] = values


def _pieces(ceiling: _core.Ceiling, view: AnyArray, rows: AnyArray) -> Iterator[Any]:
    """Yields indices into `rows`, all of them in turn; each piece maps at most half the ceiling."""
    if not rows.size:
        return
    reach = sum(
        abs(stride) * (extent - 1) for stride, extent in zip(view.strides[1:], view.shape[1:])
    )
    each = 1 + math.ceil((reach + view.itemsize) / (1 << _WINDOW_BITS))
    most = max(1, (ceiling.limit_bytes >> (_WINDOW_BITS + 1)) // each)
    if rows.size <= most:
        ceiling.touch_anywhere(rows.size * each)
        yield slice(None)
        return
    order = np.argsort(rows, kind="stable")
    windows = (rows[order].astype(np.int64) * abs(view.strides[0])) >> _WINDOW_BITS
    count = np.concatenate(([0], np.cumsum(windows[1:] != windows[:-1])))  # windows before this one
    begin = 0
    while begin < rows.size:
        end = int(np.searchsorted(count, count[begin] + most))
        ceiling.touch_anywhere(int(count[end - 1] - count[begin] + 1) * each)
        yield order[begin:end]
        begin = end
