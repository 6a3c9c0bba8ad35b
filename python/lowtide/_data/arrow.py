"""Columns of Arrow IPC files and of Hugging Face's dataset folders, read in place.

pyarrow is optional and imported when the first such file is opened. It locates the buffers of each
record batch; the engine reads them. A column of lists is ragged data: its values are an array of
their own, with the key "NAME/values".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowtide import _core
from lowtide._data.arrow_reader import FILE_MAGIC, Reader, Sources, batches
from lowtide._data.files import Files, is_folder_address, shown

if TYPE_CHECKING:
    import numpy.typing as npt

_STREAM_START = b"\xff\xff\xff\xff"  # followed by the length of the schema
_STATE = b"state.json"  # of a folder that datasets.save_to_disk has written
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


def files_of(names: list[bytes], files: Files) -> Sources | None:
    """Opens a folder, or a list of files, in Arrow's formats; None for others."""
    found: list[bytes] | None = names
    if len(names) == 1 and (is_folder_address(names[0]) or os.path.isdir(names[0])):
        found = _folder_files(names[0], files)
    elif not all(_is_arrow(files.begins(name, len(FILE_MAGIC))) for name in names):
        found = None
    return None if found is None else Sources(found, [files.open(name) for name in found])


def open_core(sources: Sources, key: str | None, **reading: Any) -> _core.Array:
    """Opens one column whose rows are equally long, or the values of a column of lists.

    Raises:
        FormatError: There is no such column, or it is not stored as plain rows of numbers.
    """
    if is_list(sources, key):
        name = shown(sources.names[0], sources.readers[0])
        raise _core.FormatError(
            f"{name}: {key!r} is a column of lists: lowtide.open returns it as ragged data"
        )
    _, stretches = _locate(sources, key)
    return _core.Array.open_stretches(
        sources.readers,
        format="arrow",
        dtype=stretches.dtype.str,
        row_shape=list(stretches.row_shape),
        file_numbers=np.array(stretches.files, np.uint32),
        offsets_bytes=np.array(stretches.offsets, np.uint64),
        rows=np.array(stretches.rows, np.uint64),
        **reading,
    )


def is_list(sources: Sources, key: str | None) -> bool:
    """Whether a column contains lists of different lengths; False for the key of its values."""
    with Reader(sources, 0) as (reader, _):
        name = shown(sources.names[0], sources.readers[0])
        chosen = _choose(name, reader.schema, key)
        has_lists = _layout(reader.schema.field(chosen).type, f"{name}: {chosen!r}")[2]
    return has_lists and (key is None or key == chosen)


def list_offsets(sources: Sources, key: str | None) -> tuple[str, npt.NDArray[np.int64]] | None:
    """Returns the key of the values of a column of lists, and where each list starts.

    None if it is another column.
    """
    if not is_list(sources, key):
        return None
    chosen, stretches = _locate(sources, key)
    return chosen + _VALUES, np.concatenate([np.zeros(1, np.int64), *(stretches.starts or [])])


def columns(sources: Sources) -> list[tuple[str, Any]]:
    """Returns the names and types of the columns."""
    with Reader(sources, 0) as (reader, _):
        return [(field.name, field.type) for field in reader.schema]


def _folder_files(folder: bytes, files: Files) -> list[bytes] | None:
    import json  # not before it is needed: `import lowtide` stays quick

    path = _core.path_in(folder, _STATE)
    name = os.fsdecode(_core.shown_address(path))
    try:
        text = files.read(path, _MOST_STATE_BYTES)
        if text is None:
            return None
        found = [entry["filename"] for entry in json.loads(text)["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _core.FormatError(
            f"{name}: expected the _data_files of a dataset, as its save_to_disk writes them: "
            f"{error!r}"
        ) from None
    if not found:
        raise _core.FormatError(f"{name}: expected at least one data file, found none")
    for one in found:
        if not isinstance(one, str) or not one or "/" in one or one in (".", ".."):
            raise _core.FormatError(f"{name}: {one!r} is not the name of a file in this folder")
    return [_core.path_in(folder, os.fsencode(one)) for one in found]


def _is_arrow(start: bytes) -> bool:
    return start == FILE_MAGIC or start[: len(_STREAM_START)] == _STREAM_START


def _locate(sources: Sources, key: str | None) -> tuple[str, Stretches]:
    """Returns the name of the column that the caller means, and where its rows are."""
    found: Stretches | None = None
    chosen = ""
    for number, path in enumerate(sources.names):
        name = shown(path, sources.readers[number])
        one = Reader(sources, number)
        with one as (reader, whole):
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
                kind = reader.schema.field(place).type
                raise _core.FormatError(f"{about}: its type {kind} differs from the first file's")
            if is_list:
                one.bring_offsets(place)
            for batch in batches(reader):
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
        raise _core.FormatError(
            f"{about} has {column.null_count} missing values in a batch; fill or drop them first"
        )
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
        raise _core.FormatError(
            f"{about} has {column.null_count} missing values in a batch; fill or drop them first"
        )
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
        raise _core.FormatError(
            f"{about}: expected its rows to end at byte {at + count * row_bytes}, found the end of "
            f"the file at byte {whole.size}"
        )
    stretches.files.append(number)
    stretches.offsets.append(at)
    stretches.rows.append(count)
