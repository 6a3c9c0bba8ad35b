"""The same rows in a child process, however it was made."""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings

import lowtide as lt
import numpy as np
import pytest
from conftest import wait_for

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
            child.join(120)
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
        child.join(120)
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_goes_on_though_another_thread_was_waiting(matrix):
    """At the fork a thread of the parent is inside next(): its lock is not the child's."""
    path, data = matrix
    with lt.open(path, memory="1MiB") as a:
        for _ in range(10):
            batches = a.batches(1, seed=3)
            stop = threading.Event()

            def iterate(batches=batches, stop=stop):
                while not stop.is_set() and next(batches, None) is not None:
                    pass

            thread = threading.Thread(target=iterate)
            thread.start()
            child = os.fork()
            if child == 0:
                found = next(batches, None)
                right = found is None or bool((found[1] == data[found[0]]).all())
                batches.close()
                os._exit(0 if right else 1)
            stop.set()
            thread.join()
            assert wait_for(child) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_batches_under_way_go_on_in_a_child_of_a_closed_array(matrix):
    path, data = matrix
    a = lt.open(path, memory="1MiB")
    batches = a.batches(10, order="sequential")
    next(batches)
    a.close()
    child = os.fork()
    if child == 0:
        seen = np.concatenate([rows for _, rows in batches])
        os._exit(0 if (seen == data[10:]).all() else 1)
    assert wait_for(child) == 0
