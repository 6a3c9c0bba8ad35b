"""What a job reads, as the core expects it: paths, and how to open them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _core
from lowtide._data.array import Array
from lowtide._data.documents import Documents
from lowtide._data.ragged import Ragged
from lowtide._data.tokens import Tokens, absolute

if TYPE_CHECKING:
    from collections.abc import Sequence

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    Source = Path | Sequence[Path] | Array | Tokens | Ragged | Documents


# Formats that a Python package finds its way in. Tasks have none.
_ONLY_PYTHON = {"hdf5": "an HDF5", "arrow": "an Arrow"}


def job_source(source: Any) -> _core.JobSource:
    """Returns a source for the core. Raises TypeError, ValueError, and what opening raises."""
    if isinstance(source, Array):
        return _of_array(source)
    if isinstance(source, Tokens):
        return _of_tokens(source)
    if isinstance(source, Documents):
        return _of_tokens(source._tokens)
    if isinstance(source, Ragged):
        return _of_ragged(source)
    if not isinstance(source, (str, bytes, os.PathLike, list, tuple)):
        raise TypeError(
            "src must be a path, a list of paths, or what lowtide.open, lowtide.tokens or "
            f"lowtide.ragged returned, not {_arguments.told(source)}"
        )
    names, expand = _arguments.path_list(source)
    # Tasks may run in a process with another working directory.
    names = [os.fsencode(absolute(os.fsdecode(name), expand)) for name in names]
    found = _core.info(names, expand, None, None, None, None, None, None)
    return _core.JobSource(names, tokens=found["kind"] == "tokens")


def _of_array(array: Array, offsets: Sequence[bytes] = ()) -> _core.JobSource:
    kind = _ONLY_PYTHON.get(array.format)
    if kind is not None:
        raise ValueError(
            f"a job cannot read {kind} file: np.save('a.npy', a), where a is the open array, makes "
            "a copy that it can read, in flat memory"
        )
    dtype, axes, offset, order, *_ = array._asked
    descr, _ = _arguments.descr(dtype)
    return _core.JobSource(
        [os.fsencode(path) for path in array._paths],
        tokens=False,
        dtype=descr,
        shape=axes,
        offset_bytes=offset,
        fortran_order=_arguments.is_fortran(order),
        key=array._key,
        offsets=list(offsets),
    )


def _of_tokens(tokens: Tokens) -> _core.JobSource:
    dtype, format, eot, *_, key = tokens._asked
    descr, _ = _arguments.descr(dtype)
    where = [tokens._where] if isinstance(tokens._where, str) else tokens._where
    return _core.JobSource(
        [os.fsencode(path) for path in where],
        tokens=True,
        dtype=descr,
        format=format,
        eot=eot,
        key=key,
    )


def _of_ragged(ragged: Ragged) -> _core.JobSource:
    if not isinstance(ragged.values, Array):
        raise TypeError("a job reads ragged data with one array of values, not a tuple or a dict")
    if ragged._given is None:
        raise TypeError(
            "a job needs the offsets of ragged data in a file: np.save('offsets.npy', offsets), "
            "then lowtide.ragged(values, lowtide.open('offsets.npy'))"
        )
    given = ragged._given
    if given._key is not None or any(said is not None for said in given._asked[:4]):
        raise ValueError(
            "a job needs the offsets of ragged data in a .npy file, opened without dtype, shape, "
            "offset, order and key"
        )
    return _of_array(ragged.values, [os.fsencode(path) for path in given._paths])
