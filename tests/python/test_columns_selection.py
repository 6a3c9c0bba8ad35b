"""rows= and weights= of a loader: which samples it takes, and how often."""

from __future__ import annotations

import gc

import lowtide as lt
import numpy as np
import pytest
from column_files import expect_rows, indexes, made, opened
from token_files import write_nanogpt

N = 200


@pytest.fixture
def pair(tmp_path):
    x, y = made("f4", N, 3), np.arange(N)
    with opened(tmp_path, x) as a, opened(tmp_path, y, "y") as b:
        yield (a, b), (x, y)


@pytest.fixture
def large(tmp_path):
    """An array, and indices that are too many for a copy."""
    with opened(tmp_path, np.arange(100_000), "large", memory="1MiB", engine="pread") as a:
        yield a, np.random.default_rng(0).permutation(100_000)[:50_000]


MASK = np.random.default_rng(1).random(N) < 0.3
SELECTIONS = {
    **{kind: np.array([3, 99, 5, 3, 0], kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4")},
    **{kind: np.array([3, 199, 5, 3, 0], kind) for kind in ("i8", "u8", ">i8", ">u4")},
    "list": [3, 199, -1, 3],
    "tuple": (3, 199, -1, 3),
    "negative": np.array([-1, -N, 7, -7], "i4"),
    "strided": np.arange(N)[::-7],
    "mask": MASK,
    "list of bools": MASK.tolist(),
    "slice": slice(50, 150),
    "slice with a step": slice(3, None, 7),
    "slice downwards": slice(None, None, -3),
    "slice from the end": slice(-30, None),
    "slice too long": slice(190, 10**30),
    "slice of one with a huge step": slice(7, None, 10**30),
    "range": range(50, 150),
    "range downwards": range(199, -1, -4),
    "range from the end": range(-5, 0),
    "range around the end": range(-3, 3),
    "range of one with a huge step": range(7, 8, 10**30),
}


def resolved(rows):
    if isinstance(rows, range):
        rows = list(rows)
    return np.arange(N)[rows if isinstance(rows, slice) else np.asarray(rows)]


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
@pytest.mark.parametrize("kind", SELECTIONS)
def test_an_epoch_has_the_selected_rows(pair, kind, order):
    source, datas = pair
    rows = SELECTIONS[kind]
    expected = resolved(rows)
    with lt.Loader(source, 3, order=order, rows=rows, drop_last=False, seed=1) as loader:
        assert len(loader) == -(-len(expected) // 3)
        for _ in range(2):
            batches = list(loader)
            for batch in batches:
                expect_rows(batch, *datas)
            found = indexes(batches)
            assert found.min() >= 0
            assert sorted(found) == sorted(expected)
            if order == "sequential":
                np.testing.assert_array_equal(found, expected)


def test_a_shuffled_subset_is_the_permutation_of_its_length(tmp_path, pair):
    rows = np.flatnonzero(MASK)
    with opened(tmp_path, np.arange(len(rows)), "as_many") as a:
        places = np.concatenate([idx for idx, _ in a.batches(5, seed=4, epoch=1)])
    with lt.Loader(pair[0], 5, rows=MASK, seed=4, drop_last=False) as loader:
        loader.seek(0, epoch=1)
        np.testing.assert_array_equal(indexes(loader), rows[places])


def test_a_subset_over_ranks(pair):
    rows = np.flatnonzero(MASK)
    with lt.Loader(pair[0], 6, rows=rows, seed=2) as loader:
        whole = indexes(loader)
    loaders = [lt.Loader(pair[0], 2, rows=MASK, seed=2, rank=r, world_size=3) for r in range(3)]
    dealt = [batch.index for step in zip(*loaders) for batch in step]
    np.testing.assert_array_equal(np.concatenate(dealt), whole)


def test_when_a_row_of_a_subset_comes(pair):
    rows = np.array([5, 9, 150, 9, 30, 31, 32])
    with lt.Loader(pair[0], 2, rows=rows, seed=3, rank=0, world_size=1) as loader:
        steps = {step: batch.index.tolist() for step, batch in enumerate(loader)}
        left_out = set(rows.tolist()) - {row for rows_of in steps.values() for row in rows_of}
        for row in {5, 150, 30, 31, 32}:
            found = loader.when(row, epoch=0)
            if row in left_out:
                assert found is None
            else:
                assert steps[found.step][found.row] == row and found.rank == 0
        assert loader.when(6) is None
        with pytest.raises(IndexError, match="row 200 does not exist: there are 200 rows"):
            loader.when(200)


def test_when_with_all_rows(pair):
    with lt.Loader(pair[0], 7, seed=3, rank=1, world_size=2) as loader:
        for epoch in range(2):
            for batch in loader:
                for place, row in enumerate(batch.index.tolist()):
                    assert loader.when(row, epoch) == (batch.step, 1, place)


def test_the_index_array_is_yours(pair):
    rows = np.arange(50)
    with lt.Loader(pair[0], 5, rows=rows, order="sequential") as loader:
        rows[:] = 199  # few enough that they were copied
        np.testing.assert_array_equal(indexes(loader), np.arange(50))


def test_a_long_index_array_is_frozen_while_it_is_borrowed(large):
    array, rows = large
    expected = rows.copy()
    loader = lt.Loader(array, 1000, rows=rows, order="sequential")
    other = lt.Loader(array, 1000, rows=rows)
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 1
    np.testing.assert_array_equal(indexes(loader), expected)
    assert "rows" not in loader.stats()["memory"]["claims"]
    del loader
    gc.collect()
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 1
    other.close()
    rows[0] = 1


def test_a_refused_loader_leaves_the_index_array_writable(large):
    array, rows = large
    with pytest.raises(ValueError, match="weights"):
        lt.Loader(array, 1000, rows=rows, weights=np.ones(7))
    gc.collect()
    rows[0] = 1


def test_a_long_list_of_ours_is_a_claim(large):
    array, rows = large
    with lt.Loader(array, 100, rows=rows.astype("u2") // 2) as loader:
        assert loader.stats()["memory"]["claims"]["rows"] == 50_000 * 8
    with pytest.raises(ValueError, match=r"rows.*; use at least "):
        lt.Loader(array, 100, rows=np.zeros(200_000, "i2"))


@pytest.fixture
def tokens(tmp_path):
    data = np.arange(16 * 40 + 5).astype("<u2")
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", data), dtype="uint16", memory="2MiB") as t:
        yield t


def test_with_tokens_rows_number_windows(tokens):
    with lt.Loader(tokens, 3, 16, rows=[-1, 7, 0, 39, 5], drop_last=False) as loader:
        batches = list(loader)
        assert sorted(indexes(batches)) == [0, 5, 7, 39, 39]
        for batch in batches:
            np.testing.assert_array_equal(batch.x[:, 0], batch.index * 16)
            np.testing.assert_array_equal(batch.y[:, 0], batch.index * 16 + 1)
        found = loader.when(7 * 16 + 3, epoch=0)
        assert batches[found.step].index[found.row] == 7
        assert loader.when(16) is None
    with pytest.raises(IndexError, match="40"):
        lt.Loader(tokens, 3, 16, rows=[40])
    with pytest.raises(ValueError, match="windows start anywhere"):
        lt.Loader(tokens, 3, 16, rows=[1, 2, 3], order="random")


def test_with_tokens_weights_number_windows(tokens):
    weights = np.zeros(40)
    weights[[3, 39]] = 1, 3
    with lt.Loader(tokens, 4, 16, weights=weights) as loader:
        found = [loader.next() for _ in range(100)]
    for batch in found:
        np.testing.assert_array_equal(batch.x[:, 5], batch.index * 16 + 5)
    counts = np.bincount(indexes(found), minlength=40)
    assert counts[3] + counts[39] == 400 and 230 < counts[39] < 370


def test_weights_are_the_shares_of_draws(pair):
    weights = np.arange(N, dtype="f4") % 5
    with lt.Loader(pair[0], 50, weights=weights, seed=1) as loader:
        assert len(loader) == 4
        batches = [loader.next() for _ in range(400)]
    for batch in batches[:5]:
        expect_rows(batch, *pair[1])
    counts = np.bincount(indexes(batches), minlength=N)
    assert not counts[weights == 0].any()
    expected = weights / weights.sum() * 20_000
    drawn = weights > 0
    spread = (counts - expected)[drawn] ** 2 / expected[drawn]
    assert abs(spread.sum() - drawn.sum()) < 6 * np.sqrt(2 * drawn.sum())


@pytest.mark.parametrize("dtype", ["f2", "f8", ">f4", "u1", "i8", "g"])
def test_weights_of_any_type_are_the_same_draws(pair, dtype):
    weights = np.arange(N) % 7
    drawn = []
    for given in (weights.astype(dtype), weights.tolist(), weights[::-1][::-1] * 2):
        with lt.Loader(pair[0], 50, weights=given, seed=1) as loader:
            drawn.append(indexes(loader).tolist())
    assert drawn == drawn[:1] * 3


def test_draws_depend_on_seed_epoch_and_position_only(pair):
    weights = np.arange(N)

    def drawn(batch_size, **options):
        with lt.Loader(pair[0], batch_size, weights=weights, **options) as loader:
            return [indexes(loader).tolist() for _ in range(2)]

    whole = drawn(40, seed=1)
    assert whole == drawn(25, seed=1) == drawn(200, seed=1, order="random", prefetch=1)
    assert len({str(epoch) for seed in (1, 2) for epoch in drawn(40, seed=seed)}) == 4
    ranks = [drawn(20, seed=1, rank=rank, world_size=2)[0] for rank in range(2)]
    dealt = np.stack([np.reshape(rank, (5, 20)) for rank in ranks], 1).ravel()
    assert dealt.tolist() == whole[0]


def test_weights_of_a_subset(pair):
    with lt.Loader(pair[0], 10, rows=slice(100, 120), weights=[0, 1] * 10, seed=3) as loader:
        assert len(loader) == 2
        found = [loader.next() for _ in range(60)]
    for batch in found:
        expect_rows(batch, *pair[1])
    assert set(indexes(found)) == set(range(101, 120, 2))
    with pytest.raises(ValueError, match="drawn with replacement"):
        lt.Loader(pair[0], 10, weights=np.ones(N)).when(3)


def test_the_table_of_weights_is_a_claim(large):
    array, _ = large
    weights = np.ones(100_000)
    with pytest.raises(ValueError, match=r"for weights.*; use at least "):
        lt.Loader(array, 10, weights=weights, memory="512KiB")
    with pytest.raises(ValueError, match=r"too small: 781 KiB for weights; use more"):
        lt.Loader(array, 10, weights=weights.astype("f4"), memory="512KiB")  # before a copy is made
    with lt.Loader(array, 10, weights=weights, memory="2MiB") as loader:
        assert loader.stats()["memory"]["claims"]["weights"] == 800_000
        weights[:] = np.nan  # the table is made
        loader.next()
