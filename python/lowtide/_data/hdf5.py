"""HDF5 data sets, read in place: h5py locates the bytes, and the engine reads them.

h5py is optional and imported when the first HDF5 file is opened. It parses the file at open and is
not part of the read path. A data set is named by its path in the file: "X", "layers/counts".
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core
from lowtide._data import hdf5_table
from lowtide._data.files import Files, ObjectFile, is_folder_address, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"\x89HDF\r\n\x1a\n"
_FIRST_BLOCK = 512  # the magic may be here, and at twice that, and so on, after a user block
_SHOWN_KEYS = 8
_MOST_KEYS = 1 << 18  # data sets in one file; more are refused


def is_hdf5(path: bytes, files: Files) -> bool:
    """Returns whether a file has the magic of HDF5 where HDF5 looks for it."""
    if is_folder_address(path) or not (_core.is_address(path) or os.path.isfile(path)):
        return False  # a pipe would wait
    try:
        file = files.open(path)
        at, places = 0, []
        while at + len(_MAGIC) <= file.size_bytes:
            places.append((at, len(_MAGIC)))
            at = max(_FIRST_BLOCK, 2 * at)
        return _MAGIC in file.read(places[:1]) or _MAGIC in file.read(places[1:])
    except FileNotFoundError:  # a pattern
        return False
    except OSError:
        if _core.is_address(path):
            raise
        return False


def open_core(
    names: list[bytes],
    files: Files,
    key: str | None,
    descr: str | None = None,
    axes: list[int] | None = None,
    offset: int | None = None,
    fortran: bool | None = None,
    **reading: Any,
) -> _core.Array:
    """Opens one data set of an HDF5 file.

    Args:
        names: The file, for which `is_hdf5` is true. Several cannot be joined.
        files: What opens it.
        key: Path of the data set in the file. None: "X" in an .h5ad, otherwise the only one.
        descr: If given, the dtype of the data set, as the core spells it.
        axes: If given, its shape.
        offset: Must be None: the file records where a data set is.
        fortran: Must not be True.
        reading: `memory_bytes`, `engine` and the other options of the core that are about reading.

    Raises:
        FormatError: There is no such data set, it is not stored as plain bytes, or it contradicts
            the arguments. Also if h5py is missing or cannot read the file.
    """
    # Opened first: if it changes while h5py looks at it, the engine refuses to read it.
    source = files.open(names[0])
    name = shown(names[0], source)
    if len(names) > 1:
        raise _core.FormatError(
            f"{name}: HDF5 files are not joined: open each of the {len(names)} files on its own"
        )
    with opened(names[0], source) as file:
        found, chosen = _find(file, name, key)
        memory_bytes = reading.get("memory_bytes") or _core.default_memory_bytes()
        table = hdf5_table.locate(found, f"{name}: {chosen!r}", name, memory_bytes)
    wrong = {"offset": offset, "order": "F" if fortran else None}
    for word, value in wrong.items():
        if value is not None:
            raise _core.FormatError(
                f"{name}: {chosen!r}: {word} {value!r} was given, but the file itself records "
                f"where the data is, in C order; leave {word} out"
            )
    if descr is not None and descr != table.descr:
        raise _core.FormatError(
            f"{name}: {chosen!r}: dtype {descr} was given, but the file says {table.descr}"
        )
    core = _core.Array.open_chunks(
        [source],
        format="hdf5",
        dtype=table.descr,
        shape=table.shape,
        chunk_shape=table.chunk_shape,
        offsets_bytes=table.offsets,
        fill=table.fill,
        **reading,
    )
    if axes is not None and tuple(axes) != core.shape:
        raise _core.FormatError(
            f"{name}: {chosen!r}: shape {tuple(axes)} was given, but the file says {core.shape}"
        )
    return core


@contextlib.contextmanager
def opened(path: bytes, source: _core.FileReader) -> Iterator[Any]:
    """Opens the file with h5py. Raises FormatError if h5py cannot read it."""
    name = shown(path, source)
    try:
        import h5py
    except ImportError:
        raise _core.FormatError(
            f"{name}: this is an HDF5 file; to open it, install h5py, which locates its data: "
            "pip install h5py"
        ) from None
    try:
        with h5py.File(ObjectFile(source) if _core.is_address(path) else name, "r") as file:
            yield file
    except OSError as error:
        if error.errno is not None:  # it is locked by a writer, or not ours to read
            raise
        raise _core.FormatError(f"{name}: h5py cannot read this HDF5 file: {error}") from None
    except RuntimeError as error:  # damaged inside
        raise _core.FormatError(f"{name}: h5py cannot read this HDF5 file: {error}") from None


def attribute(item: Any, name: str) -> str | None:
    """Returns a text attribute of an open group or data set; None if it has none."""
    found = item.attrs.get(name)
    if isinstance(found, bytes):
        return found.decode("utf-8", "replace")
    return found if isinstance(found, str) else None


def is_categorical(item: Any) -> bool:
    """Whether an open group holds codes and their categories, as AnnData writes them."""
    found = attribute(item, "encoding-type")
    return found == "categorical" and "codes" in item and "categories" in item


def categories(path: bytes, files: Files, key: str) -> Any:
    """Returns the categories of the codes at `key`; None if it holds no codes."""
    source = files.open(path)
    name = shown(path, source)
    with opened(path, source) as file:
        if not is_categorical(follow(file, name, key)):
            return None
        found = follow(file, name, f"{key}/categories")
        return np.asarray(found.asstr()[:] if found.dtype.kind in "OS" else found[:])


def keys(group: Any, most: int = _MOST_KEYS) -> list[str]:
    """Returns the paths of the data sets in a group of an open file, without links.

    Stops after `most`.
    """
    import h5py

    found: list[str] = []

    def visit(key: str, item: Any) -> bool | None:
        if isinstance(item, h5py.Dataset):
            found.append(key)
        return True if len(found) >= most else None

    group.visititems(visit)
    return found


def _shown(found: list[str]) -> str:
    text = ", ".join(map(repr, found[:_SHOWN_KEYS]))
    more = len(found) - _SHOWN_KEYS
    return text + (f" and {more} more" if more > 0 else "")


def _find(file: Any, name: str, key: str | None) -> tuple[Any, str]:
    """Returns the data set that the caller means, and its key."""
    import h5py

    if key is None and file.attrs.get("encoding-type") == "anndata":
        key = "X"
    if key is None:
        found = keys(file)
        if len(found) == 1:
            return file[found[0]], found[0]
        if not found:
            raise _core.FormatError(f"{name}: expected a data set, found none in the file")
        raise _core.FormatError(
            f"{name}: expected a key, because the file contains {len(found)} data sets: "
            f"{_shown(found)}"
        )
    item = follow(file, name, key)
    if isinstance(item, h5py.Dataset):
        return item, key
    if isinstance(item, h5py.Group):
        if is_categorical(item):
            return follow(file, name, f"{key}/codes"), key
        inside = [f"{key.rstrip('/')}/{one}" for one in keys(item)]
        raise _core.FormatError(
            f"{name}: expected a data set, but {key!r} is a group"
            + (f"; the data sets in it are {_shown(inside)}" if inside else " without data sets")
        )
    raise _core.FormatError(f"{name}: expected a data set, but {key!r} is a named type")


def follow(file: Any, name: str, key: str) -> Any:
    """Returns the object at `key`; refuses links to other files."""
    import h5py

    at = ""
    for part in key.strip("/").split("/"):
        at = f"{at}/{part}"
        try:
            link = file.get(at, getlink=True)
        except (KeyError, ValueError, RuntimeError):  # RuntimeError for "" and "."
            link = None
        if link is None:
            raise _core.FormatError(
                f"{name}: expected one of the data sets {_shown(keys(file))}, found key {key!r}"
            )
        if isinstance(link, h5py.ExternalLink):
            raise _core.FormatError(
                f"{name}: {at[1:]!r} is a link to {link.path!r} in the file {link.filename!r}, "
                "which is not followed: open that file"
            )
    try:
        item = file[at]
    except (KeyError, ValueError):
        raise _core.FormatError(f"{name}: {key!r} is a soft link to nothing") from None
    # A soft link may lead to a link out of the file.
    if h5py.h5o.get_info(item.id).fileno != h5py.h5o.get_info(file.id).fileno:
        raise _core.FormatError(
            f"{name}: {key!r} is in another file, {item.file.filename!r}, because of a link, which "
            "is not followed: open that file"
        )
    return item
