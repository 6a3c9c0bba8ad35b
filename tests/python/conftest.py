"""Shared by several tests: files with known contents, and what a process holds."""

from __future__ import annotations

import importlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import bench_runs
import lowtide as lt
import numpy as np
import pytest
from token_files import COUNT, write_nanogpt


def pytest_collection_modifyitems(items):
    """Files that take long come first: at the end the other workers would wait for them."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path.name != "test_old_kernel.py", item.path not in slow))


@pytest.fixture
def matrix(tmp_path):
    """A .npy of 1000 rows whose values are their positions, and the same array in memory."""
    data = np.arange(1000 * 37, dtype="<i4").reshape(1000, 37)
    path = tmp_path / "m.npy"
    np.save(path, data)
    return path, data


@pytest.fixture
def data():
    """The tokens of `tokens`."""
    return np.random.default_rng(0).integers(0, 50257, COUNT).astype(np.uint16)


@pytest.fixture
def tokens(tmp_path, data):
    """101 windows of BLOCK tokens, and a rest."""
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", data), memory="2MiB") as t:
        yield t


@pytest.fixture
def train_data():
    """The tokens of `train`."""
    return np.random.default_rng(0).integers(0, 50257, 20_000).astype(np.uint16)


@pytest.fixture
def train(tmp_path, train_data):
    """The path of a file as nanoGPT writes it."""
    return write_nanogpt(tmp_path / "train.bin", train_data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """A temporary folder per module, removed after it: pytest would keep gigabytes."""
    where = tmp_path_factory.mktemp("memory")
    yield where
    for file in where.iterdir():
        file.unlink()


@pytest.fixture(params=["pread", "uring", "memory"])
def engine(request, tmp_path):
    """Each engine by name; skipped if this machine lacks it."""
    path = tmp_path / "probe.npy"
    np.save(path, np.zeros((10, 10)))
    try:
        lt.open(path, engine=request.param).close()
    except OSError as error:
        pytest.skip(f"engine {request.param}: {error}")
    return request.param


def status_kib(field: str) -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise LookupError(field)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    """Waits until their number is stable: the kernel lists a thread briefly after its join."""
    before, now = -1, len(os.listdir("/proc/self/task"))
    while now != before:
        time.sleep(0.05)
        before, now = now, len(os.listdir("/proc/self/task"))
    return now


def run(code: str, *arguments: object, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a fresh interpreter that finds the same package."""
    package = pathlib.Path(lt.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment,
        check=False,
    )


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Calls work(0), work(1), ... each in a thread, and waits for all."""
    workers = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def wait_for(child, seconds=120.0):
    """Returns the exit code of a child, which is killed if it hangs."""
    due = time.monotonic() + seconds
    while time.monotonic() < due:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


@pytest.fixture
def bench_module(monkeypatch):
    """Imports modules of the benchmarks and of their report."""
    monkeypatch.syspath_prepend(bench_runs.SCENARIOS)
    monkeypatch.syspath_prepend(bench_runs.REPORT)
    return importlib.import_module
