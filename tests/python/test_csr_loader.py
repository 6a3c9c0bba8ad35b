"""Loaders over sparse rows: as they are stored, as dense rows, beside other columns."""

from __future__ import annotations

import pickle

import lowtide as lt
import numpy as np
import pytest
from column_files import opened
from conftest import run
from csr_files import as_scipy, dense_of, matrix, open_csr, rows_of, write_csr

COLUMNS = 60


@pytest.fixture
def parts(tmp_path):
    parts = matrix(500, COLUMNS)
    write_csr(tmp_path, *parts)
    return parts


def expect_sparse(batch, parts):
    data, indices, offsets = rows_of(parts, batch.index)
    np.testing.assert_array_equal(batch.data, data)
    np.testing.assert_array_equal(batch.indices, indices)
    np.testing.assert_array_equal(batch.indptr, offsets)
    assert batch.indptr.dtype == np.int64


@pytest.mark.parametrize("order", ["shuffle", "sequential", "random"])
@pytest.mark.parametrize("batch_size", [1, 32, 500])
def test_batches_have_the_rows_of_their_index(tmp_path, parts, order, batch_size):
    c = open_csr(tmp_path, COLUMNS)
    with lt.Loader(c, batch_size, order=order, epochs=2) as loader:
        seen = []
        for _ in range(2):
            for batch in loader:
                expect_sparse(batch, parts)
                seen.extend(batch.index.tolist())
        if order != "random":
            full = 500 // batch_size * batch_size
            assert len(set(seen[:full])) == len(set(seen[full:])) == full


def test_the_order_is_that_of_arrays(tmp_path, parts):
    labels = opened(tmp_path, np.arange(500))
    with lt.Loader(open_csr(tmp_path, COLUMNS), 50, seed=7) as loader:
        index = np.concatenate([batch.index for batch in loader])
    with lt.Loader(labels, 50, seed=7) as loader:
        np.testing.assert_array_equal(index, np.concatenate([rows for (rows,) in loader]))


def test_a_sparse_batch(tmp_path, parts):
    with lt.Loader(open_csr(tmp_path, COLUMNS), 32) as loader:
        batch = loader.next()
        data, indices, indptr = batch
        assert batch.shape == (32, COLUMNS)
        assert data is batch.data and indices is batch.indices and indptr is batch.indptr
        assert f"32 x 60 sparse float32 nnz={len(data)} epoch=0 step=0" in repr(batch)
        expected = as_scipy(parts, COLUMNS)[batch.index]
        assert (batch.scipy() != expected).nnz == 0
        again = pickle.loads(pickle.dumps(batch))
        assert (again.scipy() != expected).nnz == 0
        assert again.shape == batch.shape
        with pytest.raises(TypeError, match=r"lowtide.torch.Loader"):
            batch.sparse_csr()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("stored", ["?", "i1", "u1", "i4", "u8", "f2", "f4", "f8"])
def test_dense_rows_of_any_type(tmp_path, stored, dtype):
    parts = matrix(100, COLUMNS, dtype=stored)
    write_csr(tmp_path, *parts)
    with lt.Loader(open_csr(tmp_path, COLUMNS), 10, dense=True, dtype=dtype) as loader:
        for batch in loader:
            (rows,) = batch
            assert rows.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(rows, dense_of(parts, COLUMNS, batch.index, dtype))


@pytest.mark.parametrize("index", ["i4", "i8", "u4", "u2", "u1"])
@pytest.mark.parametrize("picked", [[3, 0, 59], [5], [7, 7, 2, 7], range(59, -1, -1), [-1, 4]])
def test_picked_columns(tmp_path, index, picked):
    parts = matrix(100, COLUMNS, index=index)
    write_csr(tmp_path, *parts)
    with lt.Loader(open_csr(tmp_path, COLUMNS), 20, dense=True, columns=picked) as loader:
        for batch in loader:
            (rows,) = batch
            assert rows.dtype == np.float32
            expected = dense_of(parts, COLUMNS, batch.index, picked=list(picked))
            np.testing.assert_array_equal(rows, expected)
        again = pickle.loads(pickle.dumps(loader))
        np.testing.assert_array_equal(again.next()[0], loader.next()[0])
        again.close()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u8"])
def test_columns_of_a_type_too_small_for_their_number(tmp_path, dtype):
    parts = matrix(40, 1000)
    write_csr(tmp_path, *parts)
    picked = np.array([3, 0, 99], dtype) if dtype[0] == "u" else np.array([3, -1], dtype)
    with lt.Loader(open_csr(tmp_path, 1000), 20, dense=True, columns=picked) as loader:
        batch = loader.next()
    expected = dense_of(parts, 1000, batch.index, picked=[int(one) for one in picked])
    np.testing.assert_array_equal(batch[0], expected)


