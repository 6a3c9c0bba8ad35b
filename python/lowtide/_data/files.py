"""Files, and objects on servers, as they are inspected when they are opened.

h5py, pyarrow and the parsers of this package locate the data here; the engine reads it.
"""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from typing import Any

from lowtide import _core
from lowtide._data.store import lister, signer

_BLOCK_BYTES = 256 << 10
_MOST_BLOCKS = 16


class Files:
    """Opens files by their paths and objects by their addresses, over the same connections."""

    def __init__(self, store: Any = None) -> None:
        self._opener = _core.FileOpener(signer(store), lister(store))

    def open(self, name: bytes) -> _core.FileReader:
        """Opens a file or an object. Raises OSError."""
        return self._opener.open(name)

    def read(self, name: bytes, most_bytes: int) -> bytes | None:
        """Returns all of a small file; None if there is none. Raises FormatError for a longer one.

        A pipe does not count as a file: reading it could block.
        """
        if not _core.is_address(name) and not os.path.isfile(name):
            return None
        file = self._opener.open_if_there(name)
        if file is None:
            return None
        if file.size_bytes > most_bytes:
            raise _core.FormatError(
                f"{os.fsdecode(file.path)}: expected at most {_core.format_bytes(most_bytes)}, "
                f"found {_core.format_bytes(file.size_bytes)}"
            )
        return file.read([(0, file.size_bytes)])[0]

    def begins(self, name: bytes, size: int) -> bytes:
        """Returns the first bytes of a file, fewer if it is shorter; none if there is no file."""
        if is_folder_address(name) or not (_core.is_address(name) or os.path.isfile(name)):
            return b""  # a pipe would wait
        file = self._opener.open_if_there(name)
        return b"" if file is None else file.read([(0, min(size, file.size_bytes))])[0]

    def names_in(self, folder: bytes) -> list[bytes]:
        """Returns the names in a folder. Raises OSError, and ValueError if it cannot be listed."""
        return self._opener.names_in(folder)


def is_folder_address(name: bytes) -> bool:
    """Returns whether an address names a folder, or an array that is a folder."""
    path = name if name.startswith(b"s3:") else name.partition(b"?")[0]
    inside = b"/" in path.partition(b"://")[2]  # it names more than a server
    return _core.is_address(name) and inside and path.endswith((b"/", b".zarr"))


def shown(name: bytes, file: _core.FileReader) -> str:
    """Returns what messages call an open file: an address without its secrets."""
    return os.fsdecode(file.path if _core.is_address(name) else name)


class ObjectFile(io.RawIOBase):
    """An object as a Python file, for h5py and pyarrow; holds up to 4 MiB of it.

    It reads one version of the object: if the object is replaced meanwhile, reads raise OSError.
    """

    def __init__(self, file: _core.FileReader) -> None:
        super().__init__()
        self._file = file
        self._at = 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def readable(self) -> bool:
        """Returns True."""
        return True

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def tell(self) -> int:
        """Returns the byte that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a byte and returns it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size_bytes}
        self._at = max(0, origin[whence] + offset)
        return self._at

    def readinto(self, out: Any) -> int:
        """Fills `out` and returns the number of bytes read: fewer at the end of the object."""
        into = memoryview(out).cast("B")
        size = max(0, min(len(into), self._file.size_bytes - self._at))
        if not size:
            return 0
        if size > _BLOCK_BYTES * _MOST_BLOCKS // 4:  # does not push out the small ones
            into[:size] = self._file.read([(self._at, size)])[0]
        else:
            into[:size] = self._from_blocks(size)
        self._at += size
        return size

    def _from_blocks(self, size: int) -> bytes:
        first, last = self._at // _BLOCK_BYTES, (self._at + size - 1) // _BLOCK_BYTES
        missing = [block for block in range(first, last + 1) if block not in self._blocks]
        starts = [block * _BLOCK_BYTES for block in missing]
        total = self._file.size_bytes
        found = self._file.read([(at, min(_BLOCK_BYTES, total - at)) for at in starts])
        self._blocks.update(zip(missing, found))
        parts = []
        for block in range(first, last + 1):
            self._blocks.move_to_end(block)
            parts.append(self._blocks[block])
        while len(self._blocks) > _MOST_BLOCKS:
            self._blocks.popitem(last=False)
        start = self._at - first * _BLOCK_BYTES
        return b"".join(parts)[start : start + size]
