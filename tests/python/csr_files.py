"""Shared by the tests of sparse rows: random matrices, as SciPy and as files."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest


def matrix(rows, columns, mean=8, dtype="f4", index="i4", seed=0, longest=None):
    """A random matrix: unsorted indices, empty rows, a long one, values of any type."""
    rng = np.random.default_rng(seed)
    lengths = rng.poisson(mean, rows)
    lengths[rng.random(rows) < 0.1] = 0
    if rows:
        lengths[rows // 2] = columns if longest is None else longest
    lengths = np.minimum(lengths, columns)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate(
        [rng.permutation(columns)[:count] for count in lengths] or [np.empty(0, int)]
    ).astype(index)
    values = rng.integers(0, 2 if np.dtype(dtype).kind == "b" else 100, len(indices)).astype(dtype)
    return values, indices, indptr


def write_csr(folder, data, indices, indptr, pointer="i8"):
    np.save(folder / "data.npy", data)
    np.save(folder / "indices.npy", indices)
    np.save(folder / "indptr.npy", np.asarray(indptr).astype(pointer))


def open_csr(folder, columns, rows=None, **options):
    options = {"memory": "4MiB", **options}
    arrays = [lt.open(folder / f"{name}.npy", **options) for name in ("data", "indices", "indptr")]
    return lt.csr(*arrays, shape=(len(arrays[2]) - 1 if rows is None else rows, columns))


def as_scipy(parts, columns):
    data, indices, indptr = parts
    return pytest.importorskip("scipy.sparse").csr_array(
        (data, indices.astype("i8"), indptr), shape=(len(indptr) - 1, columns)
    )


def rows_of(parts, index):
    """The values, the indices and the offsets of some rows, as they are stored."""
    data, indices, indptr = parts
    spans = [slice(indptr[i], indptr[i + 1]) for i in index]
    offsets = np.cumsum([0, *(span.stop - span.start for span in spans)])
    none = np.empty(0, int)
    return (
        np.concatenate([data[span] for span in spans] or [data[none]]),
        np.concatenate([indices[span] for span in spans] or [indices[none]]),
        offsets,
    )


def dense_of(parts, columns, index, dtype="f4", picked=None):
    """Some rows as a dense matrix, by a loop over their values."""
    data, indices, indptr = parts
    whole = np.zeros((len(index), columns), "f8" if dtype == "f8" else "f4")
    for row, i in enumerate(index):
        span = slice(indptr[i], indptr[i + 1])
        np.add.at(whole[row], indices[span].astype("i8"), data[span].astype(whole.dtype))
    return (whole if picked is None else whole[:, picked]).astype(dtype)
