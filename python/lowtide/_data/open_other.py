"""Opens files of other tools that do not contain plain arrays: sparse matrices, lists."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _core
from lowtide._data import arrow, h5ad, hdf5, scdl
from lowtide._data.array import Array
from lowtide._data.csr import Csr
from lowtide._data.files import Files, is_folder_address
from lowtide._data.ragged import Ragged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lowtide._data.array import Path


def open_sparse(
    path: Path | Sequence[Path],
    key: str | None,
    shape: int | Sequence[int] | None,
    options: dict[str, Any],
) -> Csr | None:
    """Opens a sparse matrix; returns None if `path` is something else.

    Args:
        path: An `.h5ad` file, a folder of zarr that AnnData wrote, or one of BioNeMo-SCDL.
        key: Which matrix of a file. None: its "X".
        shape: If given, it must be that of the matrix. A folder of SCDL may need it.
        options: Those of `lowtide.open` that are about reading.
    """
    names, _ = _arguments.path_list(path)
    if len(names) != 1:
        return None
    name = os.fsdecode(_core.shown_address(names[0]))
    files = Files(options.get("store"))
    axes = _arguments.axes(shape)
    if scdl.is_scdl(names[0], files):
        if axes is not None and len(axes) != 2:
            raise ValueError(f"shape must be (rows, columns), not {tuple(axes)}")
        parts = scdl.arrays(names[0], files)
        order = (parts["DATA"], parts["COLPTR"], parts["ROWPTR"])
        arrays = [Array(file, dtype, shape=size, **options) for file, dtype, size in order]
        found = (len(arrays[2]) - 1, scdl.columns(names[0], files, axes))
    else:
        matrix = None
        if hdf5.is_hdf5(names[0], files):
            matrix = h5ad.find_csr(names[0], files, key)
        elif is_folder_address(names[0]) or os.path.isdir(names[0]):
            matrix = h5ad.find_zarr_csr(names[0], files, key)
        if matrix is None:
            return None
        group, found = matrix
        keys = (f"{group}/{part}" for part in ("data", "indices", "indptr"))
        arrays = [Array(path, key=one, **options) for one in keys]
    if axes is not None and tuple(axes) != found:
        raise _core.FormatError(
            f"{name}: shape {tuple(axes)} was given, but the matrix has {found}"
        )
    data, indices, indptr = arrays
    return Csr(data, indices, indptr, found)


def open_ragged(
    path: Path | Sequence[Path], key: str | None, options: dict[str, Any]
) -> Ragged | None:
    """Opens a column of lists of an Arrow file; returns None if `path` or `key` is something else.

    Args:
        path: An Arrow IPC file, several, or a folder of Hugging Face's datasets.
        key: Name of the column. None: the only one.
        options: Those of `lowtide.open` that are about reading.
    """
    names, _ = _arguments.path_list(path)
    sources = arrow.files_of(names, Files(options.get("store")))
    lists = arrow.list_offsets(sources, key) if sources else None
    if lists is None:
        return None
    values, offsets = lists
    return Ragged(Array(path, key=values, **options), offsets)
