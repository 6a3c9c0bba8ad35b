"""An on-disk array that behaves like an ndarray and is read within a memory budget."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments, _core
from lowtide._closing import Closing
from lowtide._data import foreign
from lowtide._data.array_facts import ArrayFacts
from lowtide._data.array_methods import ArrayMethods
from lowtide._data.batches import Batches
from lowtide._data.files import Files
from lowtide._data.source import CoreSource, FileColumns
from lowtide._data.store import local_options, remote_options
from lowtide._index import indexing
from lowtide._index.take import take_along

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    AnyArray = npt.NDArray[Any]

# Iterating over the array reads chunks of about this size, if the budget allows.
_CHUNK_BYTES = 1 << 20
# A batch needs at most this much per row beside its bytes (row number, read). Rows may be tiny.
_ROW_EXTRA_BYTES = 32
# Budget of the column view of Fortran-order files. Its reads are long and need no look-ahead.
_COLUMNS_BYTES = 4 << 20
_MEMORY = 4  # index of `memory` in Array._asked


class Array(ArrayMethods, ArrayFacts, Closing):
    """An on-disk array that is indexed like an ndarray and read within `memory` bytes.

    `lowtide.open` creates it and documents its arguments. Indexing and `take` return ndarrays that
    own their memory. So do reductions (`a.mean(axis=0)`), operators (`a > 3`) and NumPy's
    functions, which read the array in blocks; if the result of an operator would be larger than
    `memory`, it raises ValueError. Any thread may use an array. It is a context manager that
    closes the files. A pickle holds the paths and arguments, not the data; unpickling opens the
    files again.
    """

    __slots__ = (
        "__weakref__", "_asked", "_columns", "_core", "_dtype", "_key", "_paths", "_shape",
        "_source", "_store", "_where",
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
        requests: int | None = None,
        store: Any = None,
        cache_dir: Path | None = None,
        cache_bytes: int | str | None = None,
        key: str | None = None,
    ) -> None:
        names, expand = _arguments.path_list(path)
        descr, asked_dtype = _arguments.descr(dtype)
        axes = _arguments.axes(shape)
        if offset is not None:
            offset = _arguments.integer(offset, "offset", 0, _arguments.MAX)
        fortran = _arguments.is_fortran(order)
        reading = local_options(memory, engine, cache, gap)
        remote = remote_options(requests, store, cache_dir, cache_bytes)
        if key is not None:
            key = _arguments.word(key, "key")
        try:
            core = _core.Array.open(
                names,
                expand=expand,
                dtype=descr,
                shape=axes,
                offset_bytes=offset,
                fortran_order=fortran,
                key=key,
                **reading,
                **remote,
            )
        except (ValueError, IsADirectoryError, FileNotFoundError) as error:
            if not foreign.may_explain(error, names[0]):
                raise
            given = foreign.Given(key, descr, axes, offset, fortran)
            found = foreign.open_core(names, Files(store), given, {**reading, **remote})
            if found is None:
                raise
            core = found
        self._core = core
        self._shape = core.shape
        stored = _arguments.stored_dtype(core.descr, core.extension)
        # A header stores a type from outside NumPy as void; the caller's dtype is more exact.
        self._dtype = stored
        if asked_dtype is not None and asked_dtype.itemsize == stored.itemsize:
            self._dtype = asked_dtype
        self._source = CoreSource(core, self._shape, self._dtype, not core.fortran_order)
        self._columns: FileColumns | None = None
        self._paths = [_arguments.whole_path(os.fsdecode(name)) for name in core.paths]
        # To open it again; the paths that are shown lack the secrets of addresses.
        secret = any(map(_core.has_secret, names))
        self._where = [os.fsdecode(name) for name in names] if secret else self._paths
        asked = None if dtype is None else np.dtype(dtype)
        self._key = key
        self._store = store
        self._asked = (
            asked, axes, offset, order, memory, engine, cache, gap, requests, store,
            remote["cache_dir"] or None, cache_bytes, key,
        )  # fmt: skip
        if core.fortran_order and self.nbytes:
            flat = core.flat(min(core.memory_bytes, _COLUMNS_BYTES))
            self._columns = FileColumns(flat, core.file_rows(), self._shape, self._dtype)

    def __len__(self) -> int:
        """Number of rows. Raises TypeError for a 0-d array."""
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __getitem__(self, index: Any) -> Any:
        """Returns what NumPy returns for the same index, in memory of its own.

        Extra bytes that must be read to produce the result pass through a buffer within `memory`.

        Args:
            index: Any index that NumPy accepts: integers, slices, integer arrays, masks, fields.

        Returns:
            An ndarray that owns its memory, or a scalar.

        Raises:
            IndexError: The index is invalid for this shape, as in NumPy.
            OSError: A read failed.
            FormatError: A file has changed or is shorter than its header promises.
            ValueError: The array is closed.
        """
        found = self._source.get_plain(index)
        if found is not None:
            return found
        self._check_open()
        return indexing.get(self._source, index, self._columns)

    def take(
        self,
        idx: npt.ArrayLike,
        out: AnyArray | None = None,
        *,
        axis: int | None = 0,
        mode: str = "raise",
    ) -> AnyArray:
        """Reads rows in the given order; duplicates are allowed.

        Args:
            idx: Row numbers, integers in any shape. Negative ones count from the end.
            out: Array to fill: C-contiguous and writable, with this array's dtype and the shape
                `np.shape(idx) + a.shape[1:]`. Default: a new array.
            axis: Axis that `idx` counts along. None counts the elements of the flat array.
            mode: What to do with numbers that are out of range: "raise", "wrap" or "clip", as in
                NumPy. The last two treat negative numbers as out of range.

        Returns:
            `out`, or an ndarray that owns its memory.

        Raises:
            IndexError: A row number is out of range.
            TypeError: `idx` is not of an integer type, or the array is 0-d.
            ValueError: `out` does not fit, or the array is closed.
        """
        self._check_open()
        if not self._shape:
            raise TypeError("cannot take rows from a 0-d array: it has no rows")
        if axis != 0 or mode != "raise":
            return take_along(self, idx, out, axis, mode)
        if out is not None:
            _arguments.check_out(out, np.shape(idx) + self._shape[1:], self._dtype)
        return indexing.take(self._source, idx, out)

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the rows in file order, reading ahead; each row owns its memory."""
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
        """Iterates over consecutive rows in file order, reading ahead.

        Args:
            rows: Rows per chunk. The last chunk may be shorter.

        Returns:
            An iterator of ndarrays. Each one is borrowed from a pool: it is writable, and it stays
            valid and unchanged while any view of it lives.

        Raises:
            ValueError: `memory` is too small for such chunks (raised by this call, before any
                read), or the array is closed.
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
        """Iterates over one epoch as pairs (idx, rows), each row exactly once, reading ahead.

        Args:
            batch_size: Rows per batch. The last batch may be shorter.
            order: "shuffle", "sequential", or an integer array of row numbers, which may repeat.
                An array of up to a sixteenth of `memory` is copied if there is room. A larger one
                is borrowed: it becomes read-only until the iterator is closed or collected.
            seed: Seed of the shuffle, 0 to 2**64 - 1.
            epoch: Epoch of the shuffle, 0 to 2**64 - 1. The order depends on `seed` and `epoch`
                only, not on `memory` or `engine`.
            rank: This rank gets batches rank, rank + world_size, ... of the global order.
            world_size: Number of ranks.
            drop_last: If True, every batch is full and every rank gets the same number of batches;
                up to batch_size * world_size - 1 rows are left out.

        Returns:
            The iterator of batches.

        Raises:
            ValueError: An argument is invalid, `drop_last` leaves no batch, the array is closed, or
                `memory` is too small. In the last case the message lists what needs how many bytes.
            TypeError: An argument has the wrong type, or the array is 0-d.
            IndexError: An entry of `order` is out of range.
        """
        self._check_open()
        return Batches(
            self._core, self._shape, self._dtype, batch_size, order, seed, epoch, rank, world_size,
            drop_last,
        )  # fmt: skip

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """Loads the whole array into new memory, for `np.asarray(a)`.

        Raises:
            ValueError: The array is larger than `memory`, or `copy` is False.
        """
        if copy is False:
            raise ValueError(
                "a lowtide.Array is on disk: it cannot become an ndarray without a copy"
            )
        if self.nbytes > self.memory:
            raise ValueError(
                f"this array takes {_core.format_bytes(self.nbytes)}, more than its memory of "
                f"{_core.format_bytes(self.memory)}, so it is not loaded implicitly: use a[...] to "
                "load it anyway, or iterate over a.iter_chunks(rows) or a.batches(rows)"
            )
        whole: AnyArray = np.asarray(self[...])
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Loads the whole array as `np.asarray(a)` does, for `torch.as_tensor(a)`: one read."""
        whole = np.asarray(self)
        return whole.astype(whole.dtype.newbyteorder("="), copy=False).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the device of the CPU, in DLPack's terms."""
        return 1, 0

    def close(self) -> None:
        """Closes the files. Later reads raise ValueError; running iterators can finish."""
        self._core.close()
        if self._columns is not None:
            self._columns.close()

    def _check_open(self) -> None:
        if self._core.closed:
            raise ValueError(f"{self._paths[0]}: this array is closed")

    def reopen(self, memory: int | str | None = None) -> Array:
        """Opens the same files again with a separate budget.

        Args:
            memory: Budget of the new object, as for `lowtide.open`. Default: the `memory` given
                when this array was opened.

        Returns:
            A new `Array`.

        Raises:
            FormatError: The shape or the dtype has changed.
            OSError: A file cannot be opened.
        """
        asked = list(self._asked)
        if memory is not None:
            asked[_MEMORY] = memory
        return _reopen(self._where, tuple(asked), self._shape, self._core.descr)

    def __reduce__(self) -> tuple[Any, ...]:
        _arguments.check_picklable(self._where)
        return _reopen, (self._where, self._asked, self._shape, self._core.descr)


def _chunks(batches: Batches) -> Iterator[AnyArray]:
    with batches:
        for _, rows in batches:
            yield rows


def _reopen(
    paths: list[str], arguments: tuple[Any, ...], shape: tuple[int, ...], descr: str
) -> Array:
    """Opens a pickled Array again. Raises FormatError if its shape or dtype has changed."""
    array = Array(paths, *arguments)
    if array.shape != shape or array._core.descr != descr:
        found = f"shape {array.shape}, dtype {array.dtype}"
        raise _core.FormatError(
            f"{array._paths[0]}: was pickled with shape {shape}, dtype {descr}, but now has {found}"
        )
    return array
