"""An array that is being written to a file, in flat memory."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from lowtide import _arguments, _core
from lowtide._closing import Publishing
from lowtide._writer.rows import RowBlock, place

if TYPE_CHECKING:
    import numpy.typing as npt

    from lowtide._writer.part import Part


class Writer(Publishing):
    """An array that is being written to a `.npy` file. `lowtide.create` makes it.

    `w[i:j] = rows`, `w[i] = row` and `w[index] = rows` write rows anywhere; `append` writes them
    after the last one that was written. Rows that are never written are zeros. Any number of
    threads may write.

    The file appears under its name, whole and durable, when `close` or the first `commit` has
    returned; until then an old file stays. The end of a `with` block closes the writer. If the
    block raises an exception, or if the writer is lost without `close`, only committed rows are
    kept. A writer cannot be pickled, and the child of a fork cannot use it; to let other processes
    write rows, use `part`.
    """

    __slots__ = ("__weakref__", "_append_lock", "_convert_bytes", "_core", "_dtype", "_fortran",
                 "_path", "_row")  # fmt: skip

    def __init__(
        self, core: _core.ArrayWriter, path: str, dtype: np.dtype[Any] | None, fortran: bool
    ) -> None:
        self._core = core
        self._path = path
        found = _arguments.dtype_of(core.descr)
        self._dtype = dtype if dtype is not None and dtype.itemsize == found.itemsize else found
        self._fortran = fortran
        self._row = core.shape[1:] if core.has_row_shape else None
        self._append_lock = threading.Lock()
        # Rows of another dtype or layout are converted in slices of this size.
        self._convert_bytes = min(max(core.stats()["memory"]["limit"] // 16, 1 << 16), 1 << 20)

    @property
    def path(self) -> str:
        """The absolute name that the file will have."""
        return self._path

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array. Its first entry grows with `append` unless `create` fixed it."""
        return self._core.shape

    @property
    def closed(self) -> bool:
        """Whether the writer is closed; also True in the child of a fork."""
        return self._core.closed

    def __len__(self) -> int:
        """Number of rows: as created, or as many as were appended so far."""
        return self._core.rows

    def __setitem__(self, index: Any, rows: Any) -> None:
        """Writes whole rows.

        Args:
            index: A row number, a slice, a list or an array of row numbers, or a mask with one
                entry per row. If a row is listed twice, the last one wins.
            rows: As many rows as `index` names, of a dtype that converts without loss, or one
                scalar for all elements.

        Raises:
            IndexError: A row is out of range. Slices are not cut off at the end.
            ValueError: `rows` has the wrong shape, the row is committed, or the writer is closed.
            TypeError: `rows` has a dtype that does not convert without loss.
            OSError: A write failed. From then on every call fails, and nothing is published.
        """
        self._check_open()
        if isinstance(index, tuple) and len(index) == 1:
            (index,) = index
        shape = self.shape
        where = place(index, shape[0])
        if isinstance(where, int):
            block = self._block(rows, shape[1:], shape[1:])
            self._write(where, block.as_one_row())
        elif isinstance(where, range):
            block = self._block(rows, (len(where), *shape[1:]), shape[1:])
            if where.step == 1:
                self._write(where.start, block)
            else:
                self._scatter(where, block)
        else:
            self._scatter(where, self._block(rows, (len(where), *shape[1:]), shape[1:]))

    def append(self, rows: Any) -> None:
        """Writes rows after the last one that was written.

        If several threads append, the rows of one call stay together.

        Args:
            rows: An array of rows, or one row. The first call sets the shape of a row if it was not
                given to `create`.

        Raises:
            IndexError: The array has no room for them.
            ValueError, TypeError, OSError: As for `w[i:j] = rows`.
        """
        self._check_open()
        given = np.shape(rows) if not hasattr(rows, "shape") else tuple(rows.shape)
        if self._row is None:
            if not given:
                raise ValueError("rows must have at least one axis: they set the shape of a row")
            self._core.set_row_shape(list(given[1:]))
            self._row = self.shape[1:]
        row = self._row
        if given == row and self._is_plain(rows):  # many programs append row by row
            with self._append_lock:
                self._core.append(1, rows)
            return
        if len(given) == len(row):
            block = self._block(rows, row, row).as_one_row()
        else:
            block = self._block(rows, (given[0] if given else 1, *row), row)
        with self._append_lock:  # the slices of one call stay together
            for _, count, part in block.slices(self._convert_bytes):
                self._core.append(count, part)

    def part(self, start: int, stop: int) -> Part:
        """Hands rows to another process, which writes them through the returned object.

        Several processes write one array in this way, with `multiprocessing` or any cluster whose
        workers see the same file system. `close` then publishes the array only if every part has
        been closed. This writer can still write the rows that are in no part.

        Args:
            start: Number of the first row.
            stop: Number of the row after the last one.

        Returns:
            A small object that can be pickled. `Part.open` opens it.

        Raises:
            IndexError: The array has no such rows, or the range is empty.
            ValueError: The rows belong to another part, the shape is not known, `order` is "F",
                rows were committed, or the writer is closed.
            TypeError: An argument has the wrong type.
        """
        from lowtide._writer.part import Part  # which opens a Writer

        first = _arguments.integer(start, "start", 0, _arguments.MAX)
        end = _arguments.integer(stop, "stop", 0, _arguments.MAX)
        return Part(self._core.part(first, end), self._path, self._dtype, first, end)

    def commit(self) -> None:
        """Makes what was written until now durable and readable under the file's name.

        The file then contains the rows up to the last one that was written; they can no longer be
        overwritten. After a crash, `lowtide.create(path, append=True)` continues from there.

        Raises:
            OSError: The file could not be written.
            ValueError: The writer is closed, or `order` is "F".
        """
        self._core.commit()

    def close(self) -> None:
        """Publishes the array and closes the file. Later calls do nothing.

        Raises:
            OSError: The file could not be written; nothing is published.
            ValueError: A part is not closed; the message names it. Nothing is published, and the
                writer stays open, so that the part can be written again.
        """
        if not self._core.closed:
            self._core.close()

    def abandon(self) -> None:
        """Drops what was not committed, and closes the file."""
        self._core.abandon()

    def stats(self) -> dict[str, Any]:
        """Reports what was written so far, and the memory held.

        `bytes_given` and `bytes_written` differ while rows wait for a write. `memory` lists the
        limit and the bytes that are held, by name.
        """
        return self._core.stats()

    def _target(self) -> str:
        return self._path

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Writer cannot be pickled or copied: it belongs to one process; give other processes "
            "parts of the rows: w.part(start, stop)"
        )

    def __repr__(self) -> str:
        name = os.path.basename(self._path)
        if self._core.closed:
            return f"<lowtide.Writer {name!r} (closed)>"
        order = ", order='F'" if self._fortran else ""
        return (
            f"<lowtide.Writer {name!r}: {self.dtype} {self.shape}{order}, "
            f"{self._core.next_row} rows written>"
        )

    def _check_open(self) -> None:
        if self._core.closed:
            self._core.set_row_shape([])  # raises: closed, or the child of a fork

    def _is_plain(self, rows: Any) -> bool:
        """Whether the memory of `rows` can be written as it is."""
        return (
            isinstance(rows, np.ndarray)
            and rows.dtype == self._dtype
            and self._dtype.kind in "biufc"
            and rows.flags.c_contiguous
            and not self._fortran
        )

    def _block(self, rows: Any, shape: tuple[int, ...], row: tuple[int, ...]) -> RowBlock:
        return RowBlock(rows, shape, row, self._dtype, self._fortran)

    def _write(self, first: int, block: RowBlock) -> None:
        for start, count, part in block.slices(self._convert_bytes):
            self._core.write(first + start, count, part)

    def _scatter(self, where: range | npt.NDArray[np.int64], block: RowBlock) -> None:
        for start, count, part in block.slices(self._convert_bytes):
            numbers = where[start : start + count]
            if isinstance(numbers, range):
                numbers = np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)
            self._core.write_rows(numbers, part)
