"""Batches of an epoch: which rows, in which order, and who owns the memory."""

from __future__ import annotations

import gc
import json

import lowtide as lt
import numpy as np
import pytest


def indices(batches):
    found = [idx for idx, _ in batches]
    return np.concatenate(found) if found else np.empty(0, np.int64)


@pytest.mark.parametrize("size", [1, 7, 100, 1000, 5000])
@pytest.mark.parametrize("order", ["shuffle", "sequential"])
def test_every_row_comes_exactly_once(matrix, engine, order, size):
    path, data = matrix
    seen = []
    with lt.open(path, memory="4MiB", engine=engine) as a:
        batches = a.batches(size, order=order, seed=3)
        assert len(batches) == -(-1000 // size)
        for idx, rows in batches:
            assert idx.dtype == np.int64
            assert rows.dtype == data.dtype
            assert rows.flags.writeable
            np.testing.assert_array_equal(rows, data[idx])
            seen.append(idx)
    assert [len(idx) for idx in seen[:-1]] == [size] * (len(seen) - 1)
    every = np.concatenate(seen)
    np.testing.assert_array_equal(np.sort(every), np.arange(1000))
    assert (every == np.arange(1000)).all() == (order == "sequential")


def test_the_order_depends_on_seed_and_epoch_alone(matrix, engine):
    path, _ = matrix
    with lt.open(path) as a:
        expected = indices(a.batches(100, seed=5, epoch=2))
        for seed, epoch in ((6, 2), (5, 3), (5, 0), (2**64 - 1, 2)):
            assert not np.array_equal(indices(a.batches(100, seed=seed, epoch=epoch)), expected)
    for memory in ("1MiB", "16MiB"):
        with lt.open(path, memory=memory, engine=engine) as a:
            for size in (64, 1000):
                np.testing.assert_array_equal(indices(a.batches(size, seed=5, epoch=2)), expected)


@pytest.mark.parametrize("world", [2, 3, 7])
def test_ranks_share_an_epoch(matrix, world):
    with lt.open(matrix[0]) as a:
        whole = [idx for idx, _ in a.batches(64, seed=1)]
        for rank in range(world):
            own = a.batches(64, seed=1, rank=rank, world_size=world)
            assert len(own) == len(whole[rank::world])
            for (idx, _), expected in zip(own, whole[rank::world]):
                np.testing.assert_array_equal(idx, expected)


def test_drop_last_leaves_out_a_short_batch(matrix):
    with lt.open(matrix[0]) as a:
        found = [len(idx) for idx, _ in a.batches(300, drop_last=True)]
        assert found == [300] * 3
        assert len(a.batches(300, drop_last=True)) == 3
        assert [len(idx) for idx, _ in a.batches(300)] == [300, 300, 300, 100]


@pytest.mark.parametrize("dtype", ["<i8", "<u8", "<i4", "<u4", "<i2", ">i8"])
def test_an_order_of_your_own(matrix, dtype):
    path, data = matrix
    order = np.random.default_rng(0).integers(0, 1000, 2500).astype(dtype)
    with lt.open(path, memory="1MiB") as a:
        batches = a.batches(400, order=order)
        assert len(batches) == 7
        at = 0
        for idx, rows in batches:
            np.testing.assert_array_equal(idx, order[at : at + 400])
            np.testing.assert_array_equal(rows, data[idx])
            at += 400


def test_an_order_is_held_while_it_is_borrowed(matrix):
    path, data = matrix
    with lt.open(path) as a:
        batches = a.batches(10, order=np.arange(999, -1, -1))
        gc.collect()
        np.random.default_rng(0).random(100_000)
        np.testing.assert_array_equal(np.concatenate([r for _, r in batches]), data[::-1])


def test_an_order_may_be_empty_or_a_list(matrix):
    with lt.open(matrix[0]) as a:
        assert list(a.batches(10, order=[])) == []
        np.testing.assert_array_equal(indices(a.batches(2, order=[3, -1, 3])), [3, 999, 3])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, not 0"),
        ({"batch_size": -5}, ValueError, "batch_size must be at least 1, not -5"),
        ({"batch_size": 1.5}, TypeError, "batch_size must be an integer, not float"),
        ({"batch_size": True}, TypeError, "batch_size must be an integer, not bool"),
        ({"batch_size": 2**63}, ValueError, "batch_size must be at most"),
        ({"seed": -1}, ValueError, "seed must be at least 0, not -1"),
        ({"seed": 2**64}, ValueError, "seed must be at most"),
        ({"seed": None}, TypeError, "seed must be an integer"),
        ({"epoch": -1}, ValueError, "epoch must be at least 0"),
        ({"rank": 2, "world_size": 2}, ValueError, r"rank must be below world_size \(2\), not 2"),
        ({"rank": -1}, ValueError, "rank must be at least 0"),
        ({"world_size": 0}, ValueError, "world_size must be at least 1"),
        ({"drop_last": 1}, TypeError, "drop_last must be a bool"),
        ({"order": "random"}, ValueError, "random"),
        ({"order": None}, TypeError, "order must be"),
        ({"order": np.array([0.5])}, TypeError, "must be integers"),
        ({"order": np.array([True])}, TypeError, "must be integers"),
        ({"order": np.zeros((2, 2), int)}, ValueError, r"one axis, not shape \(2, 2\)"),
        ({"order": np.array([1000])}, IndexError, "index 1000 is out of bounds"),
    ],
)
def test_a_wrong_argument_is_named(matrix, arguments, error, text):
    with lt.open(matrix[0]) as a, pytest.raises(error, match=text):
        a.batches(**{"batch_size": 10, **arguments})


