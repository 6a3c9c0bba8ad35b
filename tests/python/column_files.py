"""Shared by the tests of columns: arrays with known contents, and batches compared with them."""

from __future__ import annotations

import lowtide as lt
import numpy as np


def made(dtype, *shape, seed=0):
    """Random bytes as an array of any type."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    raw = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, np.uint8)
    if dtype.kind == "b":
        raw %= 2
    if dtype.kind == "U":
        raw = raw.astype(np.uint32)[: count * dtype.itemsize // 4] % 0x7F + 1
    return raw.view(dtype).reshape(shape)


def numbered(count, *shape, dtype="f4"):
    """Rows whose every element tells the number of the row."""
    rows = np.zeros((count, *shape), dtype)
    rows.T[...] = np.arange(count)
    return rows


def write(path, data):
    np.save(path, data)
    return str(path)


def write_parts(folder, name, data, cuts):
    """`data` cut into several .npy files along its first axis."""
    parts = np.split(data, cuts)
    return [write(folder / f"{name}_{at:03d}.npy", part) for at, part in enumerate(parts)]


def opened(folder, data, name="x", **options):
    """`data` as a lowtide Array of a file of its own."""
    return lt.open(write(folder / f"{name}.npy", data), **{"memory": "4MiB", **options})


def expect_rows(batch, *arrays):
    """The columns are the rows of `arrays` that batch.index names, bit by bit."""
    assert len(batch) == len(arrays)
    index = np.asarray(batch.index)
    for found, array in zip(batch, arrays):
        rows = array[index]
        assert found.dtype == rows.dtype
        assert found.shape == rows.shape
        assert found.tobytes() == rows.tobytes()


def expect_ragged(values, offsets, index, samples):
    """`values` are the samples that `index` names, one after the other."""
    assert offsets.dtype == np.int64
    expected = [samples[row] for row in index]
    assert offsets.tolist() == [0, *np.cumsum([len(one) for one in expected]).tolist()]
    assert values.dtype == samples[0].dtype
    assert values.tobytes() == b"".join(one.tobytes() for one in expected)
    assert values.shape == (offsets[-1], *samples[0].shape[1:])


def indexes(batches):
    """The index of all batches, in order."""
    found = [np.asarray(batch.index) for batch in batches]
    return np.concatenate(found) if found else np.empty(0, np.int64)
