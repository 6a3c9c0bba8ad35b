"""Sparse matrices on disk: what indexing reads, what is kept, and what is refused."""

from __future__ import annotations

import pickle

import lowtide as lt
import numpy as np
import pytest
from csr_files import as_scipy, matrix, open_csr, rows_of, write_csr

pytest.importorskip("scipy.sparse")  # rows are its arrays

COLUMNS = 50


@pytest.fixture
def parts(tmp_path):
    parts = matrix(300, COLUMNS)
    write_csr(tmp_path, *parts)
    return parts


def expect_rows(found, parts, index, columns=COLUMNS):
    data, indices, offsets = rows_of(parts, index)
    assert found.shape == (len(index), columns)
    assert found.data.dtype == data.dtype
    np.testing.assert_array_equal(found.data, data)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.indptr, offsets)


def test_facts(tmp_path, parts):
    c = open_csr(tmp_path, COLUMNS)
    assert c.shape == (300, COLUMNS)
    assert len(c) == 300
    assert c.ndim == 2
    assert c.dtype == np.float32
    assert c.nnz == len(parts[0])
    assert c.memory == 4 << 20
    assert repr(c) == f"<lowtide.Csr 300 x 50 float32 nnz={c.nnz}>"
    np.testing.assert_array_equal(c.indptr[:], parts[2])


@pytest.mark.parametrize(
    "index",
    [0, 7, -1, np.int32(3), slice(10, 20), slice(None, None, -7), slice(5, 5), [], [3, 3, 299, 0],
     [-1, 2], range(4), np.array([250, 1], "u4")],
    ids=repr,
)  # fmt: skip
def test_indexing_is_scipys(tmp_path, parts, index):
    c = open_csr(tmp_path, COLUMNS)
    rows = np.arange(300)[index]
    expect_rows(c[index], parts, np.atleast_1d(rows).astype(int))
    assert (c[index] != as_scipy(parts, COLUMNS)[np.atleast_1d(rows).astype(int)]).nnz == 0


def test_masks_select_rows(tmp_path, parts):
    c = open_csr(tmp_path, COLUMNS)
    mask = np.arange(300) % 7 == 0
    expect_rows(c[mask], parts, np.flatnonzero(mask))
    with pytest.raises(IndexError, match="the mask has 5 entries, but there are 300 rows"):
        c[np.ones(5, bool)]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [(300, IndexError, "index 300 is out of bounds"), ([0, -301], IndexError, "-301"),
     ((1, 2), TypeError, "only rows"), ("a", TypeError, "not str"), (1.5, TypeError, "not float"),
     ([0.5], TypeError, "integers"), ([[1]], IndexError, "one axis"),
     (True, TypeError, r"not bool \(True\)")],
)  # fmt: skip
def test_a_wrong_index_is_refused(tmp_path, parts, index, error, text):
    with pytest.raises(error, match=text):
        open_csr(tmp_path, COLUMNS)[index]


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("index", ["i4", "i8", "u4", "u2", "u1", "i2"])
def test_types_are_kept(tmp_path, dtype, index):
    parts = matrix(40, COLUMNS, dtype=dtype, index=index)
    write_csr(tmp_path, *parts, pointer="i4")
    c = open_csr(tmp_path, COLUMNS)
    if dtype == "f2":  # which SciPy does not take
        loader = lt.Loader(c, 40, order="sequential")
        assert loader.next().data.dtype == np.float16
        return
    expect_rows(c[:], parts, range(40))


@pytest.mark.parametrize("pointer", ["i4", "i8", "u4", "u8", "u2"])
def test_pointers_of_any_integer_type(tmp_path, parts, pointer):
    write_csr(tmp_path, *parts, pointer=pointer)
    expect_rows(open_csr(tmp_path, COLUMNS)[[5, 150, 2]], parts, [5, 150, 2])


