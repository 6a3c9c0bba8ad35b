"""Sparse matrices that AnnData has written, as .h5ad or zarr, read in place."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from lowtide import _arguments, _core
from lowtide._data import hdf5
from lowtide._data.files import Files, shown

_KIND = "encoding-type"
_OLD_KIND = "h5sparse_format"  # before AnnData 0.7
_MOST_ATTRIBUTES_BYTES = 1 << 20
_SPARSE = {"csr_matrix": "csr", "csc_matrix": "csc"}


def find_csr(path: bytes, files: Files, key: str | None) -> tuple[str, tuple[int, int]] | None:
    """Returns the key and the shape of a sparse matrix; None if `key` is something else.

    Args:
        path: An HDF5 file.
        files: What opens it.
        key: Path of a group in the file. None: "X", if the file is AnnData's.

    Raises:
        FormatError: The matrix is stored by columns, or does not record its shape.
    """
    source = files.open(path)
    name = shown(path, source)
    with hdf5.opened(path, source) as file:
        if key is None:
            if "X" not in file:
                return None
            key = "X"
        item = hdf5.follow(file, name, key)
        kind = hdf5.attribute(item, _KIND) or hdf5.attribute(item, _OLD_KIND)
        shape = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
    checked = _checked(f"{name}: {key!r}", kind, shape)
    return None if checked is None else (key, checked)


def find_zarr_csr(
    folder: bytes, files: Files, key: str | None
) -> tuple[str, tuple[int, int]] | None:
    """The same for a folder of zarr, version 2 or 3, as AnnData writes it."""
    import json  # not before it is needed: `import lowtide` stays quick

    group = "X" if key is None else key
    if group.startswith("/") or ".." in group.split("/"):
        return None
    for name in (".zattrs", "zarr.json"):
        try:
            path = _core.path_in(folder, f"{group}/{name}".encode())
            text = files.read(path, _MOST_ATTRIBUTES_BYTES)
            if text is None:
                continue
            found = json.loads(text)
            attributes = found if name == ".zattrs" else found["attributes"]
            kind, shape = attributes.get(_KIND), attributes.get("shape")
        except (ValueError, KeyError, AttributeError, RecursionError):
            return None
        shown_folder = os.fsdecode(_core.shown_address(folder))
        checked = _checked(f"{shown_folder}: {group!r}", kind, shape)
        return None if checked is None else (group, checked)
    return None


def _checked(about: str, found: Any, shape: Any) -> tuple[int, int] | None:
    """Returns the shape of a matrix of compressed rows; None for anything else."""
    kind = _SPARSE.get(found, found) if isinstance(found, str) else None
    if kind == "csc":
        raise _core.FormatError(
            f"{about} is stored by columns (CSC), so a row is spread over the whole file; write it "
            "by rows first, as in adata.X = adata.X.tocsr()"
        )
    if kind != "csr":
        return None
    fits = np.shape(shape) == (2,) and np.asarray(shape).dtype.kind in "iu"
    if not fits or min(shape) < 0 or max(shape) > _arguments.MAX:
        raise _core.FormatError(
            f"{about}: expected the attribute shape with two integers, each at least 0, found "
            f"{shape}"
        )
    return int(shape[0]), int(shape[1])
