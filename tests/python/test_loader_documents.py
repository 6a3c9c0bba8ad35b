"""documents="separate": positions and cu_seqlens of every batch."""

from __future__ import annotations

import os
import pickle

import lowtide as lt
import numpy as np
import pytest
from conftest import wait_for
from token_files import (
    BLOCK,
    document_starts_to_positions,
    write_llmc,
    write_megatron,
    write_nanogpt,
)


def expected_documents(batch, starts, block_size):
    positions, bounds = [], [[0]]
    for row, sample in enumerate(batch.samples):
        first = int(sample) * block_size
        of_row, edges = document_starts_to_positions(starts, first, block_size)
        positions.append(of_row)
        bounds.append([row * block_size + edge for edge in edges if row or edge])
    bounds.append([len(batch.samples) * block_size])
    return positions, [edge for edges in bounds for edge in edges]


def check_separate(loader, starts, block_size):
    for batch in loader:
        positions, bounds = expected_documents(batch, starts, block_size)
        assert batch.positions.dtype == batch.cu_seqlens.dtype == np.int32
        assert batch.positions.shape == batch.x.shape
        assert batch.positions.flags.c_contiguous
        assert batch.positions.tolist() == positions
        assert batch.cu_seqlens.tolist() == bounds


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
def test_documents_apart_in_megatron_files(tmp_path, order):
    rng = np.random.default_rng(4)
    documents = [rng.integers(0, 1000, n) for n in rng.integers(0, 50, 60)]
    path = write_megatron(tmp_path / "d", documents)
    starts = set(np.cumsum([len(document) for document in documents]).tolist())
    with (
        lt.tokens(path, memory="2MiB") as t,
        lt.Loader(t, 5, BLOCK, order=order, documents="separate") as loader,
    ):
        check_separate(loader, starts, BLOCK)


@pytest.mark.parametrize("form", ["nanogpt", "llmc"])
def test_documents_apart_by_a_token(tmp_path, form):
    """The token ends a document; in llm.c's files it begins one."""
    tokens = np.random.default_rng(5).integers(0, 8, 1000)
    write = write_nanogpt if form == "nanogpt" else write_llmc
    path = write(tmp_path / "t.bin", tokens)
    places = np.flatnonzero(tokens == 7) + (1 if form == "nanogpt" else 0)
    with (
        lt.tokens(path, dtype="uint16", eot=7, memory="2MiB") as t,
        lt.Loader(t, 5, BLOCK, documents="separate") as loader,
    ):
        assert t.format == form
        check_separate(loader, set(places.tolist()), BLOCK)


def test_positions_stay_with_their_batch(tmp_path):
    path = write_megatron(tmp_path / "d", [np.arange(10)] * 50)
    with lt.tokens(path, memory="2MiB") as t:
        loader = lt.Loader(t, 3, BLOCK, documents="separate")
        batch = loader.next()
        positions, bounds = batch.positions, batch.cu_seqlens
        copies = positions.copy(), bounds.copy()
        del batch
        list(loader)
        loader.close()
        np.testing.assert_array_equal(positions, copies[0])
        np.testing.assert_array_equal(bounds, copies[1])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_documents_apart_go_on_in_a_child(tmp_path):
    """The index does not fit into the budget: threads of both processes read in it."""
    lengths = np.random.default_rng(3).integers(1, 4, 60_000)
    documents = np.split(np.arange(lengths.sum()) % 50_000, np.cumsum(lengths)[:-1])
    path = write_megatron(tmp_path / "d", documents)
    starts = set(np.cumsum(lengths).tolist())
    with lt.tokens(path, memory="2MiB") as t:
        for seed in range(5):
            with lt.Loader(t, 4, BLOCK, seed=seed, documents="separate") as loader:
                for _ in range(3):
                    loader.next()
                child = os.fork()
                if child == 0:
                    right = [
                        np.array_equal(
                            loader_batch.positions,
                            expected_documents(loader_batch, starts, BLOCK)[0],
                        )
                        for loader_batch in (loader.next() for _ in range(50))
                    ]
                    os._exit(0 if all(right) else 1)
                for _ in range(50):
                    loader.next()
                assert wait_for(child) == 0


def test_a_batch_pickles_with_what_it_knows(tmp_path):
    data = np.arange(400, dtype=np.uint16)
    data[::37] = 7
    data.tofile(tmp_path / "t.bin")
    t = lt.tokens(tmp_path / "t.bin", eot=7)
    batch = lt.Loader(t, 4, 16, documents="separate").next()
    same = pickle.loads(pickle.dumps(batch))
    assert (same.step, same.epoch) == (batch.step, batch.epoch)
    for name in ("x", "y", "samples", "positions", "cu_seqlens"):
        np.testing.assert_array_equal(getattr(same, name), getattr(batch, name))
