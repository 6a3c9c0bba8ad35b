"""The same rows in a child process, however it was made."""

from __future__ import annotations

import multiprocessing
import os
import warnings

import lowtide as lt
import numpy as np
import pytest

WAYS = ["fork", "spawn", "forkserver"]


def read_rows(a, rows, results):
    results.put(a.take(rows).tobytes())


def rest_of(batches, results):
    results.put([(idx.tolist(), rows.tobytes()) for idx, rows in batches])


@pytest.mark.parametrize("way", WAYS)
def test_a_child_reads_the_same_rows(matrix, way):
    path, data = matrix
    rows = np.random.default_rng(0).integers(0, 1000, 300)
    context = multiprocessing.get_context(way)
    with lt.open(path, memory="1MiB") as a:
        a.take(rows)
        results = context.SimpleQueue()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads
            children = [
                context.Process(target=read_rows, args=(a, rows, results)) for _ in range(2)
            ]
            for child in children:
                child.start()
        for _ in children:
            assert results.get() == data[rows].tobytes()
        for child in children:
            child.join(30)
            assert child.exitcode == 0
        np.testing.assert_array_equal(a.take(rows), data[rows])


def test_batches_begun_before_a_fork_go_on_in_both(matrix):
    path, _ = matrix
    context = multiprocessing.get_context("fork")
    with lt.open(path, memory="1MiB") as a:
        whole = list(a.batches(50, seed=2))
        batches = a.batches(50, seed=2)
        for _ in range(3):
            next(batches)
        results = context.SimpleQueue()
        child = context.Process(target=rest_of, args=(batches, results))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        found = results.get()
        child.join(30)
        assert child.exitcode == 0
        expected = [(idx.tolist(), rows.tobytes()) for idx, rows in whole[3:]]
        assert found == expected
        mine = [(idx.tolist(), rows.tobytes()) for idx, rows in batches]
        assert mine == expected


def test_a_batch_held_over_a_fork_stays(matrix):
    path, data = matrix
    with lt.open(path, memory="1MiB") as a:
        batches = a.batches(50)
        idx, rows = next(batches)
        child = os.fork()
        if child == 0:
            ok = np.array_equal(rows, data[idx])
            for more, found in batches:
                ok = ok and np.array_equal(found, data[more])
            os._exit(0 if ok and np.array_equal(rows, data[idx]) else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        np.testing.assert_array_equal(rows, data[idx])
