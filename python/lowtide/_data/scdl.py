"""Folders of BioNeMo-SCDL: a sparse matrix in three raw files, whose types a header tells."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from lowtide._core import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = "header.sch"
_MAGIC = b"SCDL"
_START_BYTES = 16
_MOST_HEADER_BYTES = 1 << 20
_FILES = {"DATA": "data.npy", "COLPTR": "col_ptr.npy", "ROWPTR": "row_ptr.npy"}
_TYPES = ("uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")  # codes from 1


def is_scdl(folder: bytes) -> bool:
    """Returns whether this is a folder with the header of BioNeMo-SCDL."""
    try:
        with open(os.path.join(folder, _HEADER.encode()), "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def arrays(folder: str) -> dict[str, tuple[str, str, int]]:
    """Returns path, type and length of DATA, COLPTR and ROWPTR.

    Raises:
        FormatError: The header is damaged, or a file has another size than it says.
    """
    path = os.path.join(folder, _HEADER)
    with open(path, "rb") as file:
        text = file.read(_MOST_HEADER_BYTES + 1)
    found = {}
    try:
        if len(text) > _MOST_HEADER_BYTES:
            raise ValueError(f"more than {_MOST_HEADER_BYTES} bytes")
        *_, byte_order, backend, count = struct.unpack_from(">4B2I", text, len(_MAGIC))
        if byte_order != 1 or backend != 1:
            raise ValueError(f"byte order {byte_order} and backend {backend}, not 1 and 1")
        at = _START_BYTES
        for _ in range(count):
            name, length, code, at = _array(text, at)
            if name in _FILES:
                found[name] = (code, length)
    except (struct.error, ValueError) as error:
        raise FormatError(f"{path}: this is no whole header of SCDL: {error}") from None
    checked = {}
    for name, file_name in _FILES.items():
        if name not in found:
            raise FormatError(f"{path}: expected {name} among the arrays, found {sorted(found)}")
        code, length = found[name]
        if not 1 <= code <= len(_TYPES):
            raise FormatError(f"{path}: {name}: type {code} is unknown")
        checked[name] = (_checked(os.path.join(folder, file_name), code, length), code, length)
    return {
        name: (path, _TYPES[code - 1], length) for name, (path, code, length) in checked.items()
    }


def columns(folder: str, shape: Sequence[int] | None) -> int:
    """Returns the number of genes, which only the table of genes, a Parquet file, tells.

    Raises:
        ImportError: pyarrow, which reads it, is not installed.
        FormatError: There is no such table.
    """
    if shape is not None:
        return int(tuple(shape)[1])
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{folder}: the number of columns is in a Parquet file, which pyarrow reads: pip "
            "install pyarrow, or give shape=(rows, columns)"
        ) from None
    for name in ("var_features", "features"):
        tables = os.path.join(folder, name)
        if os.path.isdir(tables):
            found = sorted(one for one in os.listdir(tables) if one.endswith(".parquet"))
            counts = [parquet.read_metadata(os.path.join(tables, one)).num_rows for one in found]
            if counts:
                return int(max(counts))
    raise FormatError(
        f"{folder}: expected var_features with a table of genes, found none; give "
        "shape=(rows, columns)"
    )


def _array(text: bytes, at: int) -> tuple[str, int, int, int]:
    (size,) = struct.unpack_from(">I", text, at)
    name = text[at + 4 : at + 4 + size]
    if len(name) != size:
        raise ValueError(f"a name of {size} bytes exceeds it")
    length, code, has_shape = struct.unpack_from(">QIB", text, at + 4 + size)
    at += 4 + size + 13
    if has_shape:
        (axes,) = struct.unpack_from(">I", text, at)
        at += 4 + 4 * axes
    return name.decode("utf-8", "replace"), length, code, at


def _checked(path: str, code: int, length: int) -> str:
    item = int("".join(filter(str.isdigit, _TYPES[code - 1]))) // 8
    size = os.stat(path).st_size
    if size != length * item:
        raise FormatError(
            f"{path}: expected {length * item} bytes, {length} of {_TYPES[code - 1]}, as the "
            f"header says, found {size}"
        )
    return path
