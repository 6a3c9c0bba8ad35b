"""An array in blocks: the one way in which reductions, operators and np.save read it.

A block is a part of the array that fits the cache of a processor and is contiguous in its file. So
the work on an array needs the memory of one block and of its result, however large the array is.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lowtide._index import indexing
from lowtide._index.window import empty

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import TypeGuard

    import numpy.typing as npt

    from lowtide._data.array import Array

    AnyArray = npt.NDArray[Any]
    Index = tuple[slice, ...]

# Elements of a block: 2 MiB of float32, which stay in the cache of a processor.
BLOCK_ITEMS = 1 << 19
# A block has at most this share of `memory`: four threads and a few temporary float64 arrays each
# stay within the budget.
_SHARE = 32
_ITEM_BYTES = 4  # shorter elements count as much, because of these arrays

READ_ONLY = "a lowtide.Array only reads its files: results go to an ndarray of your own"


class InBlocks:
    """Base of `lowtide.Array`, which the modules below it recognise by this class."""

    __slots__ = ()


def is_array(one: object) -> TypeGuard[Array]:
    """Returns whether `one` is a `lowtide.Array`."""
    return isinstance(one, InBlocks)


def load(one: Any) -> Any:
    """Returns `one` with an ndarray for each Array in it. Raises ValueError above `memory`."""
    if is_array(one):
        return np.asarray(one)
    if type(one) in (list, tuple):
        return type(one)(map(load, one))
    if type(one) is dict:
        return {key: load(value) for key, value in one.items()}
    return one


def blocks(array: Array, inner: Collection[int] = ()) -> Iterator[tuple[Index, AnyArray]]:
    """Yields pairs (index, block) with `block` equal to `array[index]`, each element once.

    The next block overwrites this one. Without `inner`, the blocks come in file order.
    `BlockReader` documents the arguments.
    """
    reader = BlockReader(array, inner)
    buffer = reader.buffer()
    for index in reader.indices():
        yield index, reader.read(index, buffer)


class BlockReader:
    """Which blocks an array has, and how each is read. Any thread may read."""

    __slots__ = ("_array", "_axes", "_inner", "_steps")

    def __init__(
        self, array: Array, inner: Collection[int] = (), most_items: int = sys.maxsize
    ) -> None:
        """Reads nothing.

        Args:
            array: The array, with at least one element.
            inner: Axes whose blocks come directly after each other: a reduction over these axes
                finishes one part of its result before the next part begins.
            most_items: Most elements of a block, if fewer than usual.
        """
        array._check_open()
        self._array = array
        self._inner = inner
        self._axes = range(array.ndim)[::-1] if array._columns is not None else range(array.ndim)
        self._steps = _steps(array, self._axes, most_items) if array.nbytes else list(array.shape)

    def __len__(self) -> int:
        """Number of blocks."""
        return math.prod(-(-n // step) for n, step in zip(self._array.shape, self._steps))

    def indices(self) -> Iterator[Index]:
        """Yields the index of each block."""
        order = sorted(self._axes, key=lambda axis: axis in self._inner)
        return _indices(self._array.shape, self._steps, order)

    def buffer(self) -> AnyArray:
        """Returns memory for one block."""
        return empty((math.prod(self._steps),), self._array.dtype)

    def read(self, index: Index, buffer: AnyArray) -> AnyArray:
        """Returns the block at `index`, a view of `buffer`."""
        array = self._array
        shape = [part.stop - part.start for part in index]
        order: Literal["C", "F"] = "C" if array._columns is None else "F"
        block = buffer[: math.prod(shape)].reshape(shape, order=order)
        if not shape or not array.nbytes:
            block[...] = array[...]
        elif array._columns is not None:
            picks = [range(part.start, part.stop) for part in index]
            indexing.fill_columns(array._columns, picks, block)
        else:
            _read(array, [part.start for part in index], block)
        return block


def _steps(array: Array, axes: Collection[int], most_items: int) -> list[int]:
    """Returns the extent of a block on each axis; `axes` are from the outermost to the innermost.

    One axis is cut, the axes inside of it are whole, and a block has one entry of those outside.
    """
    item_bytes = max(array.dtype.itemsize, _ITEM_BYTES)
    limit = max(1, min(BLOCK_ITEMS, most_items, array.memory // _SHARE // item_bytes))
    steps = [1] * array.ndim
    items = 1
    for axis in reversed(list(axes)):
        extent = array.shape[axis]
        if items * extent > limit:
            count = -(-extent // max(1, limit // items))
            steps[axis] = -(-extent // count)  # blocks of about equal length
            break
        steps[axis] = extent
        items *= extent
    return steps


def _indices(shape: tuple[int, ...], steps: list[int], order: list[int]) -> Iterator[Index]:
    """Yields the indices of all blocks; the last axis of `order` changes fastest."""
    index = [slice(0, 0)] * len(shape)

    def fill(depth: int) -> Iterator[Index]:
        if depth == len(order):
            yield tuple(index)
            return
        axis = order[depth]
        for first in range(0, shape[axis], steps[axis]):
            index[axis] = slice(first, min(first + steps[axis], shape[axis]))
            yield from fill(depth + 1)

    return fill(0)


def _read(array: Array, first: list[int], block: AnyArray) -> None:
    """Reads the block that begins at the position `first` of an array in C order."""
    rows = array.shape[1:]
    if block.shape[1:] == rows:
        array._source.read_rows(first[0], len(block), block)
        return
    skip = 0
    for position, extent in zip(first[1:], rows):
        skip = skip * extent + position
    row = np.array(first[:1], np.int64)
    array._source.take_part(row, skip * array.dtype.itemsize, block.reshape(1, -1))
