"""Ray Data reads what Lowtide opens, in blocks of consecutive rows.

```python
ds = lt.ray.read("part_*.npy")  # a ray.data.Dataset with a column "data"
ds = lt.ray.read({"image": images, "label": labels})  # arrays of equal length
```

To train from shuffled batches, use `lowtide.torch.Loader` in each worker instead: it needs no
object store, and it resumes. To shuffle a data set once, use `lowtide.jobs.shuffle`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.data import Dataset, Datasource, ReadTask, read_datasource
from ray.data.block import Block, BlockAccessor, BlockMetadata

from lowtide import _arguments
from lowtide._data.array import Array
from lowtide._data.open import open as open_array
from lowtide._data.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    Source = Path | Sequence[Path] | Array | dict[str, Array] | Tokens

__all__ = ["read"]

_BLOCK_BYTES = 32 << 20  # of one block, far below the 128 MiB that Ray Data splits at
_COLUMN = "data"  # as in ray.data.read_numpy


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)


def read(source: Source, block_size: int | None = None, **options: Any) -> Dataset:
    """Makes a Ray dataset of an array, of several arrays or of tokens; reads only the headers.

    Workers open the files again, so they must see them under the same paths.

    Args:
        source: What `lowtide.open` takes or has returned, which becomes the column "data"; a dict
            of arrays of the same length, each a column; or tokens, whose windows become the column
            "tokens".
        block_size: Tokens of a window, as for `lowtide.Loader`: a row has block_size + 1 tokens in
            the stored dtype. Only for tokens, and required there.
        options: Passed to `ray.data.read_datasource`, such as `override_num_blocks`.

    Returns:
        A `ray.data.Dataset`. Each block has consecutive rows; Ray delivers the blocks in file order
        only if its option `preserve_order` is set.

    Raises:
        OSError: A file cannot be opened.
        FormatError: The bytes contradict their header.
        ValueError: The arrays have different lengths, or `block_size` is missing, unwanted or
            longer than the tokens.
        TypeError: An argument has the wrong type.
    """
    return read_datasource(_Rows(_columns(source, block_size)), **options)


class _Columns:
    """Arrays whose rows are delivered together."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) > 1:
            told = ", ".join(f"{name}: {len(array)}" for name, array in arrays.items())
            raise ValueError(f"the arrays must have the same length, not {told}")
        self.rows = lengths.pop()
        self.row_bytes = sum(
            array.nbytes // len(array) if len(array) else 0 for array in arrays.values()
        )
        self.paths = [path for array in arrays.values() for path in array.paths]

    def block(self, first: int, last: int) -> dict[str, Any]:
        return {name: _native(array[first:last]) for name, array in self._arrays.items()}


class _Windows:
    """Windows of tokens, in stream order."""

    def __init__(self, tokens: Tokens, block_size: int) -> None:
        self._tokens = tokens
        self._block = block_size
        self.rows = max(0, len(tokens) - 1) // block_size
        if not self.rows:
            raise ValueError(
                f"block_size={block_size} needs {block_size + 1} tokens, but there are "
                f"{len(tokens)}"
            )
        self.row_bytes = (block_size + 1) * tokens.dtype.itemsize
        self.paths = tokens.paths

    def block(self, first: int, last: int) -> dict[str, Any]:
        flat = _native(self._tokens[first * self._block : last * self._block + 1])
        windows = np.lib.stride_tricks.sliding_window_view(flat, self._block + 1)
        return {"tokens": windows[:: self._block].copy()}


class _Rows(Datasource):
    """Ranges of rows, each a read task that delivers blocks of bounded size."""

    def __init__(self, source: _Columns | _Windows) -> None:
        super().__init__()
        self._source = source

    def get_name(self) -> str:
        return "Lowtide"

    def estimate_inmemory_data_size(self) -> int:
        return self._source.rows * self._source.row_bytes

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        source = self._source
        step = max(1, -(-source.rows // max(1, parallelism)))
        tasks = []
        for first in range(0, source.rows, step):
            last = min(source.rows, first + step)
            about = BlockMetadata(
                num_rows=last - first,
                size_bytes=(last - first) * source.row_bytes,
                exec_stats=None,
                input_files=source.paths,
            )
            read = _Range(source, first, last)
            tasks.append(ReadTask(read, about, per_task_row_limit=per_task_row_limit))
        return tasks


class _Range:
    """What a read task calls; a pickle holds the source by reference."""

    def __init__(self, source: _Columns | _Windows, first: int, last: int) -> None:
        self._source, self._first, self._last = source, first, last

    def __call__(self) -> Iterator[Block]:
        step = max(1, _BLOCK_BYTES // max(1, self._source.row_bytes))
        for first in range(self._first, self._last, step):
            rows = self._source.block(first, min(self._last, first + step))
            yield BlockAccessor.batch_to_block(rows)


def _columns(source: Any, block_size: int | None) -> _Columns | _Windows:
    if isinstance(source, Tokens):
        if block_size is None:
            raise ValueError("tokens need block_size: a row is a window of block_size + 1 tokens")
        return _Windows(source, _arguments.integer(block_size, "block_size", 1, _arguments.MAX))
    if block_size is not None:
        raise ValueError("block_size is for tokens: pass what lowtide.tokens returned")
    arrays = source if isinstance(source, dict) else {_COLUMN: source}
    if not arrays:
        raise ValueError("source is an empty dict: give at least one array")
    found = {}
    for name, array in arrays.items():
        if isinstance(array, (str, bytes, os.PathLike, list, tuple)):
            array = open_array(array)
        if not isinstance(array, Array):
            raise TypeError(
                "source must be a path, an array, a dict of arrays or tokens, not "
                f"{_arguments.told(array)}"
            )
        if not array.ndim:
            raise TypeError("a 0-d array has no rows")
        found[name] = array
    return _Columns(found)


def _native(rows: Any) -> Any:
    """Returns rows in the machine's byte order, the only one that Arrow's blocks support."""
    return rows.astype(rows.dtype.newbyteorder("="), copy=False)