def test_pointers_that_do_not_fit_are_read_when_needed(tmp_path):
    parts = matrix(50_000, 9, mean=2)
    write_csr(tmp_path, *parts)
    small = open_csr(tmp_path, 9, memory="256KiB")  # 100 KiB of lengths are more than a quarter
    large = open_csr(tmp_path, 9, memory="4MiB")
    assert sum(small.stats()["memory"]["claims"].values()) < 200 << 10
    claimed = sum(large.stats()["memory"]["claims"].values())
    assert claimed >= 2 * 50_000
    index = np.random.default_rng(0).integers(0, 50_000, 5000)
    for c in (small, large):
        expect_rows(c[index], parts, index, 9)
        with lt.Loader(c, 100, seed=3) as loader:
            for _ in range(20):
                batch = loader.next()
                data, indices, offsets = rows_of(parts, batch.index)
                np.testing.assert_array_equal(batch.data, data)
                np.testing.assert_array_equal(batch.indices, indices)
                np.testing.assert_array_equal(batch.indptr, offsets)


def test_rows_longer_than_lengths_are_kept_in(tmp_path):
    parts = matrix(100, 70_000, mean=3)
    assert np.diff(parts[2]).max() == 70_000
    write_csr(tmp_path, *parts)
    c = open_csr(tmp_path, 70_000)
    expect_rows(c[[50, 0, 99, 50]], parts, [50, 0, 99, 50], 70_000)


def test_empty_matrices(tmp_path):
    write_csr(tmp_path, np.empty(0, "f4"), np.empty(0, "i4"), np.zeros(1))
    assert open_csr(tmp_path, 5)[:].shape == (0, 5)
    write_csr(tmp_path, np.empty(0, "f4"), np.empty(0, "i4"), np.zeros(4))
    c = open_csr(tmp_path, 0)
    assert c[[2, 1]].shape == (2, 0)
    assert c.nnz == 0


def test_many_threads_and_files(tmp_path, parts):
    data, indices, _ = parts
    for name, array, cuts in (("part_d", data, [7, 7, 900]), ("part_i", indices, [500])):
        for at, part in enumerate(np.split(array, cuts)):
            np.save(tmp_path / f"{name}{at}.npy", part)
    c = lt.csr(
        lt.open(str(tmp_path / "part_d*.npy")),
        lt.open(str(tmp_path / "part_i*.npy")),
        lt.open(tmp_path / "indptr.npy"),
        (300, COLUMNS),
    )
    from concurrent.futures import ThreadPoolExecutor

    def read(seed):
        index = np.random.default_rng(seed).integers(0, 300, 40)
        expect_rows(c[index], parts, index)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(40)))


def test_pickle_and_close(tmp_path, parts):
    c = open_csr(tmp_path, COLUMNS)
    again = pickle.loads(pickle.dumps(c))
    expect_rows(again[3:9], parts, range(3, 9))
    with c:
        pass
    assert c.closed
    with pytest.raises(ValueError, match="the sparse matrix is closed"):
        c[0]
    assert c.data[0] == parts[0][0]  # the arrays stay open


def test_operators_are_refused_with_words(tmp_path, parts):
    with pytest.raises(TypeError, match="Index it first"):
        open_csr(tmp_path, COLUMNS) + 1


def test_numpy_does_not_read_it_row_by_row(tmp_path, parts):
    c = open_csr(tmp_path, COLUMNS)
    for function in (np.asarray, np.sum, np.array):
        with pytest.raises(TypeError, match=r"use c\[i:j\]\.toarray\(\), or lowtide\.Loader"):
            function(c)


def test_arguments(tmp_path, parts):
    data, indices, indptr = (lt.open(tmp_path / f"{n}.npy") for n in ("data", "indices", "indptr"))
    with pytest.raises(ValueError, match="shape is required"):
        lt.csr(data, indices, indptr)
    with pytest.raises(ValueError, match="shape has 9 rows, but indptr has 301 entries"):
        lt.csr(data, indices, indptr, (9, COLUMNS))
    with pytest.raises(ValueError, match=r"\(rows, columns\)"):
        lt.csr(data, indices, indptr, (300,))
    with pytest.raises(TypeError, match=r"\(rows, columns\), not int"):
        lt.csr(data, indices, indptr, 300)
    assert lt.csr(data, indices, indptr, np.array([300, COLUMNS])).shape == (300, COLUMNS)
    with pytest.raises(TypeError, match=r"indices must be a lowtide.Array \(lowtide.open\)"):
        lt.csr(data, parts[1], indptr, (300, COLUMNS))
    with pytest.raises(ValueError, match="indptr must be little-endian integers"):
        lt.csr(data, indices, data, (300, COLUMNS))
    np.save(tmp_path / "two.npy", np.zeros((3, 2), "i8"))
    with pytest.raises(ValueError, match=r"indices must have one axis, but its shape is \(3, 2\)"):
        lt.csr(data, lt.open(tmp_path / "two.npy"), indptr, (300, COLUMNS))


