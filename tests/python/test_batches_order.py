"""The caller's own order: copied or frozen, never changed under the batches."""

from __future__ import annotations

import gc

import lowtide as lt
import numpy as np
import pytest


def test_an_order_that_is_shuffled_for_the_next_epoch_keeps_this_one(matrix):
    path, _ = matrix
    rng = np.random.default_rng(0)
    order = rng.permutation(1000)
    before = order.copy()
    with lt.open(path, memory="1MiB") as a:
        batches = a.batches(10, order=order)
        assert a.stats()["memory"]["claims"]["order"] == order.nbytes
        first, _ = next(batches)
        rng.shuffle(order)
        rest = [idx for idx, _ in batches]
    np.testing.assert_array_equal(np.concatenate([first, *rest]), before)


def large_order(rows: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, rows, 100_000)


def test_a_large_order_is_read_only_while_it_is_used(matrix):
    path, data = matrix
    order = large_order(1000)
    with lt.open(path, memory="1MiB") as a:
        batches = a.batches(100, order=order)
        again = a.batches(100, order=order)
        with pytest.raises(ValueError, match="read-only"):
            np.random.default_rng(2).shuffle(order)
        batches.close()
        assert not order.flags.writeable
        del again
        gc.collect()
        assert order.flags.writeable
        order[0] = 7
        for idx, rows in a.batches(100, order=order):
            np.testing.assert_array_equal(rows, data[idx])
        assert order.flags.writeable


def test_what_an_order_is_a_view_of_is_read_only_until_all_users_are_gone(matrix):
    base = large_order(1000)
    early = base[:90_000]
    with lt.open(matrix[0], memory="1MiB") as a:
        first = a.batches(100, order=base)
        second = a.batches(100, order=early)
        second.close()
        assert not base.flags.writeable
        third = a.batches(100, order=base[5:])
        first.close()
        assert not base.flags.writeable
        third.close()
    assert base.flags.writeable
    early[0] = 1


def test_an_order_that_must_be_converted_counts_as_memory(matrix):
    order = [int(row) for row in large_order(1000)]
    with lt.open(matrix[0], memory="1MiB") as a:
        assert a.batches(10, order=order).close() is None
        assert len(a.batches(10, order=large_order(1000) - 1000)) == 10_000
    with lt.open(matrix[0], memory="512KiB") as a:
        with pytest.raises(ValueError, match=r" 781.* KiB for order.*; use at least "):
            a.batches(10, order=order)


def test_an_order_that_was_read_only_stays_so(matrix):
    order = large_order(1000)
    order.flags.writeable = False
    with lt.open(matrix[0], memory="1MiB") as a:
        a.batches(100, order=order).close()
    assert not order.flags.writeable


def test_an_entry_that_changed_is_named(matrix):
    order = large_order(1000)
    other = order[:]  # another view of the same memory is not frozen
    with lt.open(matrix[0], memory="1MiB") as a:
        batches = a.batches(10, order=order)
        other[50_000:] = 1_000_000
        with pytest.raises(IndexError, match=r"order: entry \d+ is now 1000000.*was changed"):
            for _ in batches:
                pass