def test_entries_of_the_same_column_are_added(tmp_path):
    parts = np.array([1, 2, 4, 8], "f4"), np.array([3, 1, 3, 3], "i4"), np.array([0, 3, 3, 4])
    write_csr(tmp_path, *parts)
    with lt.Loader(open_csr(tmp_path, 5), 3, dense=True, order="sequential") as loader:
        expected = [[0, 2, 0, 5, 0], [0, 0, 0, 0, 0], [0, 0, 0, 8, 0]]
        np.testing.assert_array_equal(loader.next()[0], expected)


def test_halves_are_rounded_as_numpy_rounds(tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.standard_normal(2000), np.exp(rng.uniform(-30, 15, 4000)), [0, -0.0, np.inf, -np.inf],
         [65504, 65519.99, 65520, 65536, 5.96e-8, 2.98e-8, 2.99e-8, 6.1e-5, 1e-40], [np.nan]]
    ).astype("f4")  # fmt: skip
    write_csr(tmp_path, values, np.arange(len(values), dtype="i4"), [0, len(values)])
    with lt.Loader(open_csr(tmp_path, len(values)), 1, dense=True, dtype="float16") as loader:
        with np.errstate(over="ignore"):
            expected = values.astype("f2")
        (found,) = loader.next()
    np.testing.assert_array_equal(found[0], expected)


def test_beside_other_columns(tmp_path, parts):
    labels, image = np.arange(500), np.random.default_rng(1).random((500, 3, 2))
    source = {
        "x": open_csr(tmp_path, COLUMNS),
        "label": opened(tmp_path, labels, "label"),
        "image": opened(tmp_path, image, "image"),
    }
    with lt.Loader(source, 32, dense=True, epochs=1) as loader:
        for batch in loader:
            assert batch.keys() == ("x", "label", "image")
            np.testing.assert_array_equal(batch["x"], dense_of(parts, COLUMNS, batch.index))
            np.testing.assert_array_equal(batch["label"], labels[batch.index])
            np.testing.assert_array_equal(batch["image"], image[batch.index])


def test_two_matrices(tmp_path, parts):
    (tmp_path / "b").mkdir()
    other = matrix(500, 7, seed=5)
    write_csr(tmp_path / "b", *other)
    source = open_csr(tmp_path, COLUMNS), open_csr(tmp_path / "b", 7)
    with lt.Loader(source, 25, dense=True) as loader:
        for batch in loader:
            a, b = batch
            np.testing.assert_array_equal(a, dense_of(parts, COLUMNS, batch.index))
            np.testing.assert_array_equal(b, dense_of(other, 7, batch.index))
    with pytest.raises(ValueError, match="2 sparse matrices"):
        lt.Loader(source, 25, dense=True, columns=[1])


def test_rows_and_weights(tmp_path, parts):
    c = open_csr(tmp_path, COLUMNS)
    with lt.Loader(c, 10, rows=slice(100, 200), epochs=1) as loader:
        seen = []
        for batch in loader:
            expect_sparse(batch, parts)
            seen.extend(batch.index.tolist())
        assert sorted(seen) == list(range(100, 200))
    weights = np.zeros(500)
    weights[[3, 400]] = 1
    with lt.Loader(c, 10, weights=weights, dense=True, epochs=1) as loader:
        for batch in loader:
            assert set(batch.index.tolist()) <= {3, 400}
            np.testing.assert_array_equal(batch[0], dense_of(parts, COLUMNS, batch.index))


@pytest.mark.parametrize("dense", [False, True])
def test_a_mixture(tmp_path, parts, dense):
    if not dense:
        pytest.importorskip("scipy.sparse")
    (tmp_path / "b").mkdir()
    other = matrix(90, COLUMNS, seed=9)
    write_csr(tmp_path / "b", *other)
    mixed = [(open_csr(tmp_path, COLUMNS), 0.75), (open_csr(tmp_path / "b", COLUMNS), 0.25)]
    with lt.Loader(mixed, 40, dense=dense) as loader:
        for batch in loader:
            for row, (source, number) in enumerate(zip(batch.sources, batch.index)):
                expected = dense_of((parts, other)[source], COLUMNS, [number])[0]
                found = batch[0][row] if dense else batch.scipy()[[row]].toarray()[0]
                np.testing.assert_array_equal(found, expected)
    (tmp_path / "c").mkdir()
    write_csr(tmp_path / "c", *other)
    with pytest.raises(ValueError, match="same columns"):
        lt.Loader([(mixed[0][0], 1), (open_csr(tmp_path / "c", COLUMNS + 1), 1)], 40)


