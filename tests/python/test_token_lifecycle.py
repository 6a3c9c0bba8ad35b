"""Opening and closing tokens leaves nothing behind, nor does the end of the interpreter."""

from __future__ import annotations

import gc
import time

import lowtide as lt
import pytest
from conftest import open_files, run, status_kib, threads
from token_files import BLOCK, COUNT


def test_closed_tokens(tokens):
    tokens.close()
    tokens.close()
    for ask in (
        lambda: tokens[0],
        lambda: tokens[:5],
        lambda: tokens.windows([0], BLOCK),
        lambda: tokens.batch(1, BLOCK, seed=0),
        lambda: lt.Loader(tokens, 1, BLOCK),
    ):
        with pytest.raises(ValueError, match="closed"):
            ask()
    assert len(tokens) == COUNT


def use(path, how):
    t = lt.tokens(path, memory="1MiB")
    x, _ = t.windows([5, 7], BLOCK)
    loader = lt.Loader(t, 4, BLOCK)
    batch = loader.next()
    assert batch.x.shape == (4, BLOCK) and x.shape == (2, BLOCK)
    if how % 3 == 0:
        loader.close()
        t.close()
    elif how % 3 == 1:
        t.close()


def test_three_hundred_cycles_leave_nothing_behind(tokens):
    path = tokens.paths[0]
    for how in range(30):
        use(path, how)
    gc.collect()
    files, tasks, anon_kib = open_files(), threads(), status_kib("RssAnon")
    for how in range(300):
        use(path, how)
    gc.collect()
    assert open_files() <= files
    due = time.monotonic() + 10  # the kernel lists a thread a moment longer than a join takes
    while threads() > tasks and time.monotonic() < due:
        time.sleep(0.01)
    assert threads() <= tasks
    assert status_kib("RssAnon") - anon_kib < 8 << 10


def test_loaders_that_fail_leave_nothing_behind(tokens):
    files, tasks = open_files(), threads()
    for _ in range(100):
        with pytest.raises(ValueError):
            lt.Loader(tokens, 1000, BLOCK)
        with pytest.raises(ValueError):
            lt.Loader(tokens, 2, BLOCK, memory=1000)
    assert open_files() <= files
    assert threads() <= tasks


@pytest.mark.parametrize("ending", ["pass", "raise SystemExit(0)", "del t", "del loader, first"])
def test_the_interpreter_may_end_while_windows_are_read_ahead(tokens, ending):
    code = f"""
import sys
import lowtide as lt
t = lt.tokens(sys.argv[1], memory="4MiB")
loader = lt.Loader(t, 2, 16)
first = loader.next()
cycle = [loader]; cycle.append(cycle)
sys.modules["kept"] = cycle
{ending}
"""
    found = run(code, tokens.paths[0])
    assert (found.returncode, found.stderr) == (0, "")


def test_the_interpreter_may_end_while_a_thread_trains(tokens):
    code = """
import sys, threading
import lowtide as lt
t = lt.tokens(sys.argv[1], memory="4MiB")
loader = lt.Loader(t, 2, 16)
def work():
    while True:
        loader.next()
threading.Thread(target=work, daemon=True).start()
loader.next()
"""
    found = run(code, tokens.paths[0])
    assert found.returncode == 0, found.stderr


def test_lowtide_torch_is_not_loaded_before_it_is_touched():
    code = """
import sys
import lowtide as lt
assert "torch" not in sys.modules and "lowtide.torch" not in sys.modules
try:
    lt.nothing
except AttributeError as error:
    assert "nothing" in str(error)
try:
    assert lt.torch.__name__ == "lowtide.torch"
except ModuleNotFoundError as error:
    assert error.name == "torch", error
"""
    found = run(code)
    assert found.returncode == 0, found.stderr
