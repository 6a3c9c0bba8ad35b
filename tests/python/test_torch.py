"""lt.torch.Loader: the values, names and rules of lt.Loader, as tensors."""

from __future__ import annotations

import copy
import json
import os
import pickle
import warnings

import lowtide as lt
import numpy as np
import pytest
from conftest import run
from torch_files import (
    BLOCK,
    WINDOWS,
    flat,
    numbered_tokens,
    open_tokens,
    window_of,
    write_tokens,
)

torch = pytest.importorskip("torch")


tokens = numbered_tokens


@pytest.fixture(autouse=True)
def no_ranks(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def test_a_closed_loader_says_so(tokens):
    loader = lt.torch.Loader(tokens, 10, BLOCK)
    with loader:
        loader.next()
    with pytest.raises(ValueError, match="closed"):
        loader.next()


def test_the_loader_gives_what_the_numpy_loader_gives(tokens):
    plain = lt.Loader(tokens, 7, BLOCK, seed=11, epochs=2)
    loader = lt.torch.Loader(tokens, 7, BLOCK, seed=11, epochs=2)
    assert len(loader) == len(plain) == WINDOWS // 7
    for epoch in range(2):
        steps = 0
        for mine, theirs in zip(loader, plain):
            x, y = mine
            assert np.array_equal(x.numpy(), theirs.x) and np.array_equal(y.numpy(), theirs.y)
            assert (mine.epoch, mine.step) == (theirs.epoch, theirs.step) == (epoch, steps)
            assert mine.samples.tolist() == theirs.samples.tolist()
            assert mine.positions is None and mine.cu_seqlens is None
            steps += 1
        assert steps == len(loader)
    assert list(loader) == []
    with pytest.raises(StopIteration):
        loader.next()


def test_documents_apart_come_as_tensors(tmp_path):
    path, _ = write_tokens(tmp_path)
    with open_tokens(path, eot=120) as t:
        loader = lt.torch.Loader(t, 4, BLOCK, order="sequential", documents="separate")
        batch = loader.next()
    assert batch.positions.dtype == batch.cu_seqlens.dtype == torch.int32
    assert batch.positions.shape == batch.x.shape
    # Token 120 is the fifth of the second window; the next one begins a document.
    assert batch.cu_seqlens.tolist() == [0, 16, 21, 32, 48, 64]
    assert batch.positions[1].tolist() == [*range(5), *range(11)]
    same = pickle.loads(pickle.dumps(batch))
    assert torch.equal(same.positions, batch.positions)
    assert torch.equal(same.cu_seqlens, batch.cu_seqlens)


def test_state_seek_skip_and_when_are_those_of_the_numpy_loader(tokens):
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=2)
    for _ in range(4):
        loader.next()
    state = json.loads(json.dumps(loader.state_dict()))
    assert state == lt_state_after(tokens, 4)
    expected = [window_of(batch.x) for batch in loader]
    again = lt.torch.Loader(tokens, 5, BLOCK, seed=2)
    again.load_state_dict(state)
    found = [window_of(batch.x) for batch in again]
    assert flat(found) == flat(expected)

    loader.seek(0, epoch=0)
    step, rank, row = loader.when(BLOCK * 77 + 3, 0)
    loader.seek(step)
    assert (loader.step, loader.epoch, rank) == (step, 0, 0)
    assert window_of(loader.next().x)[row] == 77

    loader.seek(0, epoch=0)
    loader.skip(steps=(1, 24))
    assert [batch.step for batch in loader] == [0, 24]
    assert loader.steps_left == len(loader) == 25
    assert loader.stats()["bytes_read"] > 0


def lt_state_after(tokens, steps):
    plain = lt.Loader(tokens, 10, BLOCK, seed=2)
    for _ in range(steps):
        plain.next()
    return plain.state_dict()


def test_state_of_another_seed_is_refused(tokens):
    state = lt.torch.Loader(tokens, 10, BLOCK, seed=2).state_dict()
    with pytest.raises(ValueError, match="seed"):
        lt.torch.Loader(tokens, 10, BLOCK, seed=3).load_state_dict(state)


def test_a_mixture_works_too(tmp_path, tokens):
    other, _ = write_tokens(tmp_path, "other.bin")
    with open_tokens(other) as t:
        loader = lt.torch.Loader([(tokens, 0.5), (t, 0.5)], 10, BLOCK)
        assert len(loader) == 2 * WINDOWS // 10
        batch = loader.next()
        assert len(window_of(batch.x)) == 10
        assert isinstance(batch.sources, torch.Tensor)
        assert batch.sources.bincount().tolist() == [5, 5]


