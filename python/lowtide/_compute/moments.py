"""Variance of blocks, merged by Chan's method; and reductions that leave NaN out."""

from __future__ import annotations

import math
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._compute.steps import Job, Steps
from lowtide._compute.sums import sum_block

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from lowtide._compute.blocks import Index
    from lowtide._compute.steps import State

    AnyArray = npt.NDArray[Any]

# A block and its float64 array stay in the cache.
_MOST_ITEMS = 1 << 18
# A warning names the line that called the method, or one of the functions that leave NaN out.
_LEVEL, _NAN_LEVEL = 6, 7


def _without_nan(block: AnyArray, value: float) -> tuple[AnyArray, AnyArray | None]:
    """Returns the block with `value` for NaN, and where it is not NaN (None: NaN cannot occur)."""
    if block.dtype.kind not in "fc":
        return block, None
    nan = np.isnan(block)
    return np.where(nan, block.dtype.type(value), block), ~nan


def _counts(job: Job, block: AnyArray, there: AnyArray | None) -> AnyArray:
    if there is None:
        kept = [1 if axis in job.axes else extent for axis, extent in enumerate(block.shape)]
        return np.full(kept, block.size // math.prod(kept), np.float64)
    found: AnyArray = np.add.reduce(there, job.axes, np.float64, keepdims=True)
    return found


class _Scratch(threading.local):
    """Memory for one array, kept because malloc would return it to the system after each block."""

    memory: AnyArray | None = None

    def like(self, block: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
        """Returns an uninitialised array with the shape and order of `block`."""
        if self.memory is None or len(self.memory) < block.size:
            self.memory = np.empty(block.size, dtype)
        fortran = block.flags.f_contiguous and not block.flags.c_contiguous
        return self.memory[: block.size].reshape(block.shape, order="F" if fortran else "C")


def spread(skip_nan: bool, root: bool) -> Callable[[Job], Steps]:
    """Returns the steps of var, std (`root`), nanvar and nanstd.

    The state is how many elements there are, their mean, and the sum of their squared distances
    from it.
    """

    def steps(job: Job) -> Steps:
        scratch = _Scratch()

        def finish(state: State) -> AnyArray:
            freedom = state[0] - job.options.get("ddof", 0)
            if (freedom <= 0).any():
                text = "Degrees of freedom <= 0 for slice"
                level = _NAN_LEVEL if skip_nan else _LEVEL
                warnings.warn(text, RuntimeWarning, stacklevel=level)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.maximum(state[2], 0) / np.maximum(freedom, 0)
            if skip_nan:
                found = np.where(freedom > 0, found, np.nan)
            result: AnyArray = (np.sqrt(found) if root else found).astype(job.dtype)
            return result

        return Steps(
            lambda block, index: _start_spread(job, block, skip_nan, scratch),
            _merge_spread,
            finish,
            most_items=_MOST_ITEMS,
        )

    return steps


def _start_spread(job: Job, block: AnyArray, skip_nan: bool, scratch: _Scratch) -> State:
    work = np.result_type(block.dtype, np.float64)
    there = None
    if skip_nan:
        block, there = _without_nan(block, 0)
    count = _counts(job, block, there)
    many = np.maximum(count, 1)
    # Any number close to the mean will do: `rest` makes up for what it lacks.
    near = sum_block(block, job.axes, work) / many
    apart = np.subtract(block, near, dtype=work, out=scratch.like(block, work))
    if there is not None:
        apart *= there
    rest = sum_block(apart, job.axes, work)
    square = _square(apart) if work.kind == "c" else np.square(apart, out=apart)
    squares = sum_block(square, job.axes, square.dtype)
    return count, near + rest / many, squares - _square(rest) / many


def _square(x: AnyArray) -> AnyArray:
    found = np.asarray(np.square(x.real))
    if x.dtype.kind == "c":
        found += np.square(x.imag)
    return found


def _merge_spread(old: State, new: State) -> State:
    count = old[0] + new[0]
    share = new[0] / np.maximum(count, 1)
    apart = new[1] - old[1]
    return count, old[1] + apart * share, old[2] + new[2] + _square(apart) * old[0] * share


def nansum(job: Job) -> Steps:
    return Steps(
        lambda block, index: (sum_block(_without_nan(block, 0)[0], job.axes, job.dtype),),
        lambda old, new: (np.add(old[0], new[0]),),
        lambda state: state[0].astype(job.dtype),
    )


def nanmean(job: Job) -> Steps:

    def start(block: AnyArray, index: Index) -> State:
        block, there = _without_nan(block, 0)
        return _counts(job, block, there), sum_block(block, job.axes, job.dtype)

    def finish(state: State) -> AnyArray:
        if not state[0].all():
            warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=_NAN_LEVEL)
        with np.errstate(invalid="ignore"):
            return np.true_divide(state[1], state[0]).astype(job.dtype)

    return Steps(start, lambda old, new: (old[0] + new[0], old[1] + new[1]), finish)


def nanextreme(ufunc: np.ufunc) -> Callable[[Job], Steps]:
    """Returns the steps of nanmin (with np.fmin) or nanmax (with np.fmax)."""

    def steps(job: Job) -> Steps:
        def finish(state: State) -> AnyArray:
            if state[0].dtype.kind in "fcmM" and np.isnan(state[0]).any():
                text = "All-NaN slice encountered" if job.axes else "All-NaN axis encountered"
                warnings.warn(text, RuntimeWarning, stacklevel=_NAN_LEVEL)
            return state[0]

        return Steps(
            lambda block, index: (np.asarray(ufunc.reduce(block, job.axes, keepdims=True)),),
            lambda old, new: (ufunc(old[0], new[0]),),
            finish,
        )

    return steps
