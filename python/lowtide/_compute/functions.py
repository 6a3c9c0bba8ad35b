"""NumPy's functions on arrays on disk (`__array_function__`): streamed, loaded whole or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._compute import elementwise, reduce
from lowtide._compute.blocks import READ_ONLY, is_array, load
from lowtide._compute.histogram import bin_edges, histogram
from lowtide._compute.save import save
from lowtide._index.window import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[..., Any]

# The arguments of NumPy's reductions after the array, in the order in which they may be given.
# Those that are not named here (where, initial, mean, correction) need the whole array.
_REDUCTIONS = {
    "sum": "axis dtype out keepdims",
    "prod": "axis dtype out keepdims",
    "min": "axis out keepdims",
    "max": "axis out keepdims",
    "any": "axis out keepdims",
    "all": "axis out keepdims",
    "mean": "axis dtype out keepdims",
    "var": "axis dtype out ddof keepdims",
    "std": "axis dtype out ddof keepdims",
    "argmin": "axis out keepdims",
    "argmax": "axis out keepdims",
    "ptp": "axis out keepdims",
    "count_nonzero": "axis keepdims",
    "nansum": "axis dtype out keepdims",
    "nanmean": "axis dtype out keepdims",
    "nanvar": "axis dtype out ddof keepdims",
    "nanstd": "axis dtype out ddof keepdims",
    "nanmin": "axis out keepdims",
    "nanmax": "axis out keepdims",
}
# NumPy before 2.4 returns an int here.
_PYTHON_INTS = ("count_nonzero",) if isinstance(np.count_nonzero([1]), int) else ()
# These compare elements from all over the array, so that no order of blocks helps.
_NEED_ALL = (
    "median", "nanmedian", "percentile", "nanpercentile", "quantile", "nanquantile", "sort",
    "argsort", "sort_complex", "lexsort", "partition", "argpartition", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
)  # fmt: skip
_ORDER_STATISTICS = ("median", "percentile", "quantile")
_ABOUT = (
    "can_cast", "empty_like", "full_like", "iscomplexobj", "isrealobj", "may_share_memory", "ndim",
    "ones_like", "result_type", "shape", "shares_memory", "size", "zeros_like",
)  # fmt: skip
_WRITE = ("copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal")


def call(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Implements `__array_function__`: NumPy calls it if an argument is an Array."""
    if is_array(kwargs.get("out")):
        raise TypeError(READ_ONLY)
    handler = _HANDLERS.get(function)
    if handler is None:
        return function(*load(args), **load(kwargs))
    return handler(function, args, kwargs)


def _reduction(name: str) -> Function:
    order = _REDUCTIONS[name].split()

    def handle(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        told = dict(zip(("a", *order), args)) | kwargs
        told = {key: value for key, value in told.items() if value is not np._NoValue}
        array = told.pop("a", None)
        if not is_array(array) or told.keys() - set(order) or len(args) > 1 + len(order):
            return function(*load(args), **load(kwargs))
        found = reduce.reduce(array, name, **told)
        whole = told.get("axis") is None and not told.get("keepdims")
        return int(found) if name in _PYTHON_INTS and whole else found

    return handle


def _refusal(name: str) -> Function:
    def handle(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        other = ""
        if any(name.endswith(word) for word in _ORDER_STATISTICS):
            other = "; np.histogram(a, bins, range) reads it in blocks and bounds the result"
        raise TypeError(
            f"np.{name} needs all elements of a lowtide.Array at once: if they fit into memory, "
            f"load them with np.{name}(a[...]){other}"
        )

    return handle


def _read_only(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args and is_array(args[0]):
        raise TypeError(READ_ONLY)
    return function(*load(args), **load(kwargs))


def _dot(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs.keys() - {"out"} or not 2 <= len(args) <= 3 or not all(map(np.ndim, args[:2])):
        return function(*load(args), **load(kwargs))
    return elementwise.matmul(*args, **kwargs)


def _take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: Any = "raise"
) -> Any:
    if not is_array(a):
        return np.take(load(a), load(indices), axis, out, mode)
    return a.take(load(indices), out, axis=axis, mode=mode)


def _about(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a function that needs only shape and type: one element stands for all of them."""

    def stand_in(one: Any) -> Any:
        return np.broadcast_to(empty((), one.dtype), one.shape) if is_array(one) else one

    return function(*map(stand_in, args), **{k: stand_in(v) for k, v in kwargs.items()})


def _plain(implementation: Function) -> Function:
    return lambda function, args, kwargs: implementation(*args, **kwargs)


def _handlers() -> dict[Function, Function]:
    found: dict[Function, Function] = {getattr(np, name): _reduction(name) for name in _REDUCTIONS}
    for name in _NEED_ALL:
        if hasattr(np, name):  # some are newer than the oldest NumPy that we support
            found[getattr(np, name)] = _refusal(name)
    found |= {getattr(np, name): _read_only for name in _WRITE}
    found |= {
        np.dot: _dot,
        np.histogram: _plain(histogram),
        np.histogram_bin_edges: _plain(bin_edges),
        np.save: _plain(save),
        np.take: _plain(_take),
    }
    found |= {getattr(np, name): _about for name in _ABOUT}
    found.setdefault(np.amin, _reduction("min"))  # in NumPy 1 these are the same functions
    found.setdefault(np.amax, _reduction("max"))
    return found


_HANDLERS = _handlers()