BAD = [
    ([0, 2, 1], "entry 2 is 1, less than the entry before it, which is 2"),
    ([1, 2, 3], "entry 0 is 1, but must be 0"),
    ([0, -2, 3], "entry 1 is -2, but must not be negative"),
    ([0, 2, 5], "entry 2 is 5, but there are only 4 values"),
    ([], "indptr is empty"),
]


@pytest.mark.parametrize(("indptr", "text"), BAD, ids=lambda value: str(value)[:20])
def test_pointers_that_cannot_be(tmp_path, indptr, text):
    write_csr(tmp_path, np.ones(4, "f4"), np.arange(4, dtype="i4"), np.array(indptr, "i8"))
    with pytest.raises(lt.FormatError, match=f"indptr.npy: .*{text}"):
        open_csr(tmp_path, 9, rows=0)


def test_pointers_for_fewer_rows_than_the_shape_are_refused(tmp_path):
    write_csr(tmp_path, np.ones(4, "f4"), np.arange(4, dtype="i4"), [0, 2, 4])
    with pytest.raises(ValueError, match="shape has 5 rows, but indptr has 3 entries"):
        open_csr(tmp_path, 9, rows=5)


def test_indices_that_are_unsorted_or_repeated_are_kept(tmp_path):
    indices = np.array([7, 2, 2, 0, 5, 5], "i4")
    write_csr(tmp_path, np.arange(6, dtype="f4"), indices, [0, 4, 6])
    c = open_csr(tmp_path, 9)
    found = c[[1, 0]]
    np.testing.assert_array_equal(found.indices, [5, 5, 7, 2, 2, 0])
    np.testing.assert_array_equal(found.data, [4, 5, 0, 1, 2, 3])
    batch = lt.Loader(c, 2, order="sequential").next()
    np.testing.assert_array_equal(batch.indices, indices)


def test_lengths_that_differ(tmp_path):
    write_csr(tmp_path, np.ones(4, "f4"), np.arange(3, dtype="i4"), [0, 3])
    with pytest.raises(lt.FormatError, match="indices has 3 entries, but data has 4"):
        open_csr(tmp_path, 9)
    write_csr(tmp_path, np.ones(4, "f4"), np.arange(4, dtype="i4"), [0, 4])
    with pytest.raises(lt.FormatError, match="has no columns, but data has 4 values"):
        open_csr(tmp_path, 0)


@pytest.mark.parametrize("wrong", [9, -1, 2**31 - 1, -(2**31)])
def test_indices_out_of_range_name_their_row(tmp_path, wrong):
    indices = np.array([0, 1, 2, wrong, 4], "i4")
    write_csr(tmp_path, np.ones(5, "f4"), indices, [0, 2, 3, 5])
    c = open_csr(tmp_path, 9)
    assert c[:2].shape == (2, 9)
    text = f"indices.npy: row 2 has index {wrong}, but the matrix has 9 columns"
    with pytest.raises(lt.FormatError, match=text):
        c[[0, 1, 2]]
    for dense in (False, True):
        with lt.Loader(c, 1, order="sequential", dense=dense) as loader:
            loader.next()
            loader.next()
            for _ in range(2):  # the next call tries again
                with pytest.raises(lt.FormatError, match=rf"{text} \(epoch 0, step 2\)"):
                    loader.next()


def test_a_truncated_file_is_an_error(tmp_path, parts):
    path = tmp_path / "data.npy"
    raw = path.read_bytes()
    path.write_bytes(raw[:-4])
    with pytest.raises(lt.FormatError, match=r"data\.npy"):
        open_csr(tmp_path, COLUMNS)
