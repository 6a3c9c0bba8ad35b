"""On a very slow disk, no other thread waits for a read, and Ctrl-C works."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest
from conftest import run

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench" / "scenarios"))

import residency
from cgroup import SlowDisk, Unavailable

# It goes into the slow group when its code is in memory to stay: only the data is slow.
ENTER = """
import ctypes, os, signal, sys, threading, time
import lowtide as lt
MCL_CURRENT = 1
ctypes.CDLL(None).mlockall(MCL_CURRENT)
with open(sys.argv[2] + "/cgroup.procs", "w") as group:
    group.write(str(os.getpid()))
"""


@pytest.fixture
def slowly(tmp_path):
    """Runs code over a file of 4 MiB on a disk with a limited rate in bytes per second."""
    path = tmp_path / "zeros.bin"
    np.zeros(4 << 20, np.uint8).tofile(path)
    if residency.evict(str(path)):
        pytest.skip("the page cache of this file cannot be emptied: nothing would be slow")

    def run_slowly(code, bytes_per_s):
        try:
            with SlowDisk(str(path), bytes_per_s) as slow:
                return run(ENTER + code, path, slow.command([])[-1])
        except Unavailable as error:
            pytest.skip(str(error))

    return run_slowly


BATCHES = """
a = lt.open(sys.argv[1], dtype="u1", shape=(1024, 4096), memory="2MiB", cache="drop")
batches = a.batches(200)
wait, place = batches.__next__, lambda: batches.position
"""
LOADER = """
t = lt.tokens(sys.argv[1], dtype="uint16", memory="4MiB", cache="drop", engine="pread")
loader = lt.Loader(t, 200, 2048, dtype="uint16", order="random")
wait, place = loader.next, lambda: loader.step
"""


@pytest.mark.parametrize("reader", [BATCHES, LOADER], ids=["batches", "loader"])
def test_ctrl_c_ends_a_stalled_wait(slowly, reader):
    """One batch takes twelve seconds: none is delivered."""
    code = """
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    wait()
    print("not stalled")
except KeyboardInterrupt:
    print("delivered", place())
sys.stdout.flush()
os._exit(0)
"""
    found = slowly(reader + code, 64 << 10)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "delivered 0\n"  # a wait that is deaf would deliver it first


# From the start the engine fetches all of it, a mebibyte at first.
FILLING_ARRAY = """
a = lt.open(sys.argv[1], dtype="u1", shape=(1024, 4096), memory="16MiB", engine="memory")
"""
FILLING_TOKENS = """
a = lt.tokens(sys.argv[1], dtype="uint16", memory="16MiB", engine="memory")
"""


@pytest.mark.slow
@pytest.mark.parametrize("filling", [FILLING_ARRAY, FILLING_TOKENS], ids=["array", "tokens"])
def test_others_go_on_while_a_last_reference_goes(slowly, filling):
    """It waits for the thread that fills the memory, seconds; the lock is given up for that alone:
    Python takes it from nobody here."""
    code = """
sys.setswitchinterval(3600)
count, ended = 0, False
def work():
    global count
    while not ended:
        count += 1
        time.sleep(0)
worker = threading.Thread(target=work)
worker.start()
before = count
del a
after = count
ended = True
worker.join()
print("went on" if after > before else "stood")
"""
    found = slowly(filling + code, 512 << 10)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "went on\n"


ENDINGS = {
    "plainly": "",
    "in a thread": "threading.Thread(target=lambda held: held.clear(), args=([a],)).start(); del a",
    "in a thread that stays behind": """
holder = [a]
del a
started = threading.Event()
def work():
    started.set()
    holder.clear()
threading.Thread(target=work, daemon=True).start()
started.wait()
""",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_interpreter_may_end_while_memory_is_filled(slowly, ending):
    found = slowly(FILLING_ARRAY + ending, 1 << 20)
    assert (found.returncode, found.stderr) == (0, "")