@pytest.mark.parametrize("dense", [False, True])
def test_state_resumes(tmp_path, parts, dense):
    c = open_csr(tmp_path, COLUMNS)
    with lt.Loader(c, 20, seed=2, dense=dense) as loader, lt.Loader(c, 20, seed=2) as other:
        for _ in range(30):
            loader.next()
        state = loader.state_dict()
        expected = loader.next().index
        other.load_state_dict(state)
        np.testing.assert_array_equal(other.next().index, expected)
    changed = matrix(500, COLUMNS, seed=1)
    write_csr(tmp_path, *changed)
    with lt.Loader(open_csr(tmp_path, COLUMNS), 20, seed=2) as third:
        with pytest.raises(ValueError, match="data"):
            third.load_state_dict(state)


def test_options_that_do_not_fit(tmp_path, parts):
    c, a = open_csr(tmp_path, COLUMNS), opened(tmp_path, np.zeros((500, 2)))
    with pytest.raises(ValueError, match="dense is for sparse rows"):
        lt.Loader(a, 10, dense=True)
    with pytest.raises(ValueError, match="columns needs dense=True"):
        lt.Loader(c, 10, columns=[1])
    with pytest.raises(ValueError, match="columns is for sparse rows only"):
        lt.Loader(a, 10, columns=[1])
    with pytest.raises(ValueError, match="dtype"):
        lt.Loader(c, 10, dtype="float32")
    with pytest.raises(ValueError, match="float16, float32, float64, not int32"):
        lt.Loader(c, 10, dense=True, dtype="int32")
    with pytest.raises(TypeError, match="dtype must be a NumPy dtype"):
        lt.Loader(c, 10, dense=True, dtype="real")
    with pytest.raises(ValueError, match="need dense=True"):
        lt.Loader((c, a), 10)
    with pytest.raises(IndexError, match="column 60 is out of bounds: there are 60"):
        lt.Loader(c, 10, dense=True, columns=[0, 60])
    for columns in ([], [0.5], [[1]], "a"):
        with pytest.raises(TypeError, match="columns must be integers"):
            lt.Loader(c, 10, dense=True, columns=columns)
    ragged = lt.ragged(a, np.arange(501))
    with pytest.raises(ValueError, match="ragged data and dense rows cannot be combined"):
        lt.Loader((c, ragged), 10, dense=True)
    with pytest.raises(ValueError, match="not for tokens"):
        np.arange(100, dtype="u2").tofile(tmp_path / "t.bin")
        lt.Loader(lt.tokens(tmp_path / "t.bin"), 2, block_size=4, dense=True)
    with pytest.raises(ValueError, match="same length"):
        lt.Loader((c, opened(tmp_path, np.zeros(7), "z")), 10, dense=True)


def test_a_budget_that_is_too_small_names_its_parts(tmp_path, parts):
    wide = matrix(500, 60_000, mean=100)
    write_csr(tmp_path, *wide)
    c = open_csr(tmp_path, 60_000, memory="4MiB")
    with pytest.raises(ValueError, match="its rows as they are stored"):
        lt.Loader(c, 64, dense=True).next()
    with lt.Loader(c, 64, dense=True, columns=range(100)) as loader:
        batch = loader.next()
        expected = dense_of(wide, 60_000, batch.index, picked=list(range(100)))
        np.testing.assert_array_equal(batch[0], expected)


def test_batches_stay_what_they_are(tmp_path, parts):
    with lt.Loader(open_csr(tmp_path, COLUMNS), 16, dense=True) as loader:
        kept = [loader.next() for _ in range(60)]
    for batch in kept:
        np.testing.assert_array_equal(batch[0], dense_of(parts, COLUMNS, batch.index))


MEMORY = """
import json, os, sys
import lowtide as lt
sys.path.insert(0, {tests!r})
from csr_files import open_csr
from pathlib import Path

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10

c = open_csr(Path({folder!r}), 2000, memory="16MiB", cache="drop")
before = anonymous()
most = 0
with lt.Loader(c, 64, dense={dense}, epochs=2) as loader:
    for _ in range(2):
        for batch in loader:
            most = max(most, anonymous() - before)
    claims = loader.stats()["memory"]["claims"]
print(json.dumps([most, sum(claims.values())]))
"""


@pytest.mark.parametrize("dense", [False, True])
def test_memory_stays_within_the_budget(tmp_path, dense):
    parts = matrix(40_000, 2000, mean=200)  # 64 MB
    write_csr(tmp_path, *parts)
    from pathlib import Path

    program = MEMORY.format(tests=str(Path(__file__).parent), folder=str(tmp_path), dense=dense)
    import json

    most, _ = json.loads(run(program).stdout)
    assert most <= (16 << 20) + (8 << 20)
