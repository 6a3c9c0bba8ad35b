"""How each reduction works on blocks: starts with one, merges two, and finishes."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowtide._compute.sums import sum_block, wide

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from lowtide._compute.blocks import Index

    AnyArray = npt.NDArray[Any]
    Axes = tuple[int, ...]
    # What is known of the blocks so far; every array has length 1 along the reduced axes.
    State = tuple[AnyArray, ...]


def _never(state: State) -> bool:
    return False


class Job(NamedTuple):
    """One reduction of one array."""

    shape: tuple[int, ...]
    axes: Axes
    dtype: np.dtype[Any]  # of the result
    options: dict[str, Any]  # as the caller gave them: dtype, ddof

    @property
    def many(self) -> int:
        """Number of elements behind one element of the result."""
        return math.prod(self.shape[axis] for axis in self.axes)


class Steps(NamedTuple):
    """How a job works on blocks. A state never refers to the memory of a block."""

    start: Callable[[AnyArray, Index], State]
    merge: Callable[[State, State], State]
    finish: Callable[[State], AnyArray]
    # Whether no further block can change the state.
    settled: Callable[[State], bool] = _never
    # Most elements of a block, for a start with large temporary arrays.
    most_items: int = sys.maxsize


def of_ufunc(ufunc: np.ufunc) -> Callable[[Job], Steps]:
    """Returns the steps of `ufunc.reduce`; the ufunc must be associative and commutative."""

    def steps(job: Job) -> Steps:
        told: dict[str, Any] = {"axis": job.axes, "keepdims": True}
        if ufunc is np.multiply:
            told["dtype"] = wide(job.dtype)  # a product leaves the range of a type even sooner
        elif job.options.get("dtype") is not None:
            told["dtype"] = job.options["dtype"]
        settled = _never
        if ufunc in (np.logical_or, np.logical_and):
            end = ufunc is np.logical_or
            settled = lambda state: bool((state[0] == end).all())  # noqa: E731
        return Steps(
            lambda block, index: (np.asarray(ufunc.reduce(block, **told)),),
            lambda old, new: (ufunc(old[0], new[0]),),
            lambda state: state[0].astype(job.dtype, copy=False),
            settled,
        )

    return steps


def total(job: Job) -> Steps:
    return Steps(
        lambda block, index: (sum_block(block, job.axes, job.dtype),),
        lambda old, new: (np.add(old[0], new[0]),),
        lambda state: state[0].astype(job.dtype),
    )


def mean(job: Job) -> Steps:
    return total(job)._replace(
        finish=lambda state: np.true_divide(state[0], job.many).astype(job.dtype)
    )


def ptp(job: Job) -> Steps:
    low, high = of_ufunc(np.minimum)(job), of_ufunc(np.maximum)(job)
    return Steps(
        lambda block, index: low.start(block, index) + high.start(block, index),
        lambda old, new: low.merge(old[:1], new[:1]) + high.merge(old[1:], new[1:]),
        lambda state: np.subtract(state[1], state[0]),
    )


def count_nonzero(job: Job) -> Steps:
    def start(block: AnyArray, index: Index) -> State:
        if len(job.axes) == block.ndim:  # NumPy counts elements of more types then
            return (np.full((1,) * block.ndim, np.count_nonzero(block), job.dtype),)
        return (np.count_nonzero(block, axis=job.axes, keepdims=True),)

    return Steps(
        start,
        lambda old, new: (np.add(old[0], new[0]),),
        lambda state: state[0],
    )


def of_place(find: Callable[..., Any], beats: np.ufunc) -> Callable[[Job], Steps]:
    """Returns the steps of argmin or argmax: a state holds the best values and their places."""

    def steps(job: Job) -> Steps:
        def start(block: AnyArray, index: Index) -> State:
            if len(job.axes) == 1 and block.ndim > 1:
                axis = job.axes[0]
                found = find(block, axis=axis, keepdims=True)
                return np.take_along_axis(block, found, axis), found + (index[axis].start or 0)
            at = np.unravel_index(find(block), block.shape)
            position = 0
            for place, part, extent in zip(at, index, job.shape):
                position = position * extent + (part.start or 0) + int(place)
            one = (1,) * block.ndim
            return np.full(one, block[at]), np.full(one, position, np.intp)

        return Steps(start, merge, lambda state: state[1])

    def merge(old: State, new: State) -> State:
        with np.errstate(invalid="ignore"):
            better, equal = beats(new[0], old[0]), np.equal(new[0], old[0])
        if old[0].dtype.kind in "fcmM":  # the first NaN beats everything
            old_nan, new_nan = np.isnan(old[0]), np.isnan(new[0])
            better = ~old_nan & (better | new_nan)
            equal |= old_nan & new_nan
        better |= equal & (new[1] < old[1])
        return tuple(np.where(better, n, o) for o, n in zip(old, new))

    return steps