def test_a_batch_that_does_not_fit_the_budget_is_refused_before_any_read(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((1000, 1000)))
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        for call in (lambda: a.batches(1000), lambda: a.iter_chunks(1000)):
            with pytest.raises(ValueError, match="1 MiB"):
                call()
        assert a.stats()["bytes_read"] == 0


def test_kept_batches_are_never_overwritten(matrix, engine):
    path, data = matrix
    with lt.open(path, memory="1MiB", engine=engine) as a:
        kept = list(a.batches(50, seed=9))
        assert a.stats()["memory"]["held_by_you"] >= 10 * 50 * 37 * 4
        for idx, rows in kept:
            np.testing.assert_array_equal(rows, data[idx])
        kept[0][1][...] = -1
        for idx, rows in kept[1:]:
            np.testing.assert_array_equal(rows, data[idx])
        del kept, idx, rows
        gc.collect()
        assert a.stats()["memory"]["held_by_you"] == 0


def test_a_view_keeps_its_batch(matrix):
    path, data = matrix
    a = lt.open(path, memory="1MiB")
    views = [(idx[3], rows[3, 5:9]) for idx, rows in a.batches(50)]
    a.close()
    del a
    gc.collect()
    for idx, view in views:
        np.testing.assert_array_equal(view, data[idx, 5:9])


def test_a_batch_outlives_everything(matrix):
    path, data = matrix
    a = lt.open(path)
    batches = a.batches(100)
    idx, rows = next(batches)
    batches.close()
    a.close()
    del a, batches
    gc.collect()
    np.testing.assert_array_equal(rows, data[idx])


def test_batches_go_on_after_the_array_is_closed(matrix):
    path, data = matrix
    a = lt.open(path, memory="1MiB")
    batches = a.batches(10, order="sequential")
    next(batches)
    a.close()
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in batches]), data[10:])


def test_structured_rows(tmp_path):
    dtype = np.dtype([("x", "<f4"), ("y", ">i2", (3,)), ("s", "|S5")])
    data = np.zeros((100, 2), dtype)
    data["x"] = np.arange(200).reshape(100, 2)
    data["s"] = b"abc"
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy") as a:
        for idx, rows in a.batches(30):
            assert rows.dtype == dtype
            np.testing.assert_array_equal(rows["x"], data["x"][idx])
        np.testing.assert_array_equal(a["s"], data["s"])


def test_a_closed_iterator_has_ended(matrix):
    with lt.open(matrix[0]) as a, a.batches(10) as batches:
        next(batches)
        batches.close()
        assert list(batches) == []


