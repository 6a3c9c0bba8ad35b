"""Mixtures of arrays: exact shares, and rows in the numbering of their own source."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest
from column_files import indexes, made, opened
from loader_runs import expect_resumes, told

SIZES = (50, 30, 7)


@pytest.fixture
def datas():
    """For each source a column of random rows, and one that tells source and row."""
    return [
        (made("f4", size, 3, seed=number), number * 1000 + np.arange(size))
        for number, size in enumerate(SIZES)
    ]


@pytest.fixture
def sources(tmp_path, datas):
    return [
        {name: opened(tmp_path, data, f"{name}{at}") for name, data in zip("xy", pair)}
        for at, pair in enumerate(datas)
    ]


def check(batch, datas):
    """The rows are those of their sources; returns the source of each."""
    xs, ys = batch
    numbers = ys // 1000
    np.testing.assert_array_equal(batch.sources, numbers)
    np.testing.assert_array_equal(batch.index, ys % 1000)
    for number, row, x in zip(numbers, batch.index, xs):
        assert x.tobytes() == datas[number][0][row].tobytes()
    return numbers


@pytest.mark.parametrize("order", ["shuffle", "sequential", "random"])
@pytest.mark.parametrize("weights", [(0.7, 0.3), (1, 1), (5, 1), (0.5, 0.3, 0.2)], ids=str)
def test_every_prefix_has_its_shares(sources, datas, order, weights):
    mixture = list(zip(sources, weights))
    with lt.Loader(mixture, 3, order=order, seed=2) as loader:
        total = sum(SIZES[: len(weights)])
        assert len(loader) == total // 3
        numbers = np.concatenate([check(loader.next(), datas) for _ in range(3 * len(loader))])
    shares = np.array(weights) / sum(weights)
    most = 1 if len(weights) == 2 else 1.5
    for number, share in enumerate(shares):
        counts = np.cumsum(numbers == number)
        off = np.abs(counts - share * np.arange(1, len(counts) + 1))
        assert off.max() <= most + 1e-9


def test_a_source_that_ends_starts_its_next_epoch(sources, datas):
    with lt.Loader([(sources[0], 1), (sources[2], 1)], 1, seed=2) as loader:
        batches = [loader.next() for _ in range(56)]
    rows = [int(b.index[0]) for b in batches if b["y"][0] >= 2000]
    assert len(rows) == 28
    for epoch in range(4):
        assert sorted(rows[epoch * 7 : epoch * 7 + 7]) == list(range(7))
    assert len({tuple(rows[epoch * 7 : epoch * 7 + 7]) for epoch in range(4)}) > 1


def test_all_ranks_together_are_the_one_order(sources, datas):
    mixture = list(zip(sources, (0.5, 0.3, 0.2)))
    with lt.Loader(mixture, 6, seed=1) as loader:
        whole = [told(loader.next())[2:] for _ in range(20)]
    loaders = [lt.Loader(mixture, 2, seed=1, rank=rank, world_size=3) for rank in range(3)]
    for step in range(20):
        parts = [told(loader.next())[2:] for loader in loaders]
        assert [row for part in parts for row in part[0]] == whole[step][0]
        assert b"".join(part[1] for part in parts) == whole[step][1]


def test_a_mixture_resumes(sources):
    mixture = list(zip(sources, (0.5, 0.3, 0.2)))
    expect_resumes(lambda: lt.Loader(mixture, 4, seed=6))
    with lt.Loader(mixture, 4) as loader:
        loader.next()
        state = loader.state_dict()
    for other in (mixture[:2], mixture[::-1], [(source, 1) for source in sources]):
        with lt.Loader(other, 4) as loader, pytest.raises(ValueError, match="data differs"):
            loader.load_state_dict(state)


def test_when_a_row_of_a_source_comes(sources, datas):
    with lt.Loader([(sources[0], 1), (sources[2], 2)], 4, seed=3) as loader:
        batches = list(loader)
        seen = {}
        for batch in batches:
            for place, y in enumerate(batch["y"].tolist()):
                seen.setdefault(y, (batch.step, 0, place))
        for source, number in ((0, 0), (1, 2)):
            for row in range(SIZES[number]):
                assert loader.when(row, 0, source) == seen.get(number * 1000 + row)
        with pytest.raises(IndexError, match="source 2 does not exist; the loader has 2"):
            loader.when(0, source=2)
        with pytest.raises(IndexError, match="row 7 does not exist: there are 7 rows"):
            loader.when(7, source=1)


def test_sources_with_different_files(tmp_path, datas):
    """Shards, Fortran order and small columns that are held, beyond the budget together."""
    n = 3000
    big = [made("f8", n, 40, seed=1), made("f8", n, 40, seed=2)]
    labels = [np.arange(n), 1000_000 + np.arange(n)]
    paths = [tmp_path / f"part{at}.npy" for at in range(3)]
    for path, part in zip(paths, np.split(big[1], [1, 1234])):
        np.save(path, part)
    with (
        opened(tmp_path, np.asfortranarray(big[0]), "big0", memory="1MiB", engine="pread") as a,
        opened(tmp_path, labels[0], "l0", memory="1MiB", engine="pread") as la,
        lt.open(paths, memory="1MiB", engine="pread") as b,
        opened(tmp_path, labels[1], "l1", memory="1MiB", engine="pread") as lb,
        lt.Loader([((a, la), 1), ((b, lb), 1)], 50, seed=1) as loader,
    ):
        memory = loader.stats()["memory"]
        assert memory["limit"] == 1 << 20
        assert memory["claims"]["held columns"] == 2 * n * 8
        for batch in loader:
            for x, y, row in zip(*batch, batch.index):
                source = int(y >= 1000_000)
                assert y == labels[source][row]
                assert x.tobytes() == big[source][row].tobytes()
        assert sum(memory["claims"].values()) <= memory["limit"]


def test_one_source_is_a_mixture_too(sources, datas):
    with lt.Loader([(sources[2], 3)], 2, seed=1) as loader:
        assert len(loader) == 3
        rows = indexes(loader.next() for _ in range(7))
    assert sorted(rows.tolist()) == sorted([*range(7), *range(7)])  # nothing is left out
