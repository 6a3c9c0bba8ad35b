"""With NumPy's own functions, Dask, scikit-learn, pickle and copy."""

from __future__ import annotations

import copy
import os
import pickle

import lowtide as lt
import numpy as np
import pytest


def test_asarray_of_what_fits(matrix):
    path, data = matrix
    with lt.open(path) as a:
        whole = np.asarray(a)
        assert whole.flags.writeable
        np.testing.assert_array_equal(whole, data)
        assert np.asarray(a, dtype=np.float64).dtype == np.float64
        np.testing.assert_array_equal(np.array(a), data)
        assert np.mean(a) == data.mean()


def test_asarray_of_more_than_the_budget_says_what_to_call(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((1000, 1000)))
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        with pytest.raises(ValueError, match=r"a\[\.\.\.\].*iter_chunks.*batches"):
            np.asarray(a)
        assert a[...].shape == (1000, 1000)


def test_without_a_copy_is_refused(matrix):
    with lt.open(matrix[0]) as a, pytest.raises(ValueError, match="cannot become an ndarray"):
        a.__array__(copy=False)


@pytest.mark.parametrize(
    "clone", [lambda a: pickle.loads(pickle.dumps(a)), copy.copy, copy.deepcopy]
)
def test_a_pickle_is_a_reference(matrix, clone):
    path, data = matrix
    with lt.open(path, memory="1MiB", engine="pread", cache="keep") as a:
        assert len(pickle.dumps(a)) < 4096
        with clone(a) as b:
            assert (b.shape, b.dtype, b.memory, b.paths) == (a.shape, a.dtype, a.memory, a.paths)
            np.testing.assert_array_equal(b[5:50], data[5:50])


def test_a_pickle_keeps_the_description_of_a_raw_file(tmp_path):
    data = np.arange(60, dtype=">i2")
    (tmp_path / "m.raw").write_bytes(b"abc" + data.tobytes())
    asked = {"dtype": ">i2", "shape": (12, 5), "offset": 3, "order": "F", "memory": "1MiB"}
    with lt.open(tmp_path / "m.raw", **asked) as a, pickle.loads(pickle.dumps(a)) as b:
        assert (b.order, b.shape, b.dtype) == ("F", (12, 5), np.dtype(">i2"))
        np.testing.assert_array_equal(b[:], data.reshape((12, 5), order="F"))


def test_a_pickle_holds_absolute_paths(matrix, monkeypatch):
    path, data = matrix
    monkeypatch.chdir(path.parent)
    a = lt.open(path.name)
    monkeypatch.chdir("/")
    with a, pickle.loads(pickle.dumps(a)) as b:
        assert os.path.isabs(b.path)
        np.testing.assert_array_equal(b[3], data[3])


def test_a_pickle_of_a_file_that_was_replaced(matrix):
    path, data = matrix
    with lt.open(path) as a:
        text = pickle.dumps(a)
    np.save(path, data[:10])
    with pytest.raises(lt.FormatError, match="was pickled with shape"):
        pickle.loads(text)


def test_dask_takes_it_as_an_array(matrix):
    dask_array = pytest.importorskip("dask.array")
    path, data = matrix
    with lt.open(path, memory="1MiB") as a:
        for chunks in ("auto", (100, 10)):
            d = dask_array.from_array(a, chunks=chunks)
            assert (d.shape, d.dtype) == (data.shape, data.dtype)
            assert d.sum().compute() == data.sum()
            np.testing.assert_array_equal(d[::7, 3].compute(), data[::7, 3])


def test_dask_of_more_than_the_budget(tmp_path):
    dask_array = pytest.importorskip("dask.array")
    data = np.random.default_rng(0).random((2000, 200))
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        d = dask_array.from_array(a, chunks=(100, 200))
        np.testing.assert_allclose(d.mean(axis=0).compute(), data.mean(axis=0))


def test_scikit_learn_learns_from_batches(tmp_path):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    data = rng.normal(size=(2000, 8)).astype(np.float32)
    labels = (data[:, 0] > 0).astype(int)
    np.save(tmp_path / "x.npy", data)
    model = linear_model.SGDClassifier(random_state=0)
    with lt.open(tmp_path / "x.npy", memory="1MiB") as a:
        for epoch in range(3):
            for idx, rows in a.batches(100, order="shuffle", seed=0, epoch=epoch):
                model.partial_fit(rows, labels[idx], classes=[0, 1])
    assert model.score(data, labels) > 0.9
