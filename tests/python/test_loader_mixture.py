"""Mixtures: exact shares in every prefix, nothing left out, resume."""

from __future__ import annotations

import pickle

import lowtide as lt
import numpy as np
import pytest
from loader_runs import expect_resumes, told
from token_files import write_nanogpt

BLOCK = 8
SIZES = [60, 35, 20]  # windows of the sources


@pytest.fixture
def sources(tmp_path):
    """Tokens that tell their source and their window: source * 10000 + window."""
    opened = []
    for source, windows in enumerate(SIZES):
        data = np.repeat(np.arange(windows) + source * 10_000, BLOCK)
        path = write_nanogpt(tmp_path / f"{source}.bin", np.append(data, data[-1:]), "<u4")
        opened.append(lt.tokens(path, dtype="uint32", memory="4MiB"))
    yield opened
    for tokens in opened:
        tokens.close()


def windows_of(batch):
    """(source, window) of each row."""
    return [divmod(int(token), 10_000) for token in batch.x[:, 0]]


def first_of(sources, count, batch_size=5, **asked):
    with lt.Loader(sources, batch_size, BLOCK, **asked) as loader:
        found = [windows_of(loader.next()) for _ in range(-(-count // batch_size))]
    return [one for batch in found for one in batch][:count]


@pytest.mark.parametrize("order", ["shuffle", "sequential", "random"])
@pytest.mark.parametrize(
    "weights", [[0.7, 0.3], [1, 1], [1e-3, 1], [3, 2, 1], [0.98, 0.01, 0.01], [5, 5, 5]]
)
def test_every_prefix_has_its_shares(sources, weights, order):
    mixture = list(zip(sources, weights))
    dealt = first_of(mixture, 600, seed=2, order=order)
    counts = np.zeros(len(weights))
    shares = np.array(weights) / sum(weights)
    bound = 1 if len(weights) == 2 else 1.5
    for n, (source, _) in enumerate(dealt, 1):
        counts[source] += 1
        assert np.abs(counts - shares * n).max() <= bound, n


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
def test_each_source_goes_through_its_own_epochs(sources, order):
    mixture = list(zip(sources, [3, 2, 1]))
    dealt = first_of(mixture, 600, seed=2, order=order)
    for source, size in enumerate(SIZES):
        own = [window for of, window in dealt if of == source]
        assert len(own) > size
        for first in range(0, len(own), size):
            epoch = own[first : first + size]
            assert len(set(epoch)) == len(epoch)
        epochs = [own[first : first + size] for first in range(0, len(own) - size, size)]
        if order == "sequential":
            assert all(epoch == list(range(size)) for epoch in epochs)
        else:
            assert all(sorted(epoch) == list(range(size)) for epoch in epochs)
            assert own[:size] != own[size : 2 * size]


def test_x_and_y_come_from_one_source(sources):
    with lt.Loader(list(zip(sources, [1, 1, 1])), 5, BLOCK) as loader:
        for batch in loader:
            for x, y, (source, window) in zip(batch.x, batch.y, windows_of(batch)):
                expected = sources[source][window * BLOCK : (window + 1) * BLOCK + 1]
                np.testing.assert_array_equal(x, expected[:-1])
                np.testing.assert_array_equal(y, expected[1:])


@pytest.mark.parametrize("order", ["shuffle", "random"])
def test_a_batch_names_the_source_of_each_window(sources, order):
    mixture = list(zip(sources, [3, 2, 1]))
    with lt.Loader(mixture, 5, BLOCK, order) as loader:
        for _ in range(2 * len(loader)):
            batch = loader.next()
            assert batch.sources.dtype == np.int64
            for x, source, window in zip(batch.x, batch.sources, batch.index):
                start = window * (1 if order == "random" else BLOCK)
                np.testing.assert_array_equal(x, sources[source][start : start + BLOCK])
        copied = pickle.loads(pickle.dumps(batch))
        np.testing.assert_array_equal(copied.sources, batch.sources)
    for single in (sources[0], mixture[:1]):
        with lt.Loader(single, 5, BLOCK) as loader:
            assert loader.next().sources is None


def test_one_for_is_the_sum_of_windows(sources):
    with lt.Loader(list(zip(sources, [1, 2, 3])), 4, BLOCK) as loader:
        assert len(loader) == sum(SIZES) // 4
        for epoch in range(3):
            places = [(batch.epoch, batch.step) for batch in loader]
            assert places == [(epoch, step) for step in range(sum(SIZES) // 4)]


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_together_are_the_one_order(sources, world):
    mixture = list(zip(sources, [5, 2, 1]))
    whole = first_of(mixture, 300, batch_size=6, seed=1)
    loaders = [
        lt.Loader(mixture, 6 // world, BLOCK, seed=1, rank=rank, world_size=world)
        for rank in range(world)
    ]
    dealt = []
    for _ in range(50):
        for loader in loaders:
            dealt += windows_of(loader.next())
    assert dealt == whole
    for loader in loaders:
        loader.close()


@pytest.mark.parametrize("order", ["shuffle", "sequential", "random"])
def test_resume_at_every_step(sources, order):
    mixture = list(zip(sources, [0.5, 0.3, 0.2]))
    expect_resumes(lambda: lt.Loader(mixture, 7, BLOCK, order, seed=4))


def test_seek_over_epochs(sources):
    with lt.Loader(list(zip(sources, [0.5, 0.3, 0.2])), 7, BLOCK, seed=4) as loader:
        whole = [told(loader.next()) for _ in range(3 * len(loader))]
        for turn in np.random.default_rng(0).permutation(len(whole)).tolist():
            loader.seek(turn % len(loader), epoch=turn // len(loader))
            assert told(loader.next()) == whole[turn]


def test_a_change_of_world_and_batch_size_keeps_the_one_order(sources):
    mixture = list(zip(sources, [0.5, 0.3, 0.2]))
    whole = first_of(mixture, 500, seed=4)
    dealt, state = [], None
    for world, batch_size, steps in ((4, 2, 11), (2, 3, 20), (3, 1, 30), (1, 5, 20)):
        loaders = [
            lt.Loader(mixture, batch_size, BLOCK, seed=4, rank=rank, world_size=world)
            for rank in range(world)
        ]
        if state is not None:
            for loader in loaders:
                loader.load_state_dict(state)
        for _ in range(steps):
            for loader in loaders:
                dealt += windows_of(loader.next())
        state = loaders[0].state_dict()
        for loader in loaders:
            loader.close()
    assert dealt == whole[: len(dealt)]


def test_a_state_of_other_weights_or_sources_is_refused(sources):
    with lt.Loader(list(zip(sources, [1, 2, 3])), 4, BLOCK) as loader:
        state = loader.state_dict()
    for other in (
        list(zip(sources, [1, 2, 4])),
        list(zip(sources[:2], [1, 2])),
        list(zip(sources[::-1], [3, 2, 1])),
    ):
        with lt.Loader(other, 4, BLOCK) as loader:
            with pytest.raises(ValueError, match="data differs"):
                loader.load_state_dict(state)


def test_when_finds_a_window_of_a_source(sources):
    """In an epoch of the mixture a source may come round twice, or not to its end."""
    with lt.Loader(list(zip(sources, [1, 1, 4])), 5, BLOCK, seed=9) as loader:
        for epoch in range(3):
            first = {}
            for batch in loader:
                assert batch.epoch == epoch
                for row, place in enumerate(windows_of(batch)):
                    first.setdefault(place, (batch.step, 0, row))
            for source, size in enumerate(SIZES):
                for window in range(size):
                    found = loader.when(window * BLOCK, epoch, source)
                    assert found == first.get((source, window))


def test_sources_of_different_types(tmp_path, sources):
    data = np.arange(400).astype(np.uint16)
    with lt.tokens(write_nanogpt(tmp_path / "n.bin", data), dtype="uint16") as narrow:
        with lt.Loader([(narrow, 1), (sources[2], 1)], 4, BLOCK, order="sequential") as loader:
            found = [windows_of(loader.next()) for _ in range(5)]
        windows = [one for batch in found for one in batch]
        assert {source for source, _ in windows} == {0, 2}


def test_one_source_with_a_weight_is_that_source(sources):
    assert first_of([(sources[0], 0.1)], 60) == first_of(sources[0], 60)


def test_the_same_tokens_twice(sources):
    """Two shares of one file are shuffled apart."""
    dealt = first_of([(sources[0], 1), (sources[0], 1)], 120, order="shuffle")
    windows = [window for _, window in dealt]
    assert sorted(windows) == sorted([*range(60)] * 2)
    assert windows[::2] != windows[1::2]


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), -0.0, 0.0])
def test_invalid_weights_are_refused(sources, weight):
    with pytest.raises(ValueError, match="weight of entry 1 must be finite and above 0"):
        lt.Loader([(sources[0], 1), (sources[1], weight)], 4, BLOCK)


@pytest.mark.parametrize("entry", ["a", None, True, [1]])
def test_weights_of_another_type(sources, entry):
    with pytest.raises(TypeError, match="weight of entry 0 must be a number"):
        lt.Loader([(sources[0], entry)], 4, BLOCK)


@pytest.mark.parametrize("mixture", [[1], [("a", 1)], ["ab"], [[1, 2, 3]], "t.bin", None])
def test_mixtures_of_another_type(mixture):
    with pytest.raises(TypeError, match="Tokens"):
        lt.Loader(mixture, 4, BLOCK)


@pytest.mark.parametrize("source", [[], (), {}])
def test_an_empty_source(source):
    with pytest.raises(ValueError, match="empty"):
        lt.Loader(source, 4, BLOCK)


def test_a_source_shorter_than_a_window(tmp_path, sources):
    with lt.tokens(write_nanogpt(tmp_path / "s.bin", np.arange(8)), dtype="uint16") as short:
        with pytest.raises(ValueError, match="block_size"):
            lt.Loader([(sources[0], 1), (short, 1)], 4, BLOCK)


def test_a_budget_of_its_own(sources):
    mixture = list(zip(sources, [1, 1, 1]))
    with lt.Loader(mixture, 4, BLOCK, memory="1MiB") as loader:
        loader.next()
        assert loader.stats()["memory"]["limit"] == 1 << 20
    with lt.Loader(mixture, 4, BLOCK) as loader:
        assert loader.stats()["memory"]["limit"] == 4 << 20
