"""Which samples a loader takes: the arguments `rows` and `weights`."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowtide import _core
from lowtide._data.batches import freeze, nothing
from lowtide._index.indexing import check_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

_COPIED_SHARE = 16  # a list of up to 1/16 of `memory` is copied, a larger one is borrowed


class Rows(NamedTuple):
    """The rows as the core takes them: a range (first, step, count), or a list."""

    rows: tuple[int, int, int] | npt.NDArray[Any]
    is_ours: bool = False  # the list is a copy, so it counts towards the budget
    frozen: npt.NDArray[Any] | None = None  # the caller's list, which must not change

    def kept(self) -> Any:
        """Returns the same selection in memory that the caller cannot change."""
        if not isinstance(self.rows, tuple):
            return self.rows
        first, step, count = self.rows
        return range(first, first + step * count, step)

    def freeze_for(self, owner: Any) -> Callable[[], object]:
        """Makes a borrowed list read-only until `owner` is freed or the result is called."""
        return nothing if self.frozen is None else weakref.finalize(owner, freeze(self.frozen))


def parse_rows(rows: Any, length: int, memory: int) -> Rows:
    """Checks `rows` against a source of `length` samples.

    Raises:
        IndexError: A row does not exist, or a mask has the wrong length.
        ValueError: No row is selected, or the list has several axes.
        TypeError: `rows` is not a slice, a range, a mask or integers.
    """
    if isinstance(rows, slice):
        rows = range(*rows.indices(length))
    if isinstance(rows, range) and rows:
        rows = _checked_range(rows, length)
        if rows[0] >= 0 and rows[-1] >= 0:
            return Rows((rows.start, rows.step, len(rows)))
    if not isinstance(rows, (np.ndarray, list, tuple, range)):
        kind = type(rows).__name__
        raise TypeError(f"rows must be integers, a bool mask, a slice or a range, not {kind}")
    found = np.asarray(rows)
    if found.ndim != 1:
        raise ValueError(f"rows must have one axis, not shape {found.shape}")
    if not found.size:
        raise ValueError("rows selects nothing: select at least one row")
    if found.dtype == bool:
        if len(found) != length:
            raise IndexError(f"rows is a mask of {len(found)} entries, but there are {length} rows")
        found = np.flatnonzero(found)
        if not found.size:
            raise ValueError("rows selects nothing: the mask has no True")
        return Rows(found, is_ours=True)
    if found.dtype.kind not in "iu":
        raise TypeError(f"rows must be integers or a bool mask, not {found.dtype}")
    try:
        checked = check_rows(found, length)
    except IndexError as error:
        raise IndexError(f"rows: {error}") from None
    if not (isinstance(rows, np.ndarray) and np.may_share_memory(checked, rows)):
        return Rows(checked, is_ours=True)
    if checked.nbytes <= memory // _COPIED_SHARE:
        return Rows(checked.copy(), is_ours=True)
    return Rows(checked, frozen=rows)


def _checked_range(rows: range, length: int) -> range:
    """Returns a range of rows that exist, from the start if all of them count from the end."""
    first, last = rows[0], rows[-1]
    for row in (first, last):
        if not -length <= row < length:
            raise IndexError(f"index {row} is out of bounds for axis 0 with size {length}")
    if first < 0 and last < 0:
        first, last = first + length, last + length
    step = rows.step if len(rows) > 1 else 1
    return range(first, last + (1 if step > 0 else -1), step)


def parse_weights(weights: Any, memory: int) -> npt.NDArray[np.float64]:
    """Returns the weights as float64; the core checks their values, and claims their table.

    Raises:
        TypeError: They are not real numbers.
        ValueError: They have several axes, or are too many for `memory`.
    """
    found = np.asarray(weights)
    if found.dtype.kind not in "iuf":
        raise TypeError(f"weights must be numbers, not {found.dtype}")
    if found.ndim != 1:
        raise ValueError(f"weights must have one axis, not shape {found.shape}")
    if found.dtype != np.float64 and found.size * 8 > memory:  # before it is converted
        raise ValueError(
            f"memory: {_core.format_bytes(memory)} is too small: "
            f"{_core.format_bytes(found.size * 8)} for weights; use more"
        )
    return np.ascontiguousarray(found, np.float64)
