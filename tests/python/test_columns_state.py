"""A run over arrays resumes from its state as if it had never stopped."""

from __future__ import annotations

import json
import pickle
import shutil

import lowtide as lt
import numpy as np
import pytest
from column_files import expect_rows, indexes, made, opened
from loader_runs import expect_resumes, told
from token_files import write_megatron, write_nanogpt

N = 103
WEIGHTS = np.arange(N) % 4
ROWS = np.random.default_rng(0).integers(0, N, 61)


@pytest.fixture
def datas():
    return made("f4", N, 5), np.arange(N)


@pytest.fixture
def pair(tmp_path, datas):
    with opened(tmp_path, datas[0]) as a, opened(tmp_path, datas[1], "y") as b:
        yield a, b


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": "sequential"},
        {"order": "random"},
        {"rows": ROWS},
        {"rows": slice(None, None, -2), "order": "sequential"},
        {"weights": WEIGHTS},
        {"rows": ROWS, "weights": WEIGHTS[:61]},
        {"drop_last": False},
        {"rank": 1, "world_size": 3},
    ],
    ids=lambda told: "-".join(told) or "plain",
)
def test_resume_at_every_step_is_the_uninterrupted_run(pair, options):
    expect_resumes(lambda: lt.Loader(pair, 7, seed=3, **options))


def test_every_structure_resumes(tmp_path, pair):
    r = lt.ragged({"x": pair[0], "y": pair[1]}, [0, 3, 3, 10, 50, 51, 51, 103])
    path = write_megatron(tmp_path / "docs", [[1, 2], [], [3]] * 5)
    with lt.tokens(path) as t:
        for source in (
            pair[0],
            {"b": pair[1], "a": pair[0]},
            r,
            t.documents,
            [(pair, 0.7), (pair[::1], 0.3)],
            [(t.documents, 3), (t.documents, 1)],
        ):
            expect_resumes(lambda source=source: lt.Loader(source, 2, seed=3), epochs=1)


@pytest.mark.parametrize("options", [{}, {"rows": ROWS}, {"weights": WEIGHTS}], ids=str)
def test_other_batch_and_world_sizes_go_on_with_the_same_order(pair, options):
    """Four ranks, then two, then three: together they are the order of one rank."""
    with lt.Loader(pair, 1, seed=8, **options) as loader:
        whole = indexes(loader)
    seen, state = [], None
    for world, batch_size, steps in ((4, 2, 3), (2, 5, 2), (3, 1, None)):
        loaders = [
            lt.Loader(pair, batch_size, seed=8, rank=rank, world_size=world, **options)
            for rank in range(world)
        ]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        done = sum(map(len, seen))
        assert loaders[0].steps_left == (len(whole) - done) // (world * batch_size)
        for _ in range(steps or loaders[0].steps_left):
            seen += [loader.next().index for loader in loaders]
        state = loaders[0].state_dict()
        assert all(loader.state_dict() == state for loader in loaders)
    found = np.concatenate(seen)
    np.testing.assert_array_equal(found, whole[: len(found)])
    assert len(whole) - len(found) < 3
    assert (state["epoch"], state["position"]) == (1, 0)


