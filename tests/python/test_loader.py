"""Epochs of a Loader: every window once, for any number of ranks, and what a batch is."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_files import BLOCK, COUNT, nanogpt_batch, windows_of, write_nanogpt, write_shards

ORDERS = ["shuffle", "sequential"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("drop_last", [True, False])
def test_an_epoch_has_every_window_once(tokens, data, engine, order, drop_last):
    with (
        lt.tokens(tokens.paths, memory="2MiB", engine=engine) as t,
        lt.Loader(
            t, batch_size=10, block_size=BLOCK, order=order, seed=3, drop_last=drop_last
        ) as loader,
    ):
        assert len(loader) == (10 if drop_last else 11)
        for epoch in range(3):
            assert (loader.epoch, loader.step, loader.steps_left) == (epoch, 0, len(loader))
            seen = windows_of(loader, data, BLOCK)
            assert len(np.unique(seen)) == len(seen) == (100 if drop_last else 101)
            if order == "sequential":
                np.testing.assert_array_equal(seen, np.arange(len(seen)))


def test_epochs_differ_and_seeds_differ(tokens):
    def first(seed, epoch):
        with lt.Loader(tokens, 10, BLOCK, seed=seed) as loader:
            loader.seek(0, epoch)
            return tuple(loader.next().samples)

    found = {first(seed, epoch) for seed in (0, 1, 2**64 - 1) for epoch in range(3)}
    assert len(found) == 9


@pytest.mark.parametrize("order", [*ORDERS, "random"])
def test_ranks_together_are_the_one_order(tokens, order):
    with lt.Loader(tokens, 6, BLOCK, order=order, seed=5) as loader:
        whole = np.concatenate([batch.samples for batch in loader])
    for world in (2, 3):
        loaders = [
            lt.Loader(tokens, 6 // world, BLOCK, order, 5, rank, world) for rank in range(world)
        ]
        assert {len(loader) for loader in loaders} == {len(whole) // 6}
        steps = zip(*loaders)
        dealt = np.concatenate([batch.samples for step in steps for batch in step])
        np.testing.assert_array_equal(dealt, whole)
        for loader in loaders:
            loader.close()


def test_one_for_is_the_rest_of_an_epoch(tokens):
    with lt.Loader(tokens, 10, BLOCK, epochs=3) as loader:
        first = loader.next()
        assert (first.epoch, first.step) == (0, 0)
        assert [(b.epoch, b.step) for b in loader] == [(0, step) for step in range(1, 10)]
        for batch in loader:
            if batch.step == 3:
                break
        assert [(b.epoch, b.step) for b in loader] == [(1, step) for step in range(4, 10)]
        assert len(list(loader)) == 10
        assert list(loader) == []
        assert loader.steps_left == 0
        with pytest.raises(StopIteration):
            loader.next()
        with pytest.raises(StopIteration):
            loader.next()


def test_next_goes_on_over_epochs(tokens):
    with lt.Loader(tokens, 10, BLOCK, seed=2) as loader:
        places = [(b.epoch, b.step) for b in (loader.next() for _ in range(25))]
    assert places == [(turn // 10, turn % 10) for turn in range(25)]


def test_two_iterators_of_one_epoch_share_it(tokens):
    with lt.Loader(tokens, 10, BLOCK) as loader:
        one, two = iter(loader), iter(loader)
        steps = [next(one).step, next(two).step, next(one).step]
        assert steps == [0, 1, 2]
        assert [batch.step for batch in two] == list(range(3, 10))
        assert next(one, None) is None
        assert [batch.epoch for batch in loader] == [1] * 10


def test_random_windows_start_anywhere(tokens, data):
    with lt.Loader(tokens, 10, BLOCK, order="random", seed=1) as loader:
        assert len(loader) == 10
        starts = []
        for _ in range(30):
            batch = loader.next()
            x, y = nanogpt_batch(data, batch.samples, BLOCK)
            np.testing.assert_array_equal(batch.x, x)
            np.testing.assert_array_equal(batch.y, y)
            starts.append(batch.samples)
        starts = np.concatenate(starts)
        assert (starts % BLOCK != 0).any()
        assert 0 <= starts.min() and starts.max() <= COUNT - BLOCK - 1
    with lt.Loader(tokens, 1000, BLOCK, order="random") as loader:
        assert len(loader) == 1  # at least one step
        assert loader.next().x.shape == (1000, BLOCK)


def test_a_batch_is_a_pair(tokens, data):
    with lt.Loader(tokens, 4, BLOCK, order="sequential") as loader:
        batch = loader.next()
        x, y = batch
        assert x is batch.x is batch[0] and y is batch.y is batch[-1]
        assert len(batch) == 2
        assert batch.positions is None and batch.cu_seqlens is None
        assert batch.samples.tolist() == [0, 1, 2, 3]
        assert batch.samples.dtype == np.int64
        assert "4 x 16" in repr(batch) and "epoch=0 step=0" in repr(batch)
        with pytest.raises(IndexError):
            batch[2]
        for part in (x, y):
            assert part.dtype == np.int64
            assert part.flags.c_contiguous and part.flags.writeable and part.flags.aligned
        x[:] = -1
        np.testing.assert_array_equal(y.ravel(), data[1:65])


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16", "uint32", np.uint64])
def test_the_dtype_of_a_batch(tokens, data, dtype):
    with lt.Loader(tokens, 4, BLOCK, order="sequential", dtype=dtype) as loader:
        batch = loader.next()
        assert batch.x.dtype == batch.y.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(batch.x.ravel(), data[:64])


@pytest.mark.parametrize("end", ["close", "del", "both"])
def test_a_kept_batch_never_changes(tmp_path, data, end):
    t = lt.tokens(write_nanogpt(tmp_path / "t.bin", data), memory="1MiB")
    loader = lt.Loader(t, 4, BLOCK, seed=1)
    kept = [(batch.samples, *batch) for batch in loader]  # the views alone hold the lease
    if end in ("close", "both"):
        loader.close()
        t.close()
    if end in ("del", "both"):
        del loader, t
    for samples, x, y in kept:
        expected = nanogpt_batch(data, samples * BLOCK, BLOCK)
        np.testing.assert_array_equal(x, expected[0])
        np.testing.assert_array_equal(y, expected[1])


def test_kept_batches_are_counted_as_yours(tokens):
    with lt.Loader(tokens, 4, BLOCK, memory="1MiB") as loader:
        kept = [loader.next() for _ in range(20)]
        now = loader.stats()
        assert now["memory"]["limit"] == 1 << 20
        assert now["memory"]["held_by_you"] > 0
        assert len(kept) == 20


def test_what_a_loader_says_of_itself(tokens):
    with lt.Loader(tokens, 4, BLOCK, seed=9, rank=1, world_size=2) as loader:
        loader.next()
        for word in ("4 x 16", "'shuffle'", "seed=9", "rank=1/2", "epoch=0", "step=1 of 12"):
            assert word in repr(loader)
        assert (loader.batch_size, loader.block_size) == (4, BLOCK)
        assert (loader.rank, loader.world_size) == (1, 2)
        assert not loader.closed
    assert loader.closed
    assert repr(loader).endswith("closed>")


def test_a_closed_loader(tokens):
    loader = lt.Loader(tokens, 4, BLOCK)
    under_way = iter(loader)
    next(under_way)
    loader.close()
    loader.close()
    assert next(under_way, None) is None
    for ask in (loader.next, loader.state_dict, loader.stats, lambda: iter(loader)):
        with pytest.raises(ValueError, match="closed"):
            ask()


def test_closed_tokens_leave_a_loader_under_way(tokens, data):
    loader = lt.Loader(tokens, 4, BLOCK)
    loader.next()
    tokens.close()
    assert len(windows_of(loader, data, BLOCK)) == 24 * 4
    with pytest.raises(ValueError, match="closed"):
        lt.Loader(tokens, 4, BLOCK)


@pytest.mark.parametrize("sizes", [[1] * 60, [100, 1, 3, 500], [1000]])
def test_windows_cross_shards(tmp_path, data, sizes):
    paths = write_shards(tmp_path, data, sizes)
    with lt.tokens(paths, memory="2MiB", dtype="uint16") as t, lt.Loader(t, 7, BLOCK) as loader:
        assert len(windows_of(loader, data, BLOCK)) == 98


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    count=st.integers(2, 400),
    sizes=st.lists(st.integers(0, 60), max_size=6),
    block_size=st.integers(1, 40),
    batch_size=st.integers(1, 5),
    world=st.integers(1, 3),
    order=st.sampled_from(ORDERS),
    seed=st.integers(0, 2**64 - 1),
    stop=st.integers(0, 200),
)
def test_any_sizes(
    tmp_path_factory, count, sizes, block_size, batch_size, world, order, seed, stop
):
    """All ranks up to a step, then one rank with another batch size: nothing twice, all right."""
    folder = tmp_path_factory.mktemp("any")
    data = np.arange(count).astype(np.uint16) + 1000
    windows = (count - 1) // block_size
    with lt.tokens(write_shards(folder, data, sizes), dtype="uint16", memory="4MiB") as t:
        asked = {"block_size": block_size, "order": order, "seed": seed}
        if windows < batch_size * world:
            with pytest.raises(ValueError, match=r"windows|tokens"):
                lt.Loader(t, batch_size, world_size=world, **asked)
            return
        loaders = [
            lt.Loader(t, batch_size, rank=rank, world_size=world, **asked) for rank in range(world)
        ]
        steps = windows // (batch_size * world)
        assert {len(loader) for loader in loaders} == {steps}
        stop %= steps + 1
        seen = []
        for _ in range(stop):
            for loader in loaders:
                seen.append(windows_of([loader.next()], data, block_size))
        state = loaders[0].state_dict()
        assert {str(loader.state_dict()) for loader in loaders} == {str(state)}
        with lt.Loader(t, 1, **asked) as rest:
            rest.load_state_dict(state)
            if rest.epoch == 0:
                seen.append(windows_of(rest, data, block_size))
                assert len(np.concatenate(seen)) == windows
        seen = np.concatenate(seen)
        assert len(np.unique(seen)) == len(seen)
        for loader in loaders:
            loader.close()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


@pytest.mark.parametrize("prefetch", [1, 2, 50])
def test_prefetch_does_not_change_what_comes(tokens, data, prefetch):
    with lt.Loader(tokens, 10, BLOCK, prefetch=prefetch) as loader:
        assert len(windows_of(loader, data, BLOCK)) == 100
