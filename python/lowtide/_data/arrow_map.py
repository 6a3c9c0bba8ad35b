"""Arrow files on servers: the metadata that pyarrow needs to open one, without the data.

pyarrow reports where buffers are as addresses in memory. So it gets a map as long as the object,
which contains the metadata of all messages. The rest is zeros, which take no memory.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING

from lowtide import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"ARROW1"
_CONTINUES = b"\xff\xff\xff\xff"
_TOGETHER = 256  # ranges that are requested at the same time
_GUESS_BYTES = 8 << 10  # of a message in a stream: its length, and most likely all its metadata
_MOST_BYTES = 64 << 20  # of the footer, and of the metadata of a message
_BLOCK = struct.Struct("<qi4xq")  # of a message in the footer: where, bytes of metadata, of data
_RECORD_BATCH = 3
# Numbers of fields in the tables of Arrow's format (Message.fbs, File.fbs).
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_DICTIONARIES, _BATCHES = 2, 3
_COMPRESSION = 3


class ObjectMap:
    """The map, in `map`. Raises OSError, and FormatError if the object is not an Arrow file."""

    def __init__(self, source: _core.FileReader) -> None:
        self._source = source
        self._size = source.size_bytes
        self._file = os.memfd_create("lowtide-arrow")
        try:
            os.ftruncate(self._file, self._size)
            self.map = mmap.mmap(self._file, self._size, prot=mmap.PROT_READ)
            start = self._bring_one(0, min(self._size, _GUESS_BYTES))
            if start.startswith(_MAGIC):
                self._bring_file()
            else:
                self._bring_stream()
        except (struct.error, IndexError):
            raise self._damaged("a table in the metadata is incomplete") from None

    def __del__(self) -> None:
        os.close(self._file)

    def bring(self, ranges: list[tuple[int, int]]) -> None:
        """Fetches ranges, many at the same time."""
        for first in range(0, len(ranges), _TOGETHER):
            some = ranges[first : first + _TOGETHER]
            for (at, _), text in zip(some, self._source.read(some)):
                os.pwrite(self._file, text, at)

    def _bring_one(self, at: int, size: int) -> bytes:
        if not 0 < size <= _MOST_BYTES or at < 0 or at + size > self._size:
            raise self._misplaced(at, size)
        self.bring([(at, size)])
        return self.map[at : at + size]

    def _damaged(self, what: str) -> _core.FormatError:
        name = os.fsdecode(self._source.path)
        return _core.FormatError(f"{name}: this Arrow file is damaged: {what}")

    def _misplaced(self, at: int, size: int) -> _core.FormatError:
        most = _core.format_bytes(_MOST_BYTES)
        return self._damaged(
            f"expected at most {most} of metadata within its {self._size} bytes, found {size} "
            f"bytes at byte {at}"
        )

    def _bring_file(self) -> None:
        """Fetches the messages that the footer locates."""
        end = self._size - len(_MAGIC) - 4
        tail = self._bring_one(end, self._size - end)
        (size,) = struct.unpack_from("<i", tail)
        if tail[4:] != _MAGIC:
            raise self._damaged(f"expected it to end with {_MAGIC!r}, found {tail[4:]!r}")
        footer = self._bring_one(end - size, size)
        blocks = [*_blocks(footer, _DICTIONARIES), *_blocks(footer, _BATCHES)]
        for at, metadata, _ in blocks:
            if not 8 <= metadata <= _MOST_BYTES or not 0 <= at <= self._size - metadata:
                raise self._misplaced(at, metadata)
        self.bring([(at, metadata) for at, metadata, _ in blocks])
        for at, metadata, _ in blocks:
            prefix = 8 if self.map[at : at + 4] == _CONTINUES else 4
            self._check(self.map[at + prefix : at + metadata])

    def _bring_stream(self) -> None:
        """Fetches one message after the other, because only its header records its length."""
        at = 0
        while at + 8 <= self._size:
            start = self._bring_one(at, min(_GUESS_BYTES, self._size - at))
            (size,) = struct.unpack_from("<i", start, 4)
            if start[:4] != _CONTINUES:
                raise self._damaged(f"expected a message at byte {at}, found {start[:4]!r}")
            if size == 0:
                return
            if size + 8 > len(start):
                self._bring_one(at, size + 8)
            body = self._check(self.map[at + 8 : at + 8 + size])
            if body < 0:
                raise self._damaged(
                    f"expected 0 bytes or more after the message at byte {at}, found {body}"
                )
            at += 8 + size + body

    def _check(self, message: bytes) -> int:
        """Returns how many bytes of data follow a message. Raises FormatError if compressed."""
        table = _root(message)
        kind = _field(message, table, _HEADER_TYPE)
        header = _field(message, table, _HEADER)
        if header and kind and message[kind] == _RECORD_BATCH:
            batch = header + struct.unpack_from("<I", message, header)[0]
            if _field(message, batch, _COMPRESSION):
                raise _core.FormatError(
                    f"{os.fsdecode(self._source.path)} is compressed; write it without "
                    "compression to read it in place"
                )
        body = _field(message, table, _BODY_LENGTH)
        return int(struct.unpack_from("<q", message, body)[0]) if body else 0


def _root(text: bytes) -> int:
    return int(struct.unpack_from("<I", text)[0])


def _field(text: bytes, table: int, number: int) -> int:
    """Returns where a field of a table is; 0 if the table lacks it."""
    names = table - struct.unpack_from("<i", text, table)[0]
    if names < 0:
        raise IndexError
    (size,) = struct.unpack_from("<H", text, names)
    slot = 4 + 2 * number
    if slot + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", text, names + slot)
    return int(table + offset) if offset else 0


def _blocks(footer: bytes, number: int) -> Iterator[tuple[int, int, int]]:
    """Returns where the messages of one list in the footer are."""
    at = _field(footer, _root(footer), number)
    if not at:
        return
    at += struct.unpack_from("<I", footer, at)[0]
    (count,) = struct.unpack_from("<I", footer, at)
    if count * _BLOCK.size > len(footer):
        raise IndexError
    for one in range(count):
        yield _BLOCK.unpack_from(footer, at + 4 + one * _BLOCK.size)
