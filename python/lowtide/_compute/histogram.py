"""np.histogram over an array on disk, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._compute.blocks import BlockReader, is_array, load
from lowtide._compute.parallel import results
from lowtide._index.window import empty

if TYPE_CHECKING:
    import numpy.typing as npt

    from lowtide._compute.blocks import Index
    from lowtide._data.array import Array

    AnyArray = npt.NDArray[Any]


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[AnyArray, AnyArray]:
    """Returns what np.histogram returns. A number of bins without a range reads the data twice."""
    bins, range = load(bins), load(range)
    if not is_array(a):
        return np.histogram(load(a), bins, range, density, load(weights))
    if not (weights is None or is_array(weights)):
        weights = np.asarray(weights)
    if weights is not None and weights.shape != a.shape:
        raise ValueError("weights should have the same shape as a.")
    bins, range, edges = _bins(a, bins, range)

    def count(block: AnyArray, index: Index) -> AnyArray:
        own = None if weights is None else weights[index]
        return np.histogram(_numbers(block), bins, range, weights=own)[0]

    counts: AnyArray | None = None
    for _, part in results(BlockReader(a), count) if a.size else ():
        counts = part if counts is None else counts + part
    if counts is None:
        own = None if weights is None else np.empty(0, weights.dtype)
        counts = np.histogram(np.empty(0, edges.dtype), bins, range, weights=own)[0]
    if density:
        return counts / np.diff(edges).astype(float) / counts.sum(), edges
    return counts, edges


def bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> AnyArray:
    """Returns what np.histogram_bin_edges returns."""
    if not is_array(a):
        return np.histogram_bin_edges(load(a), load(bins), load(range), load(weights))
    return _bins(a, load(bins), load(range))[2]


def _numbers(block: AnyArray) -> AnyArray:
    return block.view(np.uint8) if block.dtype.kind == "b" else block


def _bins(a: Array, bins: Any, range: Any) -> tuple[Any, Any, AnyArray]:
    """Returns bins and range for each block, and the edges that NumPy finds for all of them."""
    if isinstance(bins, str):
        raise TypeError(
            f"np.histogram with bins={bins!r} needs all elements of a lowtide.Array at once: give "
            "the number of bins or their edges"
        )
    if np.ndim(bins) == 0 and range is None and a.size:
        ends = _ends(a)
        return bins, (ends[0], ends[1]), np.histogram_bin_edges(ends, bins)
    edges = np.histogram_bin_edges(empty((0,), a.dtype), bins, range)
    return bins, range, edges


def _ends(a: Array) -> AnyArray:
    """Returns the smallest and the largest element."""
    low: Any = None
    high: Any = None
    for _, (first, last) in results(BlockReader(a), lambda block, _: (block.min(), block.max())):
        low = first if low is None else np.minimum(low, first)
        high = last if high is None else np.maximum(high, last)
    return np.array([low, high], a.dtype)
