"""lt.create: the files are those that np.save writes, whatever the order of writing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = [
    "<f4",
    ">i2",
    "|b1",
    "<c16",
    "<M8[ns]",
    "<U3",
    "|S5",
    "|V7",
    [("x", "<f4"), ("y", "<i8", (2,))],
]
SHAPES = [(0,), (7,), (7, 5), (3, 0, 2), (4, 3, 2), (1, 1)]


def made(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Elements of any dtype that differ from each other."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    raw = np.random.default_rng(seed).integers(48, 50, count * dtype.itemsize, dtype=np.uint8)
    if dtype.kind == "U":
        return np.array([f"{i % 1000}" for i in range(count)], dtype).reshape(shape)
    if dtype.kind == "b":
        return (raw == 48).reshape(shape)
    return raw.view(dtype).reshape(shape)


def saved(path: Path, data: Any) -> bytes:
    np.save(path, data)
    return path.read_bytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_file_has_the_bytes_that_np_save_writes(
    tmp_path: Path, dtype: Any, shape: tuple[int, ...]
) -> None:
    data = made(dtype, shape)
    expected = saved(tmp_path / "numpy.npy", data)
    path = tmp_path / "ours.npy"
    with lt.create(path, dtype=dtype, shape=shape, memory="1MiB") as w:
        assert w.dtype == data.dtype and w.shape == shape and len(w) == shape[0]
        w[:] = data
    assert path.read_bytes() == expected
    with lt.create(path, dtype=dtype) as w:
        for first in range(0, shape[0] or 1, 2):
            w.append(data[first : first + 2])
    assert path.read_bytes() == expected
    assert np.array_equal(lt.open(path)[...], np.load(path))


@pytest.mark.parametrize("shape", [(7,), (7, 5), (6, 3, 2), (3, 0), (4, 1, 3)], ids=str)
def test_fortran_order_is_written_as_np_save_writes_it(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    data = np.asfortranarray(made("<f8", shape))
    path = tmp_path / "f.npy"
    with lt.create(path, dtype="<f8", shape=shape, order="F") as w:
        w[2:] = data[2:]
        w[[1, 0]] = data[[1, 0]]
    assert np.array_equal(np.load(path), data)
    if len(shape) > 1 and data.size and 1 not in shape:
        assert path.read_bytes() == saved(tmp_path / "numpy.npy", data)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_may_come_in_any_order(tmp_path_factory: Any, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 300))
    columns = data.draw(st.sampled_from([1, 3, 200, 3000]))
    path = tmp_path_factory.mktemp("any") / "a.npy"
    expected = np.zeros((rows, columns), "<u4")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    with lt.create(path, dtype="<u4", shape=(rows, columns), memory="512KiB") as w:
        for _ in range(data.draw(st.integers(0, 12))):
            kind = data.draw(st.sampled_from(["slice", "step", "index", "mask", "one", "fill"]))
            first = data.draw(st.integers(0, rows))
            index: Any = slice(first, data.draw(st.integers(first, rows)))
            if kind == "step":
                index = slice(None, None, data.draw(st.sampled_from([-3, -1, 2])))
            if kind == "index":
                index = rng.integers(-rows, rows, data.draw(st.integers(0, 40)))
            if kind == "mask":
                index = rng.random(rows) < 0.3
            if kind == "one":
                index = int(rng.integers(-rows, rows))
            value: Any = rng.integers(0, 2**32, expected[index].shape, dtype=np.uint32)
            if kind == "fill":
                value = 7
            w[index] = value
            expected[index] = value
    assert np.array_equal(np.load(path), expected)


def test_rows_of_any_layout_are_converted_without_loss(tmp_path: Path) -> None:
    data = np.arange(60, dtype="<i4").reshape(10, 6)
    path = tmp_path / "a.npy"
    with lt.create(path, dtype=">f8", shape=(10, 6)) as w:
        w[:5] = data.astype("<i2")[:5]
        w[5:8] = np.asfortranarray(data)[5:8]
        w[8] = data[8].tolist()
        w[9] = data[::-1][0][::1]
    assert np.array_equal(np.load(path), data)
    assert np.load(path).dtype == np.dtype(">f8")
    with lt.create(tmp_path / "b.npy", dtype="uint8") as w:
        w.append([1, 2, 255])
        w.append(4)
    assert np.load(tmp_path / "b.npy").tolist() == [1, 2, 255, 4]


def test_an_array_on_disk_is_copied_in_slices(tmp_path: Path) -> None:
    data = np.arange(300_000, dtype="<u4").reshape(-1, 3)
    np.save(tmp_path / "a.npy", data)
    with lt.open(tmp_path / "a.npy", memory="1MiB") as a:
        with lt.create(tmp_path / "b.npy", dtype="<u8", shape=(None, 3), memory="1MiB") as w:
            w.append(a)
            w.append(a[0])
    found = np.load(tmp_path / "b.npy")
    assert np.array_equal(found, np.concatenate([data, data[:1]]))


def test_append_continues_after_the_last_written_row(tmp_path: Path) -> None:
    with lt.create(tmp_path / "a.npy", dtype="i8", shape=(6, 1)) as w:
        w[1:3] = [[1], [2]]
        w.append([[3]])
        w.append([4])  # one row
        with pytest.raises(IndexError):
            w.append([[5], [6], [7]])
    assert np.load(tmp_path / "a.npy").ravel().tolist() == [0, 1, 2, 3, 4, 0]


def test_commit_makes_rows_readable_and_append_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    data = made("<f4", (50, 4))
    w = lt.create(path, dtype="<f4", shape=(None, 4))
    w.append(data[:10])
    assert not path.exists()
    w.commit()
    assert np.array_equal(np.load(path), data[:10])
    w.append(data[10:20])
    w.commit()
    w.append(data[:30])  # lost
    w.abandon()
    assert w.closed
    with lt.create(path, append=True) as w:
        assert w.shape == (20, 4) and w.dtype == "<f4"
        w.append(data[20:])
    assert path.read_bytes() == saved(tmp_path / "numpy.npy", data)
    with lt.create(path, dtype="<f4", shape=(60, 4), append=True) as w:
        w[55] = data[0]
    assert np.array_equal(np.load(path)[[49, 54, 55]], [data[49], np.zeros(4), data[0]])


def test_rows_are_added_to_a_file_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    data = made("<i8", (1000, 3))
    np.save(path, data[:9])
    with lt.create(path, dtype="<i8", append=True) as w:
        for first in range(9, 1000, 100):
            w.append(data[first : first + 100])
    assert np.array_equal(np.load(path), data)


def test_threads_write_ranges_of_their_own(tmp_path: Path) -> None:
    data = np.random.default_rng(0).random((20_000, 41))
    path = tmp_path / "a.npy"
    with lt.create(path, dtype="f8", shape=data.shape, memory="2MiB") as w:

        def work(thread: int) -> None:
            for first in range(thread * 50, len(data), 400):
                w[first : first + 50] = data[first : first + 50]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert path.read_bytes() == saved(tmp_path / "numpy.npy", data)


def test_rows_that_threads_append_stay_together(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with lt.create(path, dtype="f8", shape=(None, 10), memory="1MiB") as w:

        def work(thread: int) -> None:
            for _ in range(20):
                w.append(np.full((3000, 10), thread, "i4"))  # converted, in several slices

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = np.load(path).reshape(80, 3000 * 10)
    assert (found == found[:, :1]).all()
    assert np.bincount(found[:, 0].astype(int)).tolist() == [20] * 4
