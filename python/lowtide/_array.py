"""An on-disk array with NumPy's manners, read within a memory budget."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments, _core, _index
from lowtide._batches import Batches
from lowtide._closing import Closing
from lowtide._operators import NoTruth
from lowtide._source import CoreSource, FileColumns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    AnyArray = npt.NDArray[Any]

# Rows of an iteration over the array come in chunks of about this size, if the budget allows.
_CHUNK_BYTES = 1 << 20
# What a batch needs for a row beside its bytes (its number, its read), at most: rows may be tiny.
_ROW_EXTRA_BYTES = 32
# The budget of the second view of Fortran-order files; its reads are long and need no look-ahead.
_COLUMNS_BYTES = 4 << 20


class Array(NoTruth, Closing):
    """An array in files, indexed as NumPy indexes and read within `memory` bytes.

    Results of an index, a slice and `take` are ndarrays of their own. It has no operators: `a == 3`
    and `a + 1` raise TypeError, `a[i:j] == 3` does not. Any thread may use it. Made by
    `lowtide.open`, which says what the arguments mean. Pickles by reference.
    """

    __slots__ = (
        "__weakref__", "_asked", "_columns", "_core", "_dtype", "_paths", "_shape", "_source",
    )  # fmt: skip

    def __init__(
        self,
        path: Path | Sequence[Path],
        dtype: npt.DTypeLike | None = None,
        shape: int | Sequence[int] | None = None,
        offset: int | None = None,
        order: str | None = None,
        memory: int | str | None = None,
        engine: str = "auto",
        cache: str = "auto",
        gap: int | str | None = None,
    ) -> None:
        names, expand = _arguments.path_list(path)
        descr, given = _arguments.descr(dtype)
        axes = _arguments.axes(shape)
        if offset is not None:
            offset = _arguments.integer(offset, "offset", 0, _arguments.MAX)
        fortran = _arguments.is_fortran(order)
        budget = _arguments.memory_bytes(memory)
        engine, cache = _arguments.word(engine, "engine"), _arguments.word(cache, "cache")
        most = _arguments.gap_bytes(gap)
        core = _core.Array.open(
            names, expand, descr, axes, offset, fortran, budget, engine, cache, gap_bytes=most
        )
        self._core = core
        self._shape = core.shape
        found = _arguments.dtype_of(core.descr)
        # A type from outside NumPy is void in a header; the caller knows better.
        self._dtype = given if given is not None and given.itemsize == found.itemsize else found
        self._source = CoreSource(core, self._shape, self._dtype)
        self._columns: FileColumns | None = None
        self._paths = [os.path.abspath(os.fsdecode(name)) for name in core.paths]
        asked = None if dtype is None else np.dtype(dtype)
        self._asked = (asked, axes, offset, order, memory, engine, cache, gap)
        if core.fortran_order and self.nbytes:
            flat = core.flat(min(core.memory_bytes, _COLUMNS_BYTES))
            self._columns = FileColumns(flat, core.file_rows(), self._shape, self._dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of all axes."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element as stored, byte order too."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements; the file has these and its header."""
        return self.size * self._dtype.itemsize

    @property
    def path(self) -> str:
        """The absolute path of the file, of the first one where there are several."""
        return self._paths[0]

    @property
    def paths(self) -> list[str]:
        """The absolute paths of all files in the order of their rows; empty ones are left out."""
        return list(self._paths)

    @property
    def format(self) -> str:
        """ "npy" or "raw"."""
        return self._core.format

    @property
    def order(self) -> str:
        """ "C" or "F": how the elements lie in the file. Results are in C order."""
        return "F" if self._core.fortran_order else "C"

    @property
    def memory(self) -> int:
        """The budget in force, in bytes."""
        return self._core.memory_bytes

    @property
    def engine(self) -> str:
        """What serves reads now: "pread", "uring", "pread+uring" or "memory"."""
        return str(self._core.stats()["engine"])

    @property
    def cache(self) -> str:
        """ "keep" or "drop": what becomes of the page cache that reads bring in."""
        return str(self._core.stats()["cache"])

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._core.closed

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __getitem__(self, index: Any) -> Any:
        """What NumPy gives for the same index: an ndarray of its own, or a scalar.

        What must be read beyond the result passes through a buffer within `memory`. Raises
        IndexError as NumPy does, OSError, FormatError, and ValueError after `close`.
        """
        self._check_open()
        return _index.get(self._source, index, self._columns)

    def take(self, idx: npt.ArrayLike, out: AnyArray | None = None) -> AnyArray:
        """The rows `idx` in that order, duplicates allowed, negative ones from the end.

        The result is an ndarray of its own, or `out`: C-contiguous, writable, of the right shape
        and dtype. Raises IndexError, TypeError (not integers), ValueError (`out` does not fit).
        """
        self._check_open()
        if not self._shape:
            raise TypeError("take from a 0-d array: it has no rows")
        if out is not None:
            _arguments.check_out(out, np.shape(idx) + self._shape[1:], self._dtype)
        return _index.take(self._source, idx, out)

    def __iter__(self) -> Iterator[Any]:
        """The rows in file order, each in memory of its own, read ahead in chunks."""
        self._check_open()
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        return self._each_row()

    def _each_row(self) -> Iterator[Any]:
        row_bytes = self._core.row_bytes + _ROW_EXTRA_BYTES
        size = min(_CHUNK_BYTES, self.memory // 16) // row_bytes
        if size < 1:
            for row in range(self._shape[0]):
                yield self[row]
            return
        for chunk in self.iter_chunks(min(size, 1 << 16)):
            for found in chunk:
                yield found.copy() if isinstance(found, (np.ndarray, np.void)) else found

    def iter_chunks(self, rows: int) -> Iterator[AnyArray]:
        """Chunks of `rows` consecutive rows in file order, read ahead; the last may be shorter.

        A chunk is borrowed as a batch is: valid for as long as anybody holds it. Raises ValueError
        at once where the budget is too small.
        """
        rows = _arguments.integer(rows, "rows", 1, _arguments.MAX)
        return _chunks(self.batches(rows, order="sequential"))

    def batches(
        self,
        batch_size: int,
        order: str | npt.NDArray[np.integer[Any]] = "shuffle",
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
    ) -> Batches:
        """An epoch as an iterator of (idx, rows): every row exactly once, the last batch short.

        batch_size: rows. order: "shuffle", "sequential", or an integer array of rows; entries may
        repeat. A small one is copied into `memory`; one above a sixteenth of it is borrowed and
        read-only until the iterator is closed or gone. seed, epoch: the shuffle is a pure function
        of both, whatever the budget and engine.
        rank, world_size: this rank gets batches rank, rank + world_size, ... of the one order.
        drop_last: every batch is full and every rank gets as many: what does not make up one more
        batch for every rank is left out, up to batch_size * world_size - 1 rows.

        Raises ValueError (a bad argument; drop_last that leaves nothing; a budget too small, with
        what was needed for what), TypeError, IndexError (an entry of `order` out of range).
        """
        self._check_open()
        return Batches(
            self._core, self._shape, self._dtype, batch_size, order, seed, epoch, rank, world_size,
            drop_last,
        )  # fmt: skip

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """The whole array in memory of its own if it is within `memory`, else ValueError."""
        if copy is False:
            raise ValueError(
                "a lowtide.Array is on disk: it cannot become an ndarray without a copy"
            )
        if self.nbytes > self.memory:
            raise ValueError(
                f"this array has {_core.format_bytes(self.nbytes)}, more than its memory="
                f"{_core.format_bytes(self.memory)}, and will not be loaded whole by accident: "
                "use a[...] to load it nevertheless, a.iter_chunks(rows) or a.batches(rows) to "
                "go through it"
            )
        whole: AnyArray = np.asarray(self[...])
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _instead(self) -> str:
        return (
            f"its elements are on disk ({_core.format_bytes(self.nbytes)}). Index it first, as in "
            "a[i:j] or a[...], or go through it with a.iter_chunks(rows) or a.batches(rows)"
        )

    def stats(self) -> dict[str, Any]:
        """Where the bytes came from so far, what serves them and why, and what memory is held.

        bytes_asked, bytes_read, reads, merged, wait_ns, gap_bytes, engine, engine_reason, cache,
        cache_reason, layout, and memory: limit, claims by name, held_by_you (all in bytes).
        """
        now = self._core.stats()
        if self._columns is not None:
            beside = self._columns.stats()
            for key in ("bytes_asked", "bytes_read", "reads", "merged", "wait_ns"):
                now[key] += beside[key]
        return now

    def close(self) -> None:
        """Closes the files; batches under way go on, further reads raise ValueError."""
        self._core.close()
        if self._columns is not None:
            self._columns.close()

    def _check_open(self) -> None:
        if self._core.closed:
            raise ValueError(f"{self._paths[0]}: this array is closed")

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._paths, self._asked, self._shape, self._core.descr)

    def __repr__(self) -> str:
        files = repr(self._paths[0])
        if len(self._paths) > 1:
            files += f" and {len(self._paths) - 1} more"
        about = f"<lowtide.Array shape={self._shape} dtype={self._dtype} order={self.order} {files}"
        if self.closed:
            return about + " closed>"
        now = self.stats()
        return (
            f"{about} memory={_core.format_bytes(self.memory)} engine={now['engine']} "
            f"({now['engine_reason']}) cache={now['cache']} ({now['cache_reason']})>"
        )


def _chunks(batches: Batches) -> Iterator[AnyArray]:
    with batches:
        for _, rows in batches:
            yield rows


def _reopen(
    paths: list[str], arguments: tuple[Any, ...], shape: tuple[int, ...], descr: str
) -> Array:
    """An Array from its pickle: the same files, which must still hold what they held."""
    array = Array(paths, *arguments)
    if array.shape != shape or array._core.descr != descr:
        found = f"shape {array.shape}, dtype {array.dtype}"
        raise _core.FormatError(
            f"{paths[0]}: was pickled with shape {shape}, dtype {descr}, and has now {found}"
        )
    return array
