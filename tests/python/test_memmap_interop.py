"""lt.memmap in other libraries: joblib, scikit-learn, torch."""

from __future__ import annotations

import warnings

import lowtide as lt
import numpy as np
import pytest

MIB = 1 << 20
ROWS, COLUMNS = 60_000, 64  # 15 MiB of float32


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    data = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
    path = tmp_path_factory.mktemp("interop") / "m.f4"
    data.tofile(path)
    return path, data


def open_map(path, mode="r"):
    return lt.memmap(path, np.float32, mode, shape=(ROWS, COLUMNS), memory="8MiB")


def total(m, first, last):
    """Also what kind of array came, and its ceiling."""
    return float(m[first:last].sum(dtype=np.float64)), type(m).__module__, m.memory


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib_sends_it_by_reference(matrix, backend):
    joblib = pytest.importorskip("joblib")
    path, data = matrix
    m = open_map(path)
    parts = [(at, at + ROWS // 4) for at in range(0, ROWS, ROWS // 4)]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(total)(m, *part) for part in parts)
    assert sum(one[0] for one in found) == pytest.approx(data.sum(dtype=np.float64))
    assert {one[1:] for one in found} == {("lowtide", 8 * MIB)}


def test_joblib_dumps_and_hashes_it(matrix, tmp_path):
    joblib = pytest.importorskip("joblib")
    path, data = matrix
    m = open_map(path)
    assert joblib.hash(m[:10], coerce_mmap=True) == joblib.hash(data[:10])
    joblib.dump({"x": m}, tmp_path / "dump")
    assert np.array_equal(joblib.load(tmp_path / "dump")["x"], data)


def test_scikit_learn_fits_on_it(matrix):
    pytest.importorskip("sklearn")
    from sklearn.decomposition import IncrementalPCA
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    path, data = matrix
    m = open_map(path)
    ours, theirs = StandardScaler(), StandardScaler()
    for at in range(0, ROWS, 5000):
        ours.partial_fit(m[at : at + 5000])
        theirs.partial_fit(data[at : at + 5000])
    assert np.array_equal(ours.mean_, theirs.mean_)
    labels = data[:, 0] > 0.5
    fitted = SGDClassifier(max_iter=2, tol=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(
            fitted.fit(m[:5000], labels[:5000]).coef_, fitted.fit(data[:5000], labels[:5000]).coef_
        )
    assert IncrementalPCA(2, batch_size=10_000).fit(m).components_.shape == (2, COLUMNS)


def test_torch_shares_its_memory(matrix, tmp_path):
    torch = pytest.importorskip("torch")
    _, data = matrix
    copy = tmp_path / "m.f4"
    data.tofile(copy)
    m = open_map(copy, "r+")
    tensor = torch.from_numpy(m)
    assert tensor.data_ptr() == m.ctypes.data
    assert torch.equal(tensor[:100], torch.from_numpy(data[:100]))
    tensor[5, 5] = 42
    assert m[5, 5] == 42
    rows = torch.from_numpy(m[np.array([3, 1, 2])])
    assert torch.equal(rows, torch.from_numpy(data[[3, 1, 2]]))
    del m
    assert float(tensor[5, 5]) == 42  # the tensor keeps the map


def test_a_torch_dataset_over_it_goes_to_workers(matrix):
    torch = pytest.importorskip("torch")
    path, data = matrix
    m = open_map(path)
    loader = torch.utils.data.DataLoader(
        range(0, 1000), batch_size=100, num_workers=2, collate_fn=lambda rows: m[rows]
    )
    found = np.concatenate([np.asarray(batch) for batch in loader])
    assert np.array_equal(found, data[:1000])


def test_dask_and_numpy_functions_take_it(matrix):
    path, data = matrix
    m = open_map(path)
    assert np.array_equal(np.percentile(m[:, 0], [5, 95]), np.percentile(data[:, 0], [5, 95]))
    assert np.array_equal(np.concatenate([m[:5], m[-5:]]), np.concatenate([data[:5], data[-5:]]))
    assert np.array_equal(
        np.searchsorted(np.sort(m[0]), 0.5), np.searchsorted(np.sort(data[0]), 0.5)
    )
    assert np.array_equal(m[np.argsort(m[:, 3])[:50]], data[np.argsort(data[:, 3])[:50]])
    da = pytest.importorskip("dask.array")
    assert float(da.from_array(m, chunks=(10_000, COLUMNS)).sum().compute()) == pytest.approx(
        float(data.sum()), rel=1e-3
    )
