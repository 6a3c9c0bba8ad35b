"""The map object owns its ceiling: no trim touches an address that is no longer its own."""

from __future__ import annotations

import gc
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import lowtide as lt
import numpy as np
import pytest
from conftest import open_files, run, threads
from lowtide import _core

MIB = 1 << 20
SIZE = 24 * MIB
CANARY = """
import ctypes, mmap, sys, time
import numpy as np
import lowtide as lt
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
def canary(address, size):
    # PROT_READ | PROT_WRITE; MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    at = libc.mmap(address, size, 3, 0x2 | 0x20 | 0x100000, -1, 0)
    assert at == address, "the map is still there"
    ctypes.memset(at, 0x5a, size)
    return np.frombuffer((ctypes.c_char * size).from_address(at), np.uint8)
size = 24 << 20
other = lt.memmap(sys.argv[1], np.uint8, "r", memory=1)  # keeps the thread awake
m = lt.memmap(sys.argv[1], np.uint8, "r", memory=1)
at = m.ctypes.data
m[:].sum()
ACTION
bird = canary(at, size)
for _ in range(20):
    np.asarray(other).sum()
    other[5:9].sum()
    time.sleep(0.01)
assert (bird == 0x5a).all()
print("alive")
"""


@pytest.fixture
def path(tmp_path):
    np.full(SIZE, 7, np.uint8).tofile(tmp_path / "m")
    return tmp_path / "m"


ENDS_OF_A_MAP = [
    "del m",
    "view = m[10:20]; m._mmap.close()",
    "view = m[10:20][1:3]; del m; mine = view._mmap; del view; mine.close()",
    "mine = m._mmap; mine.__exit__(None, None, None)",
    "cycle = [m]; cycle.append(cycle); del m, cycle; import gc; gc.collect()",
    """
class Sub(lt.memmap):
    pass
m = Sub(sys.argv[1], np.uint8, "r", memory=1)
at = m.ctypes.data
m.sum()
del m
""",
]


@pytest.mark.parametrize("action", ENDS_OF_A_MAP)
def test_what_lies_where_the_map_was_is_never_touched(path, action):
    found = run(CANARY.replace("ACTION", action), path)
    assert found.stdout == "alive\n", found.stderr


def test_a_map_can_be_resized_and_its_ceiling_follows(path):
    m = lt.memmap(path, np.uint8, "r+", memory="8MiB")
    over = m._mmap
    before = over.ceiling
    m = m.filename  # no view may be left
    over.resize(40 * MIB)
    assert over.ceiling is not before
    whole = np.frombuffer(over, np.uint8)
    assert whole[:SIZE].sum() == 7 * SIZE
    assert os.path.getsize(path) == 40 * MIB
    assert lt.release(whole) >= 0
    del whole
    over.close()
    with pytest.raises(ValueError, match="closed"):
        len(over)


def test_a_map_that_lends_its_memory_cannot_be_closed_and_keeps_its_ceiling(path):
    m = lt.memmap(path, np.uint8, "r", memory="8MiB")
    lent = memoryview(m._mmap)
    with pytest.raises(BufferError):
        m._mmap.close()
    assert m._mmap.ceiling.limited
    assert m[:5].sum() == 35
    lent.release()
    m._mmap.close()
    m._mmap.close()
    assert m._mmap.closed


PAST_THE_MAP = {
    "close": mmap.mmap.close,
    "resize": lambda over: mmap.mmap.resize(over, 2 * SIZE),
    "exit": lambda over: mmap.mmap.__exit__(over, None, None, None),
}
if sys.version_info < (3, 11):  # there mmap's __exit__ calls `close`, which is ours
    del PAST_THE_MAP["exit"]


@pytest.mark.parametrize("way", PAST_THE_MAP)
def test_mmaps_own_methods_cannot_take_the_address_away_under_a_trim(path, way):
    m = lt.memmap(path, np.uint8, "r+", memory="8MiB")
    with pytest.raises(BufferError):
        PAST_THE_MAP[way](m._mmap)
    assert int(m[-9:].sum()) == 63
    m._mmap.close()
    assert m._mmap.closed


def test_garbage_in_any_order(path):
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(200):
        m = lt.memmap(path, np.uint8, "r", memory="8MiB")
        kept += [m, m[5:], m[::3], np.asarray(m), m.reshape(2, -1)]
        rng.shuffle(kept)
        del kept[20:]
    assert all(int(view.flat[0]) == 7 for view in kept)
    files = open_files()
    del m
    kept.clear()
    gc.collect()
    assert open_files() < files
    assert not _core_maps(path)


def _core_maps(path):
    with open("/proc/self/maps") as lines:
        return [line for line in lines if str(path) in line]


