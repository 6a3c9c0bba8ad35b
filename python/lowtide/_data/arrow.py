"""Columns of Arrow IPC files and of Hugging Face's dataset folders, read in place.

pyarrow, which is optional and imported when the first such file is opened, says where the buffers
of each record batch are; the engine reads them. A column of lists is ragged data: its values are an
array of their own, with the key "NAME/values".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowtide import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

_FILE_MAGIC = b"ARROW1\0\0"
_STREAM_START = b"\xff\xff\xff\xff"  # followed by the length of the schema
_STATE = "state.json"  # of a folder that datasets.save_to_disk has written
_VALUES = "/values"
_MOST_STATE_BYTES = 16 << 20


class Stretches(NamedTuple):
    """Where the rows of one column are."""

    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    files: list[int]  # of each stretch
    offsets: list[int]  # in its file
    rows: list[int]
    starts: list[npt.NDArray[np.int64]] | None = None  # of lists, in values; None: no lists


def files_of(names: list[bytes]) -> list[bytes] | None:
    """Returns the files of a folder or a list of files in Arrow's formats; None for others."""
    if len(names) == 1 and os.path.isdir(names[0]):
        return _folder_files(names[0])
    if not names or any(_core.is_address(name) or not _is_arrow(name) for name in names):
        return None
    return names


def open_core(files: list[bytes], key: str | None, **reading: Any) -> _core.Array:
    """Opens one column of equal rows, or with "NAME/values" the values of one of lists.

    Raises:
        FormatError: There is no such column, or it is not stored as plain rows of numbers.
    """
    versions = [_core.file_version(name) for name in files]
    if is_list(files, key):
        raise _core.FormatError(
            f"{os.fsdecode(files[0])}: {key!r} is a column of lists: lowtide.open returns it as "
            "ragged data"
        )
    _, stretches = _locate(files, key)
    return _core.Array.open_stretches(
        versions,
        format="arrow",
        dtype=stretches.dtype.str,
        row_shape=list(stretches.row_shape),
        file_numbers=np.array(stretches.files, np.uint32),
        offsets_bytes=np.array(stretches.offsets, np.uint64),
        rows=np.array(stretches.rows, np.uint64),
        **reading,
    )


def is_list(files: list[bytes], key: str | None) -> bool:
    """Whether a column has lists of different lengths; not with the key of its values."""
    name = os.fsdecode(files[0])
    with _reader(files[0]) as (reader, _):
        chosen = _choose(name, reader.schema, key)
        has_lists = _layout(reader.schema.field(chosen).type, f"{name}: {chosen!r}")[2]
    return has_lists and (key is None or key == chosen)


def list_offsets(files: list[bytes], key: str | None) -> tuple[str, npt.NDArray[np.int64]] | None:
    """Returns the key of the values of a column of lists, and where each list starts.

    None if it is another column.
    """
    if not is_list(files, key):
        return None
    chosen, stretches = _locate(files, key)
    return chosen + _VALUES, np.concatenate([np.zeros(1, np.int64), *(stretches.starts or [])])


def columns(files: list[bytes]) -> list[tuple[str, Any]]:
    """Returns the names and types of the columns."""
    with _reader(files[0]) as (reader, _):
        return [(field.name, field.type) for field in reader.schema]


