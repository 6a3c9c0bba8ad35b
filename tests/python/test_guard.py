"""`lowtide guard` around real programs: the peak stays near the limit, the program sees nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from command import copy_command
from guarded import COMMAND, HERE, LIMIT, SIZE, guard, needs_command, peak_of, write_pages

pytestmark = needs_command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tests need real files, because pages of /dev/shm cannot be released."""
    return tmp_path_factory.mktemp("guard")


@pytest.fixture(scope="module")
def data(folder):
    path = write_pages(folder / "data.bin")
    yield path
    path.unlink()


@pytest.fixture(scope="module")
def total(data):
    return int(np.fromfile(data, dtype=np.uint8).sum(dtype=np.uint64))


def program(name, path, *options, **more):
    return guard(*options, "--", sys.executable, HERE / "guard_programs.py", name, path, **more)


def cached_bytes(path):
    """Returns what is in the page cache; None if the kernel does not report it."""
    told = subprocess.run(
        [COMMAND, "cache", "--json", path], capture_output=True, text=True, check=True
    ).stdout
    return json.loads(told)["files"][0]["cached"]


def held(result, most=2 * LIMIT):
    """The margin is for a machine under load; the bars of the benchmark are narrower."""
    assert result.returncode == 0, result.stderr
    peak, trims = peak_of(result.stderr)
    assert peak <= most, result.stderr
    assert trims > 0, result.stderr
    return result.stdout.strip()


def test_a_scan_of_a_memmap_is_held_and_reads_the_same_bytes(data, total):
    result = program("scan", data)
    assert held(result) == str(total)
    assert result.stderr.endswith("not covered: nothing\n")


def test_a_shuffle_of_a_memmap_is_trimmed_and_reads_the_same_bytes(data, total):
    """A gather maps tens of gigabytes per second: it exceeds the limit for moments."""
    assert held(program("shuffle", data), most=SIZE) == str(total)


def test_the_cure_for_shuffled_reads_is_named_and_no_false_reason_is_given(data):
    """Reads that want every page back are no locked pages, and no private map of somebody else."""
    for _ in range(5):  # beside other programs, it may need its pages too slowly to be advised
        result = program("shuffle_long", data)
        assert result.returncode == 0, result.stderr
        assert "did not release" not in result.stderr
        assert "without libc" not in result.stderr
        if "needs trimmed pages again at once (as with shuffled reads)" in result.stderr:
            assert "use lt.memmap or lt.open in the program, or raise the limit" in result.stderr
            return
    raise AssertionError(result.stderr)


def test_locked_pages_are_named_for_what_they_are(data):
    inner = (
        "import ctypes, sys, time, numpy as np; m = np.memmap(sys.argv[1], mode='r')\n"
        "libc = ctypes.CDLL(None); at = ctypes.c_void_p(m.ctypes.data)\n"
        "if libc.mlock(at, ctypes.c_size_t(len(m))) != 0: sys.exit(77)\n"
        "time.sleep(2)"
    )
    result = guard("--", sys.executable, "-c", inner, data)
    if result.returncode == 77:
        pytest.skip("pages cannot be locked here")
    assert result.returncode == 0, result.stderr
    assert "192 MiB that the kernel did not release (locked pages, or" in result.stderr
    assert "shuffled" not in result.stderr
    assert "without libc" not in result.stderr


def test_pyarrow_memory_map_is_held(data, total):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (45 MB; pip install pyarrow)")
    assert held(program("arrow", data)) == str(total)


def test_torch_load_is_held_though_its_map_is_private_and_writable(folder, data, total):
    torch = pytest.importorskip("torch")
    path = folder / "data.pt"
    torch.save({"x": torch.from_numpy(np.fromfile(data, dtype=np.uint8))}, path)
    assert held(program("torch_load", path)) == str(total)
    path.unlink()


def test_safetensors_are_held(folder, data, total):
    numpy = pytest.importorskip("safetensors.numpy")
    path = folder / "data.safetensors"
    numpy.save_file({"x": np.fromfile(data, dtype=np.uint8)}, path)
    assert held(program("safetensors_torch", path)) == str(total)
    path.unlink()


def test_sqlite_with_mmap_is_held(folder):
    import sqlite3

    path = folder / "data.sqlite"
    base = sqlite3.connect(path)
    base.execute("create table rows (id integer primary key, body blob)")
    body = os.urandom(64 << 10)
    base.executemany("insert into rows (body) values (?)", ((body,) for _ in range(3000)))
    base.commit()
    base.execute(f"pragma mmap_size={1 << 30}")
    if base.execute("pragma mmap_size").fetchone() in (None, (0,)):
        pytest.skip("this sqlite was built without mmap")
    base.close()
    assert held(program("sqlite", path)) == str(3000 * len(body))
    path.unlink()


def test_writes_into_a_private_map_are_never_lost(data):
    """They stay in memory; the pages of the file around them are given to the kernel."""
    result = program("private_writes", data)
    assert result.returncode == 0, result.stderr
    assert peak_of(result.stderr)[1] > 0, result.stderr


