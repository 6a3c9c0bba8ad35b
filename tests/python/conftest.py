"""What several tests share: files with known contents, and what a process holds."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import lowtide as lt
import numpy as np
import pytest


@pytest.fixture
def matrix(tmp_path):
    """A .npy of 1000 rows in which every value says where it stands, and the same in memory."""
    data = np.arange(1000 * 37, dtype="<i4").reshape(1000, 37)
    path = tmp_path / "m.npy"
    np.save(path, data)
    return path, data


@pytest.fixture(params=["pread", "uring", "memory"])
def engine(request, tmp_path):
    """Each engine by name; skipped where this machine has it not."""
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
    return len(os.listdir("/proc/self/task"))


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