def test_ranks_come_from_the_environment(tokens, monkeypatch):
    assert (
        lt.torch.Loader(tokens, 10, BLOCK).rank,
        lt.torch.Loader(tokens, 10, BLOCK).world_size,
    ) == (0, 1)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = lt.torch.Loader(tokens, 10, BLOCK)
    assert (loader.rank, loader.world_size) == (2, 3)
    assert "rank=2/3" in repr(loader)
    expected = lt.Loader(tokens, 10, BLOCK, rank=2, world_size=3).next()
    assert window_of(loader.next().x) == window_of(expected.x)
    given = lt.torch.Loader(tokens, 10, BLOCK, rank=0, world_size=2)
    assert (given.rank, given.world_size) == (0, 2)
    assert lt.torch.Loader(tokens, 10, BLOCK, rank=1).world_size == 3
    monkeypatch.setenv("RANK", "two")
    with pytest.raises(ValueError, match="RANK in the environment must be a number, not 'two'"):
        lt.torch.Loader(tokens, 10, BLOCK)
    monkeypatch.setenv("RANK", "3")
    with pytest.raises(ValueError, match="rank must be below world_size"):
        lt.torch.Loader(tokens, 10, BLOCK)


def test_ranks_come_from_torch_distributed_first(tokens, monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "6")
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    try:
        loader = lt.torch.Loader(tokens, 10, BLOCK)
        assert (loader.rank, loader.world_size) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_pinning_without_an_accelerator_warns_and_gives_plain_tensors(tokens):
    with pytest.warns(UserWarning, match="no accelerator") as caught:
        loader = lt.torch.Loader(tokens, 10, BLOCK, pin_memory=True)
    assert caught[0].filename == __file__
    assert not loader.next().x.is_pinned()
    assert "pin_memory" not in repr(loader)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_pinned_tensors_outlive_the_copy_that_is_under_way(tokens):
    expected = [window_of(batch.x) for batch in lt.Loader(tokens, 10, BLOCK, seed=1, epochs=1)]
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=1, pin_memory=True)
    copies = []
    for x, _ in loader:
        assert x.is_pinned()
        copies.append(x.to("cuda", non_blocking=True))
        del x
    assert [window_of(copied.cpu()) for copied in copies] == expected


def test_pinning_copies_by_torch_from_the_lease(tokens, monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda t: pinned.append(t) or t.clone())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = lt.torch.Loader(tokens, 10, BLOCK, pin_memory=True)
    x, y = loader.next()
    assert len(pinned) == 2
    assert torch.equal(pinned[0], x) and torch.equal(pinned[1], y)
    assert x.data_ptr() != pinned[0].data_ptr()
    assert "pin_memory" in repr(loader)


def test_a_batch_is_a_tuple_that_others_can_take_apart(tokens):
    batch = lt.torch.Loader(tokens, 10, BLOCK).next()
    assert isinstance(batch, tuple) and len(batch) == 2
    moved = type(batch)(part.to(torch.int32) for part in batch)  # as Trainer and accelerate do
    assert moved.x.dtype == torch.int32 and moved.step is None
    for same in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        assert (same.step, same.epoch) == (batch.step, batch.epoch)
        assert torch.equal(same.y, batch.y)
        assert torch.equal(same.samples, batch.samples) and same.positions is None


def test_a_loader_pickles_with_its_place(tokens):
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=4)
    loader.next()
    again = pickle.loads(pickle.dumps(loader))
    assert [window_of(batch.x) for batch in again] == [window_of(batch.x) for batch in loader]


def test_torch_is_loaded_when_first_touched():
    code = (
        "import sys, lowtide as lt; assert 'torch' not in sys.modules; lt.torch.windows;"
        "assert 'torch' in sys.modules; import lowtide.torch; assert lowtide.torch is lt.torch"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_a_loader_goes_on_in_a_forked_child(tokens):
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=9)
    loader.next()
    expected = window_of(lt_next(tokens, 9, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads
        child = os.fork()
    if child == 0:
        os._exit(0 if window_of(loader.next().x) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert window_of(loader.next().x) == expected


def lt_next(tokens, seed, step):
    plain = lt.Loader(tokens, 10, BLOCK, seed=seed)
    plain.seek(step)
    return plain.next().x