def test_a_state_resumes_at_every_position(matrix):
    path, _ = matrix
    with lt.open(path) as a:
        whole = [idx for idx, _ in a.batches(90, seed=4, epoch=1)]
        first = a.batches(90, seed=4, epoch=1)
        for step in range(len(whole) + 1):
            state = json.loads(json.dumps(first.state_dict()))
            second = a.batches(90, seed=4)
            second.load_state_dict(state)
            assert second.position == step
            rest = [idx for idx, _ in second]
            assert len(rest) == len(whole) - step
            for got, expected in zip(rest, whole[step:]):
                np.testing.assert_array_equal(got, expected)
            next(first, None)


def test_a_state_of_something_else_says_what_differs(matrix):
    with lt.open(matrix[0]) as a:
        state = a.batches(90, seed=4).state_dict()
        for arguments, text in (({"seed": 5}, "seed"), ({"order": "sequential"}, "order")):
            with pytest.raises(ValueError, match=text):
                a.batches(90, **{"seed": 4, **arguments}).load_state_dict(state)


def test_iteration_gives_rows_of_their_own(matrix):
    path, data = matrix
    with lt.open(path, memory="1MiB") as a:
        rows = list(a)
        assert len(rows) == 1000
        assert rows[0].flags.owndata
        np.testing.assert_array_equal(np.array(rows), data)
        for chunk, at in zip(a.iter_chunks(64), range(0, 1000, 64)):
            np.testing.assert_array_equal(chunk, data[at : at + 64])
    np.save(path, data[:, 0])
    with lt.open(path) as a:
        values = list(a)
        assert values == data[:, 0].tolist()
        assert isinstance(values[0], np.int32)


def test_stats_has_every_word(matrix):
    with lt.open(matrix[0], memory="1MiB", engine="pread", cache="keep") as a:
        for _ in a.batches(100):
            pass
        now = a.stats()
    assert now["bytes_asked"] >= 1000 * 37 * 4
    assert now["bytes_read"] >= 1000 * 37 * 4
    assert now["reads"] >= 1
    assert (now["engine"], now["cache"]) == ("pread", "keep")
    assert {"merged", "wait_ns", "engine_reason"} <= set(now)
    assert set(now["memory"]) == {"limit", "claims", "held_by_you"}
    assert sum(now["memory"]["claims"].values()) <= now["memory"]["limit"]


@pytest.mark.parametrize(
    ("rows", "batch_size", "world_size"), [(10, 4, 3), (3, 4, 1), (7, 8, 1), (1, 1, 2)]
)
def test_drop_last_that_leaves_nothing_is_an_error(tmp_path, rows, batch_size, world_size):
    np.save(tmp_path / "m.npy", np.zeros((rows, 2)))
    with lt.open(tmp_path / "m.npy") as a:
        needed = rf"batch_size \* world_size = {batch_size} \* {world_size} rows.* there are {rows}"
        for rank in range(world_size):
            with pytest.raises(ValueError, match=f"drop_last leaves no batch: .*{needed}"):
                a.batches(batch_size, rank=rank, world_size=world_size, drop_last=True)
            a.batches(batch_size, rank=rank, world_size=world_size).close()
        with pytest.raises(ValueError, match="there are 1; leave drop_last out"):
            a.batches(2, order=np.array([0]), drop_last=True)


def test_drop_last_leaves_every_rank_as_many_batches(tmp_path):
    np.save(tmp_path / "m.npy", np.arange(14))
    with lt.open(tmp_path / "m.npy") as a:
        ranks = [a.batches(2, rank=rank, world_size=3, drop_last=True) for rank in range(3)]
        assert [len(batches) for batches in ranks] == [2, 2, 2]
        assert [[len(idx) for idx, _ in batches] for batches in ranks] == [[2, 2]] * 3


def test_an_empty_array_with_drop_last_is_no_error(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((0, 2)))
    with lt.open(tmp_path / "m.npy") as a:
        assert list(a.batches(4, drop_last=True)) == []


def test_a_state_that_is_not_a_dict_is_refused(matrix):
    with lt.open(matrix[0]) as a, pytest.raises(TypeError, match=r"state must be a dict.* not int"):
        a.batches(4).load_state_dict(3)
