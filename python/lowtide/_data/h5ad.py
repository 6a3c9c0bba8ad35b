"""Sparse matrices in .h5ad files (AnnData in HDF5), read in place."""

from __future__ import annotations

import numpy as np

from lowtide import _core
from lowtide._data import hdf5

_KIND = "encoding-type"
_OLD_KIND = "h5sparse_format"  # before AnnData 0.7
_SPARSE = {"csr_matrix": "csr", "csc_matrix": "csc"}


def find_csr(name: str, key: str | None) -> tuple[str, tuple[int, int]] | None:
    """Returns the key and the shape of a sparse matrix; None if `key` is something else.

    Args:
        name: An HDF5 file.
        key: Path of a group in the file. None: "X", if the file is AnnData's.

    Raises:
        FormatError: The matrix is stored by columns, or says nothing about its shape.
    """
    with hdf5.opened(name) as file:
        if key is None:
            if "X" not in file:
                return None
            key = "X"
        item = hdf5.follow(file, name, key)
        found = hdf5.attribute(item, _KIND) or hdf5.attribute(item, _OLD_KIND)
        kind = _SPARSE.get(str(found), found)
        if kind == "csc":
            raise _core.FormatError(
                f"{name}: {key!r} is stored by columns (CSC), so a row is spread over the whole "
                "file; write it by rows first, as in adata.X = adata.X.tocsr()"
            )
        if kind != "csr":
            return None
        shape = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
        if shape is None or np.shape(shape) != (2,) or np.asarray(shape).dtype.kind not in "iu":
            raise _core.FormatError(
                f"{name}: {key!r}: expected the attribute shape with two integers, found {shape}"
            )
        return key, (int(shape[0]), int(shape[1]))
