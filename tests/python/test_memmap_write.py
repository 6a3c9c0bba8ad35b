"""Writing through lt.memmap: what NumPy would write, and nothing of it lost."""

from __future__ import annotations

import signal

import lowtide as lt
import numpy as np
import pytest
from conftest import run
from test_memmap import COLUMNS, MIB, ROWS, SMALL, open_map


@pytest.fixture
def numbers():
    return np.arange(ROWS * COLUMNS, dtype="<i4").reshape(ROWS, COLUMNS)


@pytest.fixture
def own(tmp_path, numbers):
    numbers.tofile(tmp_path / "m.i4")
    return tmp_path / "m.i4"


@pytest.mark.parametrize("cache", ["keep", "drop"])
def test_rows_read_by_the_engine_see_what_was_just_written_to_the_map(own, numbers, cache):
    m = open_map(own, "r+", cache=cache)
    expected = numbers.copy()
    rng = np.random.default_rng(0)
    for _ in range(30):
        rows = rng.integers(0, ROWS, 200)
        at = int(rng.integers(0, ROWS - 100))
        m[at : at + 100] = expected[at : at + 100] = rng.integers(0, 1000, (100, COLUMNS))
        m[rows] = expected[rows] = rng.integers(0, 1000, (200, COLUMNS))
        m[int(rows[0]), 3] = expected[rows[0], 3] = -7
        rows = np.concatenate([rows, np.arange(at, at + 100)])
        assert np.array_equal(m[rows], expected[rows])
    assert np.array_equal(m, expected)
    m.flush()
    assert np.array_equal(np.fromfile(own, "<i4").reshape(m.shape), expected)


def test_writing_is_numpys_whatever_the_index(own, numbers):
    m = open_map(own, "r+")
    expected = numbers.copy()
    duplicates = np.array([5, 9, 5, 5, 9])
    rows = np.random.default_rng(0).permutation(ROWS)[:30_000]
    mask = np.arange(ROWS) % 5 == 0
    for array in (m, expected):
        array[3] = 4
        array[4, 5] = 6
        array[10:20] += 1
        array[duplicates] = np.arange(5)[:, None]
        array[rows] = rows[:, None]
        array[mask] = np.arange(COLUMNS)
        array[[1, 2], [3, 4]] = 9
        array[:, 7] = -1
        array[[[30], [31]]] = 12
        array[-1] = np.arange(COLUMNS)
        array[[40, 41]] = np.full((1, 1, 2, COLUMNS), 13)
        array[[42, 43]] = [[14], [15]]
    assert np.array_equal(m, expected)
    with pytest.raises(ValueError):
        m[[1, 2]] = np.zeros((3, COLUMNS))
    with pytest.raises(ValueError, match="read-only"):
        open_map(own)[[1, 2]] = 0


def test_rows_written_from_the_same_map_are_those_of_before(own, numbers):
    m = open_map(own, "r+")
    expected = numbers.copy()
    rows = np.arange(1, ROWS)
    m[rows] = m[:-1]
    expected[rows] = numbers[:-1]
    assert np.array_equal(m, expected)
    mirrored = np.arange(ROWS)[::-1]
    m[mirrored] = m
    assert np.array_equal(m, expected[::-1])


def test_a_tuple_is_one_record(tmp_path):
    dtype = np.dtype([("x", "<i4"), ("y", "<f8")])
    m = lt.memmap(tmp_path / "m", dtype, "w+", shape=(2 * MIB,), memory=SMALL)
    m[[1, 2]] = (7, 8.5)
    m[np.array([3])] = [(9, 1.5)]
    assert m[:4].tolist() == [(0, 0.0), (7, 8.5), (7, 8.5), (9, 1.5)]


def test_what_was_written_and_flushed_survives_the_kill(tmp_path):
    path = tmp_path / "m.i4"
    code = """
import os, signal, sys
import numpy as np
import lowtide as lt
m = lt.memmap(sys.argv[1], "<i4", "w+", shape=(40_000, 256), memory="8MiB")
for at in range(0, len(m), 500):
    m[at : at + 500] = np.arange(at, at + 500)[:, None]
assert m._mmap.ceiling.stats()["trims"] >= 3
m.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
    found = run(code, path)
    assert found.returncode == -signal.SIGKILL, found.stderr
    data = np.fromfile(path, "<i4").reshape(-1, 256)
    assert np.array_equal(data, np.broadcast_to(np.arange(40_000)[:, None], data.shape))
