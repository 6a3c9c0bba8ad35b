"""The mapped file behind a memmap. It owns its ceiling and gives it up before it unmaps.

A trim after munmap would zero whatever has been mapped at that address since. So the ceiling is a
slot of the map object: `close` and `resize` close it first. When the object dies, C code clears the
slot before it unmaps, whatever interrupts Python.
"""

from __future__ import annotations

import atexit
import errno
import math
import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core
from lowtide._data.source import CoreSource

if TYPE_CHECKING:
    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

atexit.register(_core.stop_trimming)
os.register_at_fork(after_in_child=_core.resume_trimming)

# The engine gets a quarter of `memory` for reads of whole rows; the pages get the rest.
_READER_SHARE = 4
_MOST_READER_BYTES = 64 << 20
_LEAST_READER_BYTES = 1 << 20
# Shorter rows are faster to read through the map, sorted by offset.
_LEAST_ROW_BYTES = 128


def address_of(memory: Any) -> int:
    """Returns the address of a map or an array."""
    array = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
    return int(array.__array_interface__["data"][0])


class Descriptor:
    """An open file with a path that stays valid if the file is renamed or deleted."""

    __slots__ = ("_fd", "path")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.path = b"/proc/self/fd/%d" % fd

    def __del__(self) -> None:
        os.close(self._fd)


class Reader:
    """Whole rows of a mapped file, read by the engine. `first` is the file offset of row 0."""

    __slots__ = ("_descriptor", "_source", "first", "row_bytes", "rows")

    def __init__(
        self, descriptor: Descriptor, first: int, row_bytes: int, rows: int, memory: int, cache: str
    ) -> None:
        self._descriptor = descriptor
        self.first, self.row_bytes, self.rows = first, row_bytes, rows
        shape = (rows, row_bytes)
        names = [descriptor.path]
        core = _core.Array.open(
            names,
            dtype="'|u1'",
            shape=list(shape),
            offset_bytes=first,
            memory_bytes=memory,
            cache=cache,
            headerless=True,
        )
        self._source = CoreSource(core, shape, np.dtype(np.uint8), has_parts=True)

    def take(self, rows: AnyArray, out: AnyArray) -> None:
        """Reads rows in the given order into `out`."""
        self._source.take_rows(rows, out.reshape(-1).view(np.uint8).reshape(-1, self.row_bytes))


class Map(mmap.mmap):
    """A shared map with a ceiling, or a private one without."""

    __slots__ = (
        "_descriptor", "_file_id", "_filename", "_reader", "ceiling", "drops", "memory", "start",
        "writable",
    )  # fmt: skip

    ceiling: _core.Ceiling | None

    def watch(self, file: Any, filename: Any, start: int, memory: int, drops: bool) -> None:
        """Sets the ceiling. `start` is the file offset at which the map starts, in bytes."""
        self.start, self.memory, self.drops = start, memory, drops
        self.writable = bool(np.frombuffer(self, np.uint8).flags.writeable)
        status = os.fstat(file.fileno())
        self._file_id = (status.st_dev, status.st_ino)
        self._filename = filename
        self._reader: Reader | None = None
        self._descriptor = Descriptor(os.dup(file.fileno())) if drops else None
        self._make_ceiling()

    def _make_ceiling(self) -> None:
        path = self._descriptor.path if self._descriptor else None
        self.ceiling = _core.Ceiling(self, self.memory, self.start, path)

    def _give_up(self) -> bool:
        ceiling = getattr(self, "ceiling", None)
        if ceiling is None:
            return False
        ceiling.close()
        return True

    def close(self) -> None:
        """Gives up the ceiling and unmaps, as mmap.close does. Views do not prevent it."""
        had = self._give_up()
        try:
            super().close()
        except BufferError:
            if had:
                self._make_ceiling()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()  # the base class would unmap without calling this method

    def resize(self, newsize: int) -> None:
        """Resizes as mmap.resize does; the ceiling follows the map to its new address."""
        had = self._give_up()
        try:
            super().resize(newsize)
        finally:
            if had:
                self._reader = None
                self._make_ceiling()

    def can_pass(self) -> bool:
        """Whether this map can have more resident pages than `memory` allows."""
        return self.ceiling is not None and self.ceiling.limited

    def read_rows(self, view: AnyArray, rows: AnyArray) -> AnyArray | None:
        """Reads rows of a view of this map through the engine, or returns None if it cannot.

        If the map is writable, the engine reads through the page cache, so that it sees writes
        that have not reached the disk.
        """
        row_bytes = view.itemsize * math.prod(view.shape[1:])
        if not view.flags.c_contiguous or row_bytes < _LEAST_ROW_BYTES or not rows.size:
            return None
        out = np.empty(rows.shape + view.shape[1:], view.dtype)
        for _ in range(2):
            place = self.start + address_of(view) - address_of(self)
            reader = self._reader_of(place, row_bytes)
            if reader is None:
                return None
            skip = (place - reader.first) // row_bytes
            flat = rows.reshape(-1)
            if skip:
                flat = flat.astype(np.int64) + skip
            try:
                reader.take(flat, out)
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
                self._reader = None  # a forked child opened the file again after a write to it
                continue
            return out
        return None

    def _reader_of(self, place: int, row_bytes: int) -> Reader | None:
        reader = self._reader
        if reader is not None and reader.row_bytes == row_bytes:
            if (place - reader.first) % row_bytes == 0:
                return reader
        budget = min(max(self.memory // _READER_SHARE, _LEAST_READER_BYTES), _MOST_READER_BYTES)
        descriptor = self._open()
        if descriptor is None or row_bytes > budget // 4:
            return None
        first = self.start + (place - self.start) % row_bytes
        rows = (self.start + len(self) - first) // row_bytes
        cache = "drop" if self.drops and not self.writable else "keep"
        try:
            made = Reader(descriptor, first, row_bytes, rows, budget, cache)
        except (OSError, ValueError):
            return None
        if self.ceiling is not None:
            self.ceiling.lend(budget)
        self._reader = made
        return made

    def _open(self) -> Descriptor | None:
        """Opens the mapped file again; returns None if its name no longer leads to it."""
        if self._descriptor is not None:
            return self._descriptor
        if self._filename is None:
            return None
        try:
            descriptor = Descriptor(os.open(self._filename, os.O_RDONLY | os.O_CLOEXEC))
            status = os.stat(descriptor.path)
        except OSError:
            return None
        return descriptor if (status.st_dev, status.st_ino) == self._file_id else None
