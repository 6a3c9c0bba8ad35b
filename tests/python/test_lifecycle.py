"""Opening and closing leaves nothing behind; Ctrl-C and interpreter shutdown work."""

from __future__ import annotations

import gc
import signal
import threading

import lowtide as lt
import numpy as np
import pytest
from conftest import in_threads, open_files, run, status_kib, threads


def use(path, how):
    a = lt.open(path, memory="1MiB")
    batches = a.batches(100)
    next(batches)
    assert a[5:7].shape == (2, 37)
    if how % 3 == 0:
        batches.close()
        a.close()
    elif how % 3 == 1:
        a.close()


def test_a_thousand_cycles_leave_nothing_behind(matrix):
    for how in range(30):
        use(matrix[0], how)
    gc.collect()
    files, tasks, anon_kib = open_files(), threads(), status_kib("RssAnon")
    for how in range(1000):
        use(matrix[0], how)
    gc.collect()
    assert open_files() <= files
    assert threads() <= tasks
    assert status_kib("RssAnon") - anon_kib < 8 << 10


def test_one_kept_batch_keeps_nothing_but_itself(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((100_000, 256), np.float32))
    code = """
import sys
import lowtide as lt
def anon_kib():
    return next(int(s.split()[1]) for s in open("/proc/self/status") if s.startswith("RssAnon"))
a = lt.open(sys.argv[1], memory="64MiB", engine="pread")
kept = []
for epoch in range(5):
    batches = a.batches(256, seed=epoch)
    kept.append(next(batches))
    for _ in range(50):
        next(batches)
    batches.close()
    if epoch == 0:
        before = anon_kib()
print(anon_kib() - before)
"""
    found = run(code, tmp_path / "m.npy")
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 8 << 10  # four batches of 256 KiB, and a little


def test_a_failed_open_leaves_nothing_behind(tmp_path):
    (tmp_path / "m.npy").write_bytes(b"\x93NUMPY\x01\x00")
    files = open_files()
    for _ in range(100):
        with pytest.raises(lt.FormatError):
            lt.open(tmp_path / "m.npy")
    assert open_files() <= files


def test_many_threads_read_one_array(matrix):
    path, data = matrix
    wrong = []

    def work(seed):
        try:
            read(np.random.default_rng(seed), seed)
        except Exception as error:
            wrong.append(error)

    def read(rng, seed):
        for _ in range(30):
            rows = rng.integers(0, 1000, 50)
            if not np.array_equal(a.take(rows), data[rows]):
                wrong.append("take")
            first = int(rng.integers(0, 900))
            if not np.array_equal(a[first : first + 50], data[first : first + 50]):
                wrong.append("slice")
        for idx, rows in a.batches(100, seed=seed):
            if not np.array_equal(rows, data[idx]):
                wrong.append("batch")

    # Room for all that eight epochs of this length can use: none depends on what others took.
    with lt.open(path, memory="16MiB") as a:
        in_threads(work, 8)
    assert wrong == []


def test_eight_iterations_of_a_short_array_share_a_small_budget(matrix):
    path, data = matrix
    with lt.open(path, memory="4MiB") as a:
        iterations = [a.batches(100, seed=seed) for seed in range(8)]
        for batches in iterations:
            idx, rows = next(batches)
            np.testing.assert_array_equal(rows, data[idx])


def test_many_threads_share_one_epoch(matrix):
    path, _ = matrix
    seen, lock = [], threading.Lock()

    def work(_):
        for idx, _ in batches:
            with lock:
                seen.append(idx)

    with lt.open(path, memory="1MiB") as a, a.batches(10) as batches:
        in_threads(work, 4)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(1000))


def test_close_from_another_thread_ends_the_iteration(matrix):
    with lt.open(matrix[0], memory="1MiB") as a:
        batches = a.batches(1)
        closer = threading.Timer(0.05, batches.close)
        closer.start()
        for _ in batches:
            pass
        closer.join()
        assert next(batches, None) is None


def test_ctrl_c_ends_an_iteration(matrix):
    with lt.open(matrix[0], memory="1MiB") as a:
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                # Again and again: Python swallows one that meets a callback of a weak reference.
                signal.setitimer(signal.ITIMER_REAL, 0.1, 0.5)
                while True:
                    for _ in a.batches(10):
                        pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert a[0].shape == (37,)


@pytest.mark.parametrize("ending", ["pass", "raise SystemExit(0)", "del a", "del b, first"])
def test_the_interpreter_may_end_while_rows_are_read_ahead(tmp_path, ending):
    np.save(tmp_path / "m.npy", np.zeros((100_000, 100), np.float32))
    code = f"""
import sys
import lowtide as lt
a = lt.open(sys.argv[1], memory="4MiB")
b = a.batches(100)
first = next(b)
cycle = [b]; cycle.append(cycle)
sys.modules["kept"] = cycle
{ending}
"""
    found = run(code, tmp_path / "m.npy")
    assert (found.returncode, found.stderr) == (0, "")


def test_the_interpreter_may_end_while_a_thread_waits(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((100_000, 100), np.float32))
    code = """
import sys, threading
import lowtide as lt
a = lt.open(sys.argv[1], memory="4MiB")
def work():
    while True:
        for _ in a.batches(10):
            pass
threading.Thread(target=work, daemon=True).start()
next(a.batches(10))
"""
    found = run(code, tmp_path / "m.npy")
    assert found.returncode == 0, found.stderr
