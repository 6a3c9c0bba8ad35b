"""Sparse rows as tensors."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest
from column_files import opened
from csr_files import as_scipy, dense_of, matrix, open_csr, write_csr

torch = pytest.importorskip("torch")

COLUMNS = 40


@pytest.fixture
def parts(tmp_path):
    parts = matrix(200, COLUMNS)
    write_csr(tmp_path, *parts)
    return parts


@pytest.mark.parametrize("index", ["i4", "i8", "u2"])
def test_sparse_batches_are_tensors(tmp_path, index):
    parts = matrix(200, COLUMNS, index=index)
    write_csr(tmp_path, *parts)
    with lt.torch.Loader(open_csr(tmp_path, COLUMNS), 16) as loader:
        for batch in loader:
            data, indices, indptr = batch
            assert all(isinstance(one, torch.Tensor) for one in batch)
            assert len(data) == len(indices) == int(indptr[-1])
            expected = as_scipy(parts, COLUMNS)[batch.index.numpy()]
            assert (batch.scipy() != expected).nnz == 0
            tensor = batch.sparse_csr()
            assert tensor.layout == torch.sparse_csr
            assert tensor.shape == (16, COLUMNS)
            np.testing.assert_array_equal(tensor.to_dense().numpy(), expected.toarray())


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(None, torch.float32), (torch.float16, torch.float16), ("float64", torch.float64),
     (np.float32, torch.float32)],
)  # fmt: skip
def test_dense_batches_are_tensors(tmp_path, parts, dtype, expected):
    source = {"x": open_csr(tmp_path, COLUMNS), "y": opened(tmp_path, np.arange(200), "y")}
    genes = torch.tensor([5, 1, 30])
    with lt.torch.Loader(source, 16, dense=True, dtype=dtype, columns=genes) as loader:
        for batch in loader:
            assert batch["x"].dtype == expected
            rows = dense_of(parts, COLUMNS, batch.index.numpy(), picked=genes.tolist())
            np.testing.assert_array_equal(batch["x"].float().numpy(), rows)
            np.testing.assert_array_equal(batch["y"].numpy(), batch.index.numpy())


def test_a_model_learns_from_sparse_rows(tmp_path, parts):
    model = torch.nn.Linear(COLUMNS, 1)
    target = torch.from_numpy(as_scipy(parts, COLUMNS).sum(axis=1)).float()
    steps = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    with lt.torch.Loader(open_csr(tmp_path, COLUMNS), 50, dense=True, epochs=20) as loader:
        for _ in range(20):
            for batch in loader:
                (x,) = batch
                loss = torch.nn.functional.mse_loss(model(x).squeeze(1), target[batch.index])
                steps.zero_grad()
                loss.backward()
                steps.step()
                losses.append(loss.item())
    assert len(losses) == 80
    assert losses[-1] < losses[0] / 10


def test_a_dataset_refuses_sparse_rows(tmp_path, parts):
    with pytest.raises(TypeError, match=r"use lowtide\.torch\.Loader"):
        lt.torch.Dataset(open_csr(tmp_path, COLUMNS))
