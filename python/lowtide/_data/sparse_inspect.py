"""What `lowtide.info` and `lowtide.check` say about sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowtide import _core
from lowtide._data import hdf5, scdl
from lowtide._data.files import Files
from lowtide._data.open_other import open_sparse

if TYPE_CHECKING:
    from lowtide._data.csr import Csr
    from lowtide._data.subject import Subject

_TOGETHER = 256  # rows that are checked together


def info(subject: Subject) -> dict[str, Any]:
    """Returns the dict of `lowtide.info` for a folder of BioNeMo-SCDL."""
    name, files = subject.names[0], Files()
    parts = scdl.arrays(name, files)
    about = [
        _core.info([path], False, False, "|u1", None, None, None, None)
        for path, _, _ in parts.values()
    ]
    cached = [one["cached"] for one in about]
    return {
        "path": name,
        "kind": "sparse",
        "format": "scdl",
        "dtype": parts["DATA"][1],
        "shape": (parts["ROWPTR"][2] - 1, scdl.columns(name, files, subject.shape)),
        "nnz": parts["DATA"][2],
        "bytes": sum(one["bytes"] for one in about),
        "shards": len(about),
        "cached": None if None in cached else sum(cached),
        "files": [file for one in about for file in one["files"]],
    }


def check(subject: Subject, _count_nan: bool, memory_bytes: int) -> dict[str, Any]:
    """Returns the dict of `lowtide.check`, or raises FormatError for the first fault."""
    found = info(subject)
    _check(subject.names[0], None, subject.shape, memory_bytes)
    found["notes"] = []
    return found


def check_groups(name: bytes, memory_bytes: int) -> None:
    """Checks every sparse matrix of an HDF5 file. Raises FormatError for the first fault."""
    groups: list[str] = []

    def visit(key: str, item: Any) -> None:
        if hdf5.attribute(item, "encoding-type") == "csr_matrix":
            groups.append(key)

    with hdf5.opened(name, Files().open(name)) as file:
        file.visititems(visit)
    for key in groups:
        _check(name, key, None, memory_bytes)


def _check(name: bytes, key: str | None, shape: list[int] | None, memory_bytes: int) -> None:
    from lowtide._loader.loader import Loader

    options = {"memory": memory_bytes, "cache": "drop"}
    matrix: Csr | None = open_sparse(name, key, shape, options)
    if matrix is None or not len(matrix):
        return
    rows = min(_TOGETHER, len(matrix))
    with matrix, Loader(matrix, rows, order="sequential", drop_last=False, epochs=1) as loader:
        for _ in loader:
            pass
