"""Several threads on one object: with the GIL little of this can fail, without it all of it."""

from __future__ import annotations

import mmap
import sys
import sysconfig
import threading

import lowtide as lt
import numpy as np
import pytest
from conftest import run
from lowtide import _core
from lowtide._data.batches import _living
from token_files import BLOCK

THREADS = 4


def at_once(work) -> None:
    """Runs `work(number)` on THREADS threads that start together; raises what the first raised."""
    gate = threading.Barrier(THREADS)
    failures = []

    def one(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the GIL always"
)
def test_importing_leaves_the_gil_off():
    found = run("import sys, lowtide; sys.exit(sys._is_gil_enabled())")
    assert (found.returncode, found.stderr) == (0, "")


def test_threads_on_one_loader_get_each_window_once(tokens):
    loader = lt.Loader(tokens, batch_size=2, block_size=BLOCK, seed=3, epochs=4)
    got = [[] for _ in range(THREADS)]

    def take(number: int) -> None:
        try:
            while True:  # not `for`, which ends with the epoch that it began in
                batch = loader.next()
                got[number].extend((batch.epoch, int(sample)) for sample in batch.samples)
        except StopIteration:
            pass

    at_once(take)
    everything = sorted(pair for part in got for pair in part)
    # 101 windows make 50 batches of two; one window of each epoch is left over.
    assert len(everything) == len(set(everything)) == 4 * 100


def test_threads_on_one_epoch_get_each_row_once(matrix):
    path, data = matrix
    with lt.open(path) as array:
        batches = array.batches(7, order="shuffle", seed=1)
        got = [[] for _ in range(THREADS)]

        def take(number: int) -> None:
            for index, rows in batches:
                np.testing.assert_array_equal(rows, data[index])
                got[number].extend(index.tolist())

        at_once(take)
    assert sorted(row for part in got for row in part) == list(range(len(data)))


def test_one_array_is_opened_read_and_closed_by_many(matrix):
    path, data = matrix
    for _ in range(20):
        array = lt.open(path)

        def read(number: int, array=array) -> None:
            try:
                for row in range(number, len(data), 97):
                    np.testing.assert_array_equal(array[row], data[row])
                    assert array.stats()["reads"] >= 0
            except ValueError as error:
                assert "closed" in str(error)
            array.close()

        at_once(read)


def test_a_ceiling_closed_by_all_gives_its_map_back_once(tmp_path):
    path = tmp_path / "map"
    path.write_bytes(bytes(1 << 20))
    with path.open("r+b") as file:
        for _ in range(200):
            map = mmap.mmap(file.fileno(), 0)
            ceiling = _core.Ceiling(map, 0, 0, None)
            references = sys.getrefcount(map)
            at_once(lambda number, ceiling=ceiling: ceiling.close())
            assert sys.getrefcount(map) == references
            map.close()  # a BufferError where it still counts as lent


def test_readers_come_and_go_while_they_are_listed(matrix):
    with lt.open(matrix[0], memory="4MiB") as array:

        def work(number: int) -> None:
            for _ in range(50):
                if number == 0:
                    assert all(core is not None for core in _living())
                else:
                    array.batches(100).close()

        at_once(work)


def test_a_list_of_starts_may_change_while_it_is_read(tokens, data):
    starts = list(range(64))
    whole = range(len(data))

    def work(number: int) -> None:
        for turn in range(300):
            if number == 0:
                del starts[::2]
                starts.extend(place + turn % 7 for place in range(64 - len(starts)))
            else:
                tokens._core.window_tensors(starts, 4, "int64", lambda capsule: capsule)
                assert all(place in whole for place in list(starts))

    at_once(work)
