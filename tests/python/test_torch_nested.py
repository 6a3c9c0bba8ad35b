"""Ragged samples as nested tensors of torch."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def ragged(tmp_path):
    """Samples of 3, 0, 5 and 2 values."""
    np.save(tmp_path / "v.npy", np.arange(1, 11))
    with lt.open(tmp_path / "v.npy", memory="1MiB") as values:
        yield lt.ragged(values, [0, 3, 3, 8, 10])


def test_a_nested_batch_is_padded_to_its_longest_sample(ragged):
    batch = lt.torch.Loader(ragged, batch_size=4, order="sequential").next()
    padded = batch.nested().to_padded_tensor(0)
    assert padded.tolist() == [
        [1, 2, 3, 0, 0],
        [0, 0, 0, 0, 0],
        [4, 5, 6, 7, 8],
        [9, 10, 0, 0, 0],
    ]
    assert batch.nested().values().data_ptr() == batch[0].data_ptr()


def test_a_batch_of_empty_samples_is_nested_too(ragged):
    (only,) = lt.torch.Loader(ragged, batch_size=1, rows=[1]).next().nested().unbind()
    assert only.shape == (0,)
