"""Where the bytes of one HDF5 data set are, as h5py reports them."""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments, _core

if TYPE_CHECKING:
    import numpy.typing as npt

ABSENT = 2**64 - 1  # offset of a chunk that was never written
_ENTRY_BYTES = 8
_MAGIC = b"\x89HDF\r\n\x1a\n"
# The filters that HDF5, h5py and hdf5plugin have; of others, the file says the name.
_FILTERS = {
    1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 307: "bzip2",
    32000: "lzf", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp", 32015: "zstd",
    32026: "blosc2",
}  # fmt: skip


@dataclass
class Table:
    """A data set as the core opens it."""

    descr: str
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    offsets: npt.NDArray[np.uint64]  # of each chunk in C order of the grid, or ABSENT
    fill: bytes


def locate(found: Any, what: str, name: str, memory_bytes: int | None) -> Table:
    """Looks up where the bytes of a data set are. Reads none of them, unless they are in a header.

    Args:
        found: The h5py.Dataset.
        what: What messages call it.
        name: Name of the file.
        memory_bytes: Most memory for the table. None: without a table, for `lowtide.info`.

    Raises:
        FormatError: It is not stored as plain bytes of a NumPy dtype in this file.
        ValueError: The table needs more memory.
    """
    import h5py

    properties = found.id.get_create_plist()
    layout = properties.get_layout()
    _refuse_elsewhere(properties, layout, what, name)
    dtype = _plain_dtype(found, what)
    descr = _arguments.descr(dtype)[0]
    assert descr is not None
    shape = found.shape
    if shape is None:
        raise _core.FormatError(f"{what}: expected an array, found a data set without a shape")
    if 0 in shape or not dtype.itemsize:
        return Table(descr, shape, (1,) * len(shape), np.empty(0, np.uint64), b"")
    if layout == h5py.h5d.COMPACT:  # at most 64 KiB, in the header: read now, and then held
        held = np.ascontiguousarray(found[()]).astype(dtype.base, copy=False).tobytes()
        return Table(descr, shape, shape, np.full(1, ABSENT, np.uint64), held)
    fill = _fill(properties, dtype, what)
    if layout == h5py.h5d.CONTIGUOUS:
        offset = found.id.get_offset()
        offsets = np.full(1, ABSENT if offset is None else offset, np.uint64)
        return Table(descr, shape, shape, offsets, fill)
    count = math.prod(-(-extent // chunk) for extent, chunk in zip(shape, found.chunks))
    if memory_bytes is None:
        return Table(descr, shape, found.chunks, np.empty(0, np.uint64), fill)
    if count * _ENTRY_BYTES > memory_bytes:
        raise ValueError(
            f"{what}: the table of {count} chunks needs "
            f"{_core.format_bytes(count * _ENTRY_BYTES)}, but memory is only "
            f"{_core.format_bytes(memory_bytes)}: use more memory, or larger chunks"
        )
    return Table(descr, shape, found.chunks, _chunks(found, what, count), fill)


def _refuse_elsewhere(properties: Any, layout: int, what: str, name: str) -> None:
    """Raises FormatError for a data set whose bytes are not in this file as they are."""
    import h5py

    if layout == h5py.h5d.VIRTUAL:
        raise _core.FormatError(
            f"{what}: this is a virtual data set, whose data is in other data sets: open those"
        )
    if properties.get_external_count():
        raise _core.FormatError(
            f"{what}: the data is in external files, such as {properties.get_external(0)[0]!r}: "
            "open those as raw data, with their dtype"
        )
    names = []
    for number in range(properties.get_nfilters()):
        code, _, _, said = properties.get_filter(number)
        word = _FILTERS.get(code) or said.decode("utf-8", "replace") or "unknown"
        names.append(word if code in _FILTERS else f"{word} (filter {code})")
    if names:
        raise _core.FormatError(
            f"{what}: expected data without filters, found {', '.join(names)}: make a copy with "
            f"h5repack -f NONE {name} {os.path.splitext(name)[0]}-plain.h5"
        )


def _plain_dtype(found: Any, what: str) -> np.dtype[Any]:
    """Returns the dtype whose bytes are those in the file, or raises FormatError."""
    import h5py

    stored = found.id.get_type()
    try:
        dtype = stored.dtype
    except TypeError as error:
        raise _core.FormatError(f"{what}: NumPy has no such type: {error}") from None
    if dtype.hasobject:
        kind = "strings or arrays of variable length, or references"
        raise _core.FormatError(
            f"{what}: expected elements of a fixed size, found {kind}: read it with h5py"
        )
    if isinstance(stored, h5py.h5t.TypeStringID):
        same = stored.get_size() == dtype.itemsize and stored.get_strpad() != h5py.h5t.STR_SPACEPAD
    else:
        same = stored.equal(h5py.h5t.py_create(dtype, logical=True))
    if not same:
        raise _core.FormatError(
            f"{what}: the file stores these numbers differently from NumPy's {dtype}: "
            "read it with h5py"
        )
    plain: np.dtype[Any] = dtype
    return plain


def _fill(properties: Any, dtype: np.dtype[Any], what: str) -> bytes:
    """Returns the bytes of an element that was never written."""
    import h5py

    if properties.fill_value_defined() != h5py.h5d.FILL_VALUE_USER_DEFINED:
        return b""
    if dtype.subdtype is not None:
        raise _core.FormatError(
            f"{what}: the fill value of elements that are arrays cannot be read: read it with h5py"
        )
    value = np.zeros((1,), dtype)
    properties.get_fill_value(value)
    return value.tobytes()


def _chunks(found: Any, what: str, count: int) -> npt.NDArray[np.uint64]:
    """Returns the offset of each chunk in the file."""
    if not hasattr(found.id, "chunk_iter"):
        raise _core.FormatError(
            f"{what}: this h5py cannot list chunks: pip install --upgrade h5py (3.8 or later)"
        )
    shape, chunk = found.shape, found.chunks
    expected = math.prod(chunk) * found.id.get_type().get_size()
    offsets = np.full(count, ABSENT, np.uint64)
    steps, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        steps[axis] = step
        step *= -(-shape[axis] // chunk[axis])

    def place(info: Any) -> None:
        at = info.chunk_offset
        if info.size != expected:
            raise _core.FormatError(
                f"{what}: expected {expected} bytes of the chunk at {tuple(at)}, found {info.size}"
            )
        number = sum(a // c * s for a, c, s in zip(at, chunk, steps))
        # After the data set was made smaller, chunks beyond its end may be left.
        if all(a < extent for a, extent in zip(at, shape)):
            offsets[number] = info.byte_offset

    found.id.chunk_iter(place)
    block = found.file.userblock_size
    if block and not _counts_userblock():
        offsets[offsets != ABSENT] += np.uint64(block)
    return offsets


@functools.cache
def _counts_userblock() -> bool:
    """Returns whether offsets of chunks count from the start of the file, before its user block.

    Versions of the HDF5 library differ in this, so it is tried on a small file in memory.
    """
    import h5py

    block, content = 512, np.frombuffer(b"Lowtide looks for this", np.uint8)
    found: list[int] = []
    options = {"driver": "core", "backing_store": False, "userblock_size": block}
    with h5py.File("lowtide-userblock", "w", **options) as file:
        one = file.create_dataset("one", data=content, chunks=content.shape)
        file.flush()
        one.id.chunk_iter(lambda info: found.append(info.byte_offset))
        image = file.id.get_file_image()
    start = image.find(_MAGIC)  # some versions leave the user block out of the image
    return found[0] == int(image.find(content.tobytes())) - int(start) + block
