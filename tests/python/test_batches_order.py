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


def test_an_order_that_was_read_only_stays_so(matrix):
    order = large_order(1000)
    order.flags.writeable = False
    with lt.open(matrix[0], memory="1MiB") as a:
        a.batches(100, order=order).close()
    assert not order.flags.writeable


def test_an_entry_that_changed_is_called_by_its_name(matrix):
    base = large_order(1000)
    order = base[:]  # frozen; what it is a view of is not
    with lt.open(matrix[0], memory="1MiB") as a:
        batches = a.batches(10, order=order)
        base[50_000:] = 1_000_000
        with pytest.raises(IndexError, match=r"order: entry \d+ is now 1000000.*was changed"):
            for _ in batches:
                pass