def test_one_thread_per_process_and_none_for_maps_that_fit(path):
    _core.stop_trimming()
    before = threads()
    small = lt.memmap(path, np.uint8, "r", memory="1GiB")
    assert threads() == before
    first = lt.memmap(path, np.uint8, "r", memory="8MiB")
    second = lt.memmap(path, np.uint8, "r+", memory="8MiB")
    assert threads() == before + 1
    assert small.sum() == first.sum() == second.sum()
    _core.stop_trimming()
    assert threads() == before
    assert first[5:9].sum() == 28  # works without


def test_eight_threads_map_read_and_drop(path):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(25):
            m = lt.memmap(path, np.uint8, "r", memory=1)
            for at in rng.integers(0, SIZE - MIB, 6).tolist():
                if m[at : at + MIB].sum() != 7 * MIB or m[at] != 7:
                    wrong.append(at)
            rows = m.reshape(-1, 4096)[rng.integers(0, SIZE // 4096, 50)]
            if not (rows == 7).all():
                wrong.append("rows")
            if seed % 2:
                m._mmap.close()

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def _in_child(m, rows, out):
    before = threads()
    parts = [int(m[at : at + MIB].sum()) for at in range(0, SIZE, MIB)]
    gathered = m.reshape(-1, 4096)[rows]
    out.put((sum(parts), int(gathered.sum()), m._mmap.ceiling.stats()["trims"], before))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_goes_on_with_a_thread_of_its_own(path, method):
    m = lt.memmap(path, np.uint8, "r+", memory="8MiB")
    rows = np.arange(0, SIZE // 4096, 3)
    m[0:5] = 7
    m.reshape(-1, 4096)[rows]  # an engine with threads, which the child does not have
    context = multiprocessing.get_context(method)
    out = context.Queue()
    child = context.Process(target=_in_child, args=(m, rows, out))
    child.start()
    whole, gathered, trims, _ = out.get(timeout=120)
    child.join(120)
    assert child.exitcode == 0
    assert whole == 7 * SIZE
    assert gathered == 7 * 4096 * len(rows)
    assert trims >= 2


READING = "lambda: [m[i : i + 9].sum() for i in range(10**7)]"
ENDS_OF_A_PROGRAM = [
    "",
    "raise SystemExit(0)",
    "os._exit(0)",
    f"import threading; threading.Thread(target={READING}, daemon=True).start()",
]


@pytest.mark.parametrize("end", ENDS_OF_A_PROGRAM)
def test_the_interpreter_ends_while_maps_live(path, end):
    code = f"""
import os, sys
import numpy as np
import lowtide as lt
m = lt.memmap(sys.argv[1], np.uint8, "r", memory="8MiB")
view = m[5:]
np.asarray(m).sum()
lt.kept = [m, view]
{end}
"""
    found = run(code, path, timeout_s=60)
    assert (found.returncode, found.stderr) == (0, "")


def test_signals_go_to_the_program_and_not_to_the_thread(path):
    code = """
import signal, sys, threading, time
import numpy as np
import lowtide as lt
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread().name))
m = lt.memmap(sys.argv[1], np.uint8, "r", memory="8MiB")
masks = []
import os
for task in os.listdir("/proc/self/task"):
    text = open(f"/proc/self/task/{task}/status").read()
    masks.append(int(text.split("SigBlk:")[1].split()[0], 16))
bit = 1 << (signal.SIGUSR1 - 1)
assert sum(bool(mask & bit) for mask in masks) == 1, masks  # of all threads, ours
signal.raise_signal(signal.SIGUSR1)
assert seen == ["MainThread"]
"""
    found = run(code, path)
    assert found.returncode == 0, found.stderr


def test_ctrl_c_ends_a_loop_over_a_map(path):
    code = """
import sys
import numpy as np
import lowtide as lt
m = lt.memmap(sys.argv[1], np.uint8, "r", memory="8MiB")
print("on", flush=True)
try:
    while True:
        for at in range(0, len(m), 1 << 16):
            m[at : at + 4096].sum()
except KeyboardInterrupt:
    print("heard")
"""
    package = os.path.dirname(os.path.dirname(lt.__file__))
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as child:
        assert child.stdout.readline() == "on\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    assert (out, child.returncode) == ("heard\n", 0)


def test_locked_pages_stay_and_are_reported(path):
    import ctypes

    m = lt.memmap(path, np.uint8, "r", memory="8MiB")
    if ctypes.CDLL(None).mlock(ctypes.c_void_p(m.ctypes.data), ctypes.c_size_t(4096)) != 0:
        pytest.skip("pages cannot be locked here")
    for at in range(0, SIZE, MIB):
        m[at : at + MIB].sum()
    assert m._mmap.ceiling.stats()["refused"] != 0
    assert isinstance(m._mmap, mmap.mmap)
