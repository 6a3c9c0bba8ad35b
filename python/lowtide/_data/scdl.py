"""Folders of BioNeMo-SCDL: a sparse matrix in three raw files, described by a header."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from lowtide import _core
from lowtide._core import FormatError
from lowtide._data.files import Files, ObjectFile, is_folder_address

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = b"header.sch"
_MAGIC = b"SCDL"
_START_BYTES = 16
_MOST_HEADER_BYTES = 1 << 20
_FILES = {"DATA": b"data.npy", "COLPTR": b"col_ptr.npy", "ROWPTR": b"row_ptr.npy"}
_TYPES = ("uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")  # codes from 1


def is_scdl(folder: bytes, files: Files) -> bool:
    """Returns whether this is a folder with the header of BioNeMo-SCDL."""
    if _core.is_address(folder) and not is_folder_address(folder):
        return False
    try:
        return files.begins(_core.path_in(folder, _HEADER), len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def arrays(folder: bytes, files: Files) -> dict[str, tuple[bytes, str, int]]:
    """Returns path, type and length of DATA, COLPTR and ROWPTR.

    Raises:
        FormatError: The header is damaged, or a file has another size than it says.
    """
    header = _core.path_in(folder, _HEADER)
    text = files.read(header, _MOST_HEADER_BYTES) or b""
    path = os.fsdecode(_core.shown_address(header))
    found = {}
    try:
        *_, byte_order, backend, count = struct.unpack_from(">4B2I", text, len(_MAGIC))
        if byte_order != 1 or backend != 1:
            raise ValueError(
                "expected byte order 1 and backend 1, "
                f"found byte order {byte_order} and backend {backend}"
            )
        at = _START_BYTES
        for _ in range(count):
            name, length, code, at = _array(text, at)
            if name in _FILES:
                found[name] = (code, length)
    except struct.error:
        raise FormatError(f"{path}: SCDL header: it ends early") from None
    except ValueError as error:
        raise FormatError(f"{path}: SCDL header: {error}") from None
    checked = {}
    for name, file_name in _FILES.items():
        if name not in found:
            raise FormatError(f"{path}: expected {name} among the arrays, found {sorted(found)}")
        code, length = found[name]
        if not 1 <= code <= len(_TYPES):
            raise FormatError(f"{path}: {name}: type {code} is unknown")
        one = _core.path_in(folder, file_name)
        _check_size(files.open(one), code, length)
        checked[name] = (one, _TYPES[code - 1], length)
    return checked


def columns(folder: bytes, files: Files, shape: Sequence[int] | None) -> int:
    """Returns the number of genes, which only a Parquet file, the table of genes, records.

    Raises:
        ImportError: pyarrow, which reads it, is not installed.
        FormatError: There is no such table.
    """
    if shape is not None:
        return int(tuple(shape)[1])
    name = os.fsdecode(_core.shown_address(folder))
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{name}: the number of columns is in a Parquet file, which pyarrow reads: pip "
            "install pyarrow, or give shape=(rows, columns)"
        ) from None
    for tables in (b"var_features/", b"features/"):
        inside = _core.path_in(folder, tables)
        try:
            found = [one for one in files.names_in(inside) if one.endswith(b".parquet")]
        except (OSError, ValueError):  # there is none, or nobody can list it
            continue
        paths = [_core.path_in(inside, one) for one in found]
        counts = [parquet.read_metadata(ObjectFile(files.open(path))).num_rows for path in paths]
        if counts:
            return int(max(counts))
    raise FormatError(
        f"{name}: expected var_features with a table of genes, found none; give "
        "shape=(rows, columns)"
    )


def _array(text: bytes, at: int) -> tuple[str, int, int, int]:
    (size,) = struct.unpack_from(">I", text, at)
    name = text[at + 4 : at + 4 + size]
    if len(name) != size:
        raise ValueError(f"a name of {size} bytes extends beyond its end")
    length, code, has_shape = struct.unpack_from(">QIB", text, at + 4 + size)
    at += 4 + size + 13
    if has_shape:
        (axes,) = struct.unpack_from(">I", text, at)
        at += 4 + 4 * axes
    return name.decode("utf-8", "replace"), length, code, at


def _check_size(file: _core.FileReader, code: int, length: int) -> None:
    item = int("".join(filter(str.isdigit, _TYPES[code - 1]))) // 8
    if file.size_bytes != length * item:
        raise FormatError(
            f"{os.fsdecode(file.path)}: expected {length * item} bytes, {length} of "
            f"{_TYPES[code - 1]}, as the header says, found {file.size_bytes}"
        )