def _folder_files(folder: bytes) -> list[bytes] | None:
    import json

    path = os.path.join(folder, _STATE.encode())
    if not os.path.isfile(path):
        return None
    name = os.fsdecode(path)
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_STATE_BYTES + 1)
        if len(text) > _MOST_STATE_BYTES:
            raise ValueError("it is too long")
        found = [entry["filename"] for entry in json.loads(text)["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _core.FormatError(f"{name}: expected the _data_files of a dataset: {error}") from None
    if not found:
        raise _core.FormatError(f"{name}: expected at least one data file, found none")
    for one in found:
        if not isinstance(one, str) or not one or "/" in one or one in (".", ".."):
            raise _core.FormatError(f"{name}: {one!r} is no name of a file in this folder")
    return [os.path.join(folder, os.fsencode(one)) for one in found]


def _is_arrow(path: bytes) -> bool:
    if not os.path.isfile(path):  # a pipe would wait
        return False
    with open(path, "rb") as file:
        start = file.read(len(_FILE_MAGIC))
    return start == _FILE_MAGIC or start[: len(_STREAM_START)] == _STREAM_START


class _reader:
    """Opens a file with pyarrow. What pyarrow cannot read is a FormatError."""

    def __init__(self, path: bytes) -> None:
        self._name = os.fsdecode(path)

    def __enter__(self) -> tuple[Any, Any]:
        try:
            import pyarrow
        except ImportError:
            raise _core.FormatError(
                f"{self._name}: this is an Arrow file, and pyarrow, which says where its data is, "
                "is not installed: pip install pyarrow"
            ) from None
        self._errors = (pyarrow.ArrowException, EOFError, ValueError, OSError)
        try:
            self._map = pyarrow.memory_map(self._name)
            whole = self._map.read_buffer()
            self._map.seek(0)
            is_file = whole.slice(0, len(_FILE_MAGIC)).to_pybytes() == _FILE_MAGIC
            make = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
            return make(self._map), whole
        except self._errors as error:
            raise self._refused(error) from None

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self._map.close()
        if isinstance(error, self._errors) and not isinstance(error, _core.FormatError):
            raise self._refused(error) from None

    def _refused(self, error: BaseException) -> _core.FormatError:
        return _core.FormatError(f"{self._name}: pyarrow cannot read this Arrow file: {error}")


def _batches(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader


def _locate(files: list[bytes], key: str | None) -> tuple[str, Stretches]:
    """Returns the name of the column that the caller means, and where its rows are."""
    found: Stretches | None = None
    chosen = ""
    for number, path in enumerate(files):
        name = os.fsdecode(path)
        with _reader(path) as (reader, whole):
            if number == 0:
                chosen = _choose(name, reader.schema, key)
            place = reader.schema.get_field_index(chosen)
            if place < 0:
                raise _core.FormatError(f"{name}: expected a column {chosen!r}, found none")
            about = f"{name}: {chosen!r}"
            dtype, row_shape, is_list = _layout(reader.schema.field(place).type, about)
            if found is None:
                found = Stretches(dtype, row_shape, [], [], [], [] if is_list else None)
            elif (dtype, row_shape, is_list) != (found[0], found[1], found.starts is not None):
                raise _core.FormatError(f"{about}: its type is not that of the first file")
            for batch in _batches(reader):
                _add(found, number, batch.column(place), whole, about)
    if found is None:
        raise ValueError("the list of files is empty")
    return chosen, found


def _choose(name: str, schema: Any, key: str | None) -> str:
    names = list(schema.names)
    if key is None:
        if len(names) == 1:
            return str(names[0])
        raise _core.FormatError(
            f"{name}: expected a key, because the file contains {len(names)} columns: {names}"
        )
    for wanted in (key, key.removesuffix(_VALUES)):
        if names.count(wanted) == 1:
            return wanted
    raise _core.FormatError(f"{name}: expected one of the columns {names}, found key {key!r}")


def _layout(kind: Any, about: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Returns the type of the elements of a column, the shape of a row, whether it has lists."""
    import pyarrow.types as types

    shape: tuple[int, ...] = ()
    if hasattr(kind, "storage_type"):
        shape = tuple(getattr(kind, "shape", ()))
        kind = kind.storage_type
    is_list = types.is_list(kind) or types.is_large_list(kind)
    if types.is_fixed_size_list(kind):
        shape, kind = shape or (kind.list_size,), kind.value_type
    elif is_list:
        kind = kind.value_type
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_timestamp(kind)
    if not (plain or types.is_duration(kind)):
        raise _core.FormatError(
            f"{about} has the type {kind}, which is not stored as plain numbers; columns of "
            "integers and floats, and lists of these, can be read in place"
        )
    if types.is_timestamp(kind) or types.is_duration(kind):
        letter = "M8" if types.is_timestamp(kind) else "m8"
        return np.dtype(f"<{letter}[{kind.unit}]"), shape, is_list
    return np.dtype(kind.to_pandas_dtype()), shape, is_list


def _add(stretches: Stretches, number: int, column: Any, whole: Any, about: str) -> None:
    """Adds the rows of one record batch."""
    rows = len(column)
    if not rows:
        return
    column = getattr(column, "storage", column)
    if column.null_count:
        raise _core.FormatError(f"{about} has {column.null_count} missing values in a batch")
    first, count = column.offset, rows
    if stretches.starts is not None:
        starts = column.offsets.to_numpy().astype(np.int64)
        if (np.diff(starts) < 0).any() or starts[0] < 0 or starts[-1] > len(column.values):
            raise _core.FormatError(f"{about}: the offsets of lists decrease or exceed the values")
        first, count = int(starts[0]), int(starts[-1] - starts[0])
        before = stretches.starts[-1][-1] if stretches.starts else 0
        stretches.starts.append(starts[1:] - starts[0] + before)
        column = column.values
    elif stretches.row_shape:
        first *= int(np.prod(stretches.row_shape))
        column = column.values
    if column.null_count:
        raise _core.FormatError(f"{about} has {column.null_count} missing values in a batch")
    if not count:
        return
    values = column.buffers()[1]
    row_bytes = stretches.dtype.itemsize * int(np.prod(stretches.row_shape, dtype=np.int64))
    at = values.address - whole.address + (first + column.offset) * stretches.dtype.itemsize
    if not 0 <= values.address - whole.address < whole.size:
        raise _core.FormatError(
            f"{about} is compressed; write it without compression to read it in place"
        )
    if at + count * row_bytes > whole.size:
        raise _core.FormatError(f"{about}: byte {at + count * row_bytes} is beyond the file")
    stretches.files.append(number)
    stretches.offsets.append(at)
    stretches.rows.append(count)