def test_seek_skip_and_where_a_loader_is(pair, datas):
    with lt.Loader(pair, 10, seed=1, epochs=3) as loader:
        assert (len(loader), loader.epoch, loader.step, loader.steps_left) == (10, 0, 0, 10)
        whole = [told(loader.next()) for _ in range(30)]
        assert loader.steps_left == 0
        for turn in (29, 0, 17, 5, 10):
            loader.seek(turn % 10, epoch=turn // 10)
            assert (loader.epoch, loader.step) == divmod(turn, 10)
            assert loader.steps_left == 10 - turn % 10
            assert told(loader.next()) == whole[turn]
        loader.seek(2, epoch=0)
        loader.skip((4, 7))
        assert loader.steps_left == 5
        assert [told(batch) for batch in loader] == [whole[at] for at in (2, 3, 7, 8, 9)]
        state = loader.state_dict()
        assert loader.next().epoch == 1
        loader.load_state_dict(state)
        assert told(loader.next()) == whole[10]
        for step, epoch in ((11, 0), (0, 4), (1, 3)):
            with pytest.raises(IndexError, match="seek"):
                loader.seek(step, epoch)


def test_what_was_read_ahead_is_not_counted(pair):
    with lt.Loader(pair, 10) as loader:
        loader.next()
        loader.next()
        state = loader.state_dict()
        assert (state["position"], state["epoch"], state["step"]) == (20, 0, 2)
        assert state["block_size"] == 0


def test_pickles_go_on(pair):
    for options in ({}, {"rows": ROWS}, {"rows": slice(3, 90, 2)}, {"weights": WEIGHTS}):
        with lt.Loader({"a": pair[0], "b": pair[1]}, 5, seed=4, epochs=3, **options) as loader:
            for _ in range(8):
                loader.next()
            with pickle.loads(pickle.dumps(loader)) as again:
                assert again.state_dict() == loader.state_dict()
                assert [told(batch) for batch in again] == [told(batch) for batch in loader]
                assert again.next().keys() == ("a", "b")


def test_a_pickle_does_not_depend_on_what_became_of_the_index_array(pair):
    rows = ROWS.copy()
    with lt.Loader(pair, 5, rows=rows) as loader:
        loader.next()
        rows[:] = 0
        with pickle.loads(pickle.dumps(loader)) as again:
            assert told(again.next()) == told(loader.next())


def test_a_copy_of_the_data_resumes(tmp_path, pair):
    with lt.Loader(pair, 5, seed=1) as loader:
        loader.seek(4)
        state = json.loads(json.dumps(loader.state_dict()))
        expected = told(loader.next())
    (tmp_path / "copy").mkdir()
    copies = [shutil.copy(tmp_path / f"{name}.npy", tmp_path / "copy") for name in "xy"]
    with lt.Loader(tuple(lt.open(path) for path in copies), 5, seed=1) as loader:
        loader.load_state_dict(state)
        assert told(loader.next()) == expected


def test_batches_and_a_loader_of_one_array_have_the_same_state(pair, datas):
    batches = pair[0].batches(5, seed=1)
    for _ in range(3):
        next(batches)
    with lt.Loader(pair[0], 5, seed=1, drop_last=False) as loader:
        loader.load_state_dict(batches.state_dict())
        rest = [batch.index.tolist() for batch in loader]
    assert rest == [idx.tolist() for idx, _ in batches]


def expect_refused(loader, state, match):
    with loader:
        before = loader.state_dict()
        with pytest.raises(ValueError, match=match):
            loader.load_state_dict(state)
        assert loader.state_dict() == before
        loader.next()


def test_a_state_of_another_kind_of_data_is_refused(tmp_path, pair):
    x, y = pair
    with lt.Loader(pair, 2) as loader:
        state = loader.state_dict()
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", np.arange(300)), dtype="uint16") as t:
        match = "saved by a reader of rows, but this loader reads windows"
        expect_refused(lt.Loader(t, 2, 8), state, match)
        with lt.Loader(t, 2, 8) as loader:
            match = "saved by a loader of windows of tokens, but this one reads rows"
            expect_refused(lt.Loader(pair, 2), loader.state_dict(), match)
    for source in (x, y, (y, x), (x, y, y), lt.ragged(pair, np.arange(104)), [(pair, 1)]):
        expect_refused(lt.Loader(source, 2), state, "data differs: .*rows or weights")


def test_a_state_of_other_contents_is_refused(tmp_path, pair, datas):
    with lt.Loader(pair, 2) as loader:
        state = loader.state_dict()
    x, y = datas
    changed = y.copy()
    changed[50] += 1
    for name, data in (("changed", changed), ("narrow", y.astype("i4")), ("big", y.astype(">i8"))):
        with opened(tmp_path, data, name) as other:
            expect_refused(lt.Loader((pair[0], other), 2), state, "data differs")
    with opened(tmp_path, x[:-1], "a") as a, opened(tmp_path, y[:-1], "b") as b:
        expect_refused(lt.Loader((a, b), 2), state, "data differs")


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ({"rows": ROWS}, {}, "different files, contents, rows or weights"),
        ({}, {"rows": ROWS}, "rows or weights"),
        ({"rows": ROWS}, {"rows": ROWS[::-1]}, "rows or weights"),
        ({"rows": range(50)}, {"rows": range(51)}, "rows or weights"),
        ({"weights": WEIGHTS}, {"weights": WEIGHTS + 1}, "rows or weights"),
        ({"weights": WEIGHTS}, {"order": "random"}, "rows or weights"),
        ({"weights": WEIGHTS}, {}, "order differs: the state has random, this loader has shuffle"),
        ({"order": "sequential"}, {}, "order differs: the state has sequential"),
        ({"seed": 1}, {"seed": 2}, "seed differs: the state has 1, this loader has 2"),
    ],
    ids=str,
)
def test_a_state_of_another_selection_is_refused(pair, one, other, match):
    with lt.Loader(pair, 2, **one) as loader:
        state = loader.state_dict()
    expect_refused(lt.Loader(pair, 2, **other), state, match)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (slice(10, 40), range(10, 40)),
        (slice(10, 40), np.arange(10, 40, dtype="u1")),
        (range(-3, 0), [100, 101, 102]),
        (range(40, 10, -3), list(range(40, 10, -3))),
        (np.arange(N) % 3 == 1, range(1, N, 3)),
        (ROWS, (ROWS - N).astype("i4")),
    ],
    ids=["range", "narrow", "negative", "list", "mask", "from the end"],
)
def test_rows_count_as_what_they_select(pair, one, other):
    with lt.Loader(pair, 2, rows=one) as loader:
        loader.next()
        state = loader.state_dict()
        expected = told(loader.next())
    with lt.Loader(pair, 2, rows=other) as loader:
        loader.load_state_dict(state)
        assert told(loader.next()) == expected


def test_weights_count_as_their_ratios(pair, datas):
    with lt.Loader(pair, 2, weights=WEIGHTS) as loader:
        loader.next()
        state = loader.state_dict()
        expected = told(loader.next())
    with lt.Loader(pair, 2, weights=WEIGHTS * 0.25) as loader:
        loader.load_state_dict(state)
        batch = loader.next()
        expect_rows(batch, *datas)
        assert told(batch) == expected
