"""Reductions over an array on disk: each block is reduced, and the results are merged.

A reduction reads every element once. NumPy decides what is allowed and which type the result has;
sums are kept in a wider type than NumPy's, so that they are at least as accurate.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._compute import moments, steps
from lowtide._compute.blocks import BlockReader
from lowtide._compute.parallel import results
from lowtide._compute.steps import Job
from lowtide._index.window import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from lowtide._compute.blocks import Index
    from lowtide._compute.steps import Axes, State, Steps
    from lowtide._data.array import Array

    AnyArray = npt.NDArray[Any]
    Axis = int | tuple[int, ...] | None


def reduce(
    array: Array, name: str, axis: Axis = None, out: AnyArray | None = None, keepdims: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """Returns what `np.<name>(data, axis, out=out, keepdims=keepdims, **options)` returns.

    Raises what NumPy raises for the arguments, and what a read raises.
    """
    options = {key: value for key, value in options.items() if value is not None}
    function = getattr(np, name)
    if not array.size:
        array._check_open()
        nothing = empty(array.shape, array.dtype)
        if out is not None:
            options["out"] = out
        return function(nothing, axis=axis, keepdims=keepdims, **options)
    # NumPy checks the arguments on one element, and finds the type of the result.
    one = np.zeros((1,) * array.ndim, array.dtype)
    found = function(one, axis=axis, keepdims=keepdims, **(options | _HARMLESS.get(name, {})))
    job = Job(array.shape, _normalized(axis, array.ndim), np.asarray(found).dtype, options)
    return _run(array, _STEPS[name](job), _Result(job, out, keepdims))


# One element has no degree of freedom but with ddof=0; NumPy would warn.
_HARMLESS: dict[str, dict[str, Any]] = {
    name: {"ddof": 0} for name in ("var", "std", "nanvar", "nanstd")
}


def reduce_ufunc(
    array: Array, ufunc: np.ufunc, axis: Axis, dtype: Any, out: AnyArray | None, keepdims: bool
) -> Any:
    """Returns what `ufunc.reduce(data, axis, dtype, out, keepdims)` returns.

    The operation must be associative and commutative: the blocks are reduced on their own.
    """
    if not array.size:
        array._check_open()
        nothing = empty(array.shape, array.dtype)
        return ufunc.reduce(nothing, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
    one = np.zeros((1,) * array.ndim, array.dtype)
    found = np.asarray(ufunc.reduce(one, axis=axis, dtype=dtype)).dtype
    job = Job(array.shape, _normalized(axis, array.ndim), found, {"dtype": dtype})
    make = steps.total if ufunc is np.add else steps.of_ufunc(ufunc)
    return _run(array, make(job), _Result(job, out, keepdims))


def _normalized(axis: Axis, ndim: int) -> Axes:
    if axis is None or not ndim:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(operator.index(one) % ndim for one in given))


class _Result:
    """The array that a reduction fills: the caller's or a new one."""

    def __init__(self, job: Job, out: AnyArray | None, keepdims: bool) -> None:
        dtype, self.axes = job.dtype, job.axes
        full = tuple(1 if a in job.axes else extent for a, extent in enumerate(job.shape))
        kept = tuple(extent for a, extent in enumerate(job.shape) if a not in job.axes)
        self._shape = full if keepdims else kept
        self._out = out
        if out is None:
            self._full = empty(full, dtype)
            return
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out must be an ndarray, not {type(out).__name__}")
        if out.shape != self._shape:
            raise ValueError(f"out must have shape {self._shape}, not {out.shape}")
        if not out.flags.writeable:
            raise ValueError("out must be writable, but it is read-only")
        if not np.can_cast(dtype, out.dtype, "same_kind"):
            raise TypeError(f"cannot cast the result from {dtype} to {out.dtype}, the dtype of out")
        self._full = out.reshape(full)

    def place(self, index: Index) -> Index:
        """Returns where a block at `index` of the array belongs."""
        whole = slice(0, 1)
        return tuple(whole if a in self.axes else part for a, part in enumerate(index))

    def put(self, place: Index, found: AnyArray) -> None:
        self._full[place] = found

    def value(self) -> Any:
        if self._out is not None:
            return self._out
        found = self._full.reshape(self._shape)
        return found if self._shape else found[()]


def _run(array: Array, steps: Steps, result: _Result) -> Any:
    axes = result.axes
    place: Index | None = None
    state: State = ()
    for index, new in results(BlockReader(array, axes, steps.most_items), steps.start):
        here = result.place(index)
        if here == place:
            state = steps.merge(state, new)
        else:
            if place is not None:
                result.put(place, steps.finish(state))
            place, state = here, new
        if len(axes) == array.ndim and steps.settled(state):
            break
    assert place is not None
    result.put(place, steps.finish(state))
    return result.value()


_STEPS: dict[str, Callable[[Job], Steps]] = {
    "sum": steps.total,
    "prod": steps.of_ufunc(np.multiply),
    "min": steps.of_ufunc(np.minimum),
    "max": steps.of_ufunc(np.maximum),
    "any": steps.of_ufunc(np.logical_or),
    "all": steps.of_ufunc(np.logical_and),
    "mean": steps.mean,
    "var": moments.spread(skip_nan=False, root=False),
    "std": moments.spread(skip_nan=False, root=True),
    "argmin": steps.of_place(np.argmin, np.less),
    "argmax": steps.of_place(np.argmax, np.greater),
    "ptp": steps.ptp,
    "count_nonzero": steps.count_nonzero,
    "nansum": moments.nansum,
    "nanmean": moments.nanmean,
    "nanvar": moments.spread(skip_nan=True, root=False),
    "nanstd": moments.spread(skip_nan=True, root=True),
    "nanmin": moments.nanextreme(np.fmin),
    "nanmax": moments.nanextreme(np.fmax),
}
