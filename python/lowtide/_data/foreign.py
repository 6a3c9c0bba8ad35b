"""Files that the core cannot parse itself: h5py and pyarrow locate their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lowtide import _core
from lowtide._core import FormatError
from lowtide._data import arrow, hdf5
from lowtide._data.files import is_folder_address

if TYPE_CHECKING:
    from lowtide._data.files import Files

_SIGNING = ("store", "lister")  # options that `Files` has taken already


class Given(NamedTuple):
    """The caller's description of an array, as the core takes it."""

    key: str | None
    descr: str | None
    axes: list[int] | None
    offset: int | None
    fortran: bool | None


def may_explain(error: Exception, name: bytes) -> bool:
    """Returns whether the core may have failed because the file is one of these.

    A malformed address, or a pattern, is not requested again.
    """
    if isinstance(error, (FormatError, IsADirectoryError)):
        return True
    if _core.is_address(name) or isinstance(error, FileNotFoundError):
        return is_folder_address(name)
    return True


def open_core(
    names: list[bytes], files: Files, given: Given, options: dict[str, Any]
) -> _core.Array | None:
    """Opens a data set of HDF5, or a column of Arrow; None if the files are neither.

    Raises:
        OSError: A file cannot be read.
        FormatError: It is one of these, but cannot be read in place.
    """
    reading = {name: value for name, value in options.items() if name not in _SIGNING}
    if hdf5.is_hdf5(names[0], files):
        return hdf5.open_core(names, files, *given, **reading)
    found = None if given.descr is not None else arrow.files_of(names, files)
    return None if found is None else arrow.open_core(found, given.key, **reading)