def test_writes_into_a_shared_map_reach_the_file(folder, data):
    path = folder / "written.bin"
    shutil.copyfile(data, path)
    printed = held(program("shared_writes", path))
    written = np.fromfile(path, dtype=np.uint8)
    assert printed == str(int(written.sum(dtype=np.uint64)))
    assert np.array_equal(written, np.fromfile(data, dtype=np.uint8) + np.uint8(1))
    path.unlink()


def test_forked_workers_are_held_each_and_together(data, total):
    result = program("workers", data)
    assert held(result) == str(total)
    assert "in 3 processes" in result.stderr
    together = program("workers", data, "--tree")
    assert held(together, most=3 * LIMIT) == str(total)
    assert "summed over the processes" in together.stderr


def test_no_children_covers_the_program_only():
    inner = "import os; print(os.environ.get('LD_PRELOAD'), os.environ.get('LOWTIDE_GUARD'))"
    result = guard("--no-children", "--", sys.executable, "-c", inner)
    assert result.stdout.split() == ["None", "None"]


def test_an_earlier_preload_is_kept_behind_ours():
    inner = "import os; print(os.environ['LD_PRELOAD'])"
    environment = {**os.environ, "LD_PRELOAD": "libm.so.6"}
    result = guard("--", sys.executable, "-c", inner, env=environment)
    assert re.fullmatch(r"\S*liblowtide_guard\.so:libm\.so\.6\n", result.stdout)
    result = guard("--no-children", "--", sys.executable, "-c", inner, env=environment)
    assert result.stdout == "libm.so.6\n"


def test_exit_code_signals_and_streams_are_the_programs():
    assert guard("--", "sh", "-c", "exit 42").returncode == 42
    assert guard("--", "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV
    result = guard("--", "cat", input="in\n")
    assert result.stdout == "in\n"
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_program(number):
    process = subprocess.Popen(
        [
            COMMAND,
            "guard",
            "--limit",
            "64MiB",
            "--",
            sys.executable,
            "-c",
            # Python misses a signal between two of its bytecodes until a sleep ends.
            "import time; print(1, flush=True)\nfor _ in range(990): time.sleep(0.1)",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number


def test_cache_drop_leaves_little_in_the_page_cache(data, total):
    data.read_bytes()
    with data.open("rb") as file:
        os.fsync(file.fileno())  # a page that is still to be written cannot be dropped
    before = cached_bytes(data)
    result = program("scan", data, "--cache", "drop")
    assert held(result) == str(total)
    assert before is None or before > SIZE // 2 > cached_bytes(data)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--limit", "lots", "--", "true"], 2, '"lots" is not a size'),
        (["--limit", "1023KiB", "--", "true"], 2, "give at least 1 MiB"),
        (["--limit", "64MiB"], 2, "no program was given"),
        (["--", "true"], 2, "--limit"),
        (["--limit", "64MiB", "--cache", "burn", "--", "true"], 2, "--cache"),
        (["--limit", "64MiB", "--", "no-such-program"], 127, "no-such-program"),
        (["--limit", "64MiB", "--", str(HERE / "guard_stress.cc")], 126, "Permission denied"),
        (["--limit", "64MiB", "--", "/"], 126, "/"),
    ],
)
def test_bad_input_is_reported(words, code, text):
    result = subprocess.run([COMMAND, "guard", *words], capture_output=True, text=True, timeout=60)
    assert result.returncode == code, result.stderr
    assert text in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program to another user")
def test_a_setuid_program_is_refused(folder):
    path = folder / "raised"
    shutil.copyfile("/bin/true", path)
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)
    result = guard("--", path)
    assert result.returncode == 1
    assert "is set-user-id" in result.stderr


def test_a_limit_below_what_one_touch_maps_is_reported(data, total):
    result = program("scan", data, limit="1MiB")
    assert result.stdout.strip() == str(total)
    assert "one touch can map 2 MiB, which is more than the limit" in result.stderr


@pytest.mark.parametrize("temporary", ["/no/such/folder", "/proc"])  # missing; read-only
def test_needs_no_folder_for_temporary_files(data, total, temporary):
    result = program("scan", data, env={**os.environ, "TMPDIR": temporary})
    assert held(result) == str(total)


def test_leaves_no_descriptor_and_one_thread_in_the_program(data):
    inner = (
        "import os, sys, numpy as np; m = np.memmap(sys.argv[1], mode='r'); m[::4096].sum();"
        "print(len(os.listdir('/proc/self/task')), *sorted(os.listdir('/proc/self/fd'), key=int))"
    )
    words = [sys.executable, "-c", inner, str(data)]
    plain = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    guarded = guard("--", *words).stdout.split()
    assert int(guarded[0]) == int(plain[0]) + 1
    assert guarded[1:] == plain[1:]


def test_a_missing_shim_is_reported(folder):
    lonely = copy_command(folder, ".")
    result = subprocess.run(
        [lonely, "guard", "--limit", "64MiB", "--", "true"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert "liblowtide_guard.so" in result.stderr
