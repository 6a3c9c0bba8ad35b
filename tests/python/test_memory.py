"""The promise about memory, proved: each job runs in a fresh process and is watched from outside.

Two witnesses see every job: a sampler that reads /proc each 2 ms, and the kernel's own peak
(VmHWM, started again just before the job), which no sample can miss.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

import residency
from cgroup import MemoryGroup, Unavailable
from processes import Reading, Sampler

lowtide = pytest.importorskip("lowtide")

MIB = 1 << 20
MARGIN = 16 * MIB
COLUMNS = 162
FILE_BYTES = 160 * MIB
JOB = str(Path(__file__).with_name("memory_job.py"))


@dataclass(frozen=True)
class Watched:
    """What one job did. Sizes in bytes; None is unknown."""

    found: dict[str, Any]
    before: dict[str, int]
    readings: list[Reading]
    cached_before: int | None
    cached_after: int | None

    def resident_growth(self) -> int:
        base = self.before["anon"] + self.before["file"]
        return max((r.anon or 0) + (r.file or 0) for r in self.readings) - base

    def peak_growth(self) -> int:
        """Of heap and mapped pages together. No proof rests on how often the sampler ran."""
        exact = self.found["exact_growth"]
        if exact is None and len(self.readings) <= 10:
            pytest.skip("too few samples, and VmHWM cannot be reset: the peak is unknown")
        return max(exact or 0, self.resident_growth())

    def cache_growth(self) -> int:
        known = [r.cached for r in self.readings if r.cached is not None]
        if self.cached_before is None or self.cached_after is None or not known:
            pytest.skip("cachestat is not available for this file: the page cache is unknown")
        return max(*known, self.cached_after) - self.cached_before


def write_rows(path: Path, size_bytes: int, columns: int) -> int:
    """A real file whose rows carry their number in the first column; returns the rows."""
    rows = size_bytes // (columns * 4)
    block = np.random.default_rng(0).integers(0, 2**32, (16384, columns), dtype=np.uint32)
    with open(path, "wb", buffering=0) as file:
        for first in range(0, rows, len(block)):
            count = min(len(block), rows - first)
            block[:count, 0] = np.arange(first, first + count)
            view = block[:count].data.cast("B")
            while view:
                view = view[file.write(view) :]
        os.fsync(file.fileno())
    return rows


@pytest.fixture(scope="module")
def matrix(folder: Path) -> tuple[str, int]:
    path = folder / "matrix.u32"
    return str(path), write_rows(path, FILE_BYTES, COLUMNS)


@pytest.fixture(scope="module")
def ring(folder: Path) -> str | None:
    """Why io_uring cannot be used here, or None."""
    small = folder / "small.u32"
    small.write_bytes(bytes(4096))
    try:
        with lowtide.open(str(small), dtype="uint32", shape=(4, 256), engine="uring") as array:
            array.take(np.array([1]))
    except OSError as error:
        return str(error)
    return None


def make(path: str, temperature: str) -> None:
    if temperature == "hot":
        residency.warm(path)
    elif (residency.evict(path) or 0.0) >= residency.COLD_FRACTION:
        pytest.skip("the page cache of this file cannot be emptied: a cold read is not possible")


def run_watched(
    job: str,
    told: dict[str, Any],
    path: str,
    group: MemoryGroup | None = None,
    interval_s: float = 0.002,
    **environment: str,
) -> Watched:
    """Runs the program `job` and samples it and the file; fails when the job does."""
    cached_before = residency.cached_bytes(path)
    argv = [sys.executable, job, json.dumps(told)]
    with subprocess.Popen(
        group.command(argv) if group else argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as child:
        assert child.stdout is not None
        ready = child.stdout.readline()
        with Sampler(child.pid, path, interval_s) as sampler:
            out, err = child.communicate("\n", timeout=300)
    assert child.returncode == 0, err
    cached_after = residency.cached_bytes(path)
    return Watched(
        json.loads(out), json.loads(ready), sampler.readings, cached_before, cached_after
    )


def watch(path: str, rows: int, group: MemoryGroup | None = None, **told: Any) -> Watched:
    """Runs one job and samples it; fails when the job does."""
    told = {
        "job": "epochs",
        "path": path,
        "rows": rows,
        "columns": COLUMNS,
        "batch": 1024,
        "order": "shuffle",
        "epochs": 2,
        "check": True,
        "max_batches": 0,
        **told,
    }
    return run_watched(JOB, told, path, group, MALLOC_ARENA_MAX="1")  # each arena reserves 64 MiB


def assert_within(watched: Watched, budget_bytes: int) -> None:
    assert watched.peak_growth() <= budget_bytes + MARGIN


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["keep", "drop"])
@pytest.mark.parametrize("temperature", ["hot", "cold"])
@pytest.mark.parametrize("order", ["shuffle", "sequential"])
@pytest.mark.parametrize("engine", ["pread", "uring", "auto"])
def test_two_epochs_stay_within_32_mib(
    matrix: tuple[str, int],
    ring: str | None,
    engine: str,
    order: str,
    temperature: str,
    cache: str,
) -> None:
    if engine == "uring" and ring:
        pytest.skip(f"io_uring: {ring}")
    path, rows = matrix
    make(path, temperature)
    watched = watch(path, rows, memory="32MiB", engine=engine, order=order, cache=cache)
    assert_within(watched, 32 * MIB)
    if cache == "drop":
        assert watched.cache_growth() <= 32 * MIB + MARGIN


@pytest.mark.parametrize("temperature", ["hot", "cold"])
@pytest.mark.parametrize("order", ["shuffle", "sequential"])
def test_two_epochs_stay_within_8_mib(
    matrix: tuple[str, int], order: str, temperature: str
) -> None:
    path, rows = matrix
    make(path, temperature)
    watched = watch(path, rows, memory="8MiB", order=order, cache="drop")
    assert_within(watched, 8 * MIB)
    assert watched.cache_growth() <= 8 * MIB + MARGIN


@pytest.mark.parametrize("temperature", ["hot", "cold"])
def test_the_memory_engine_stays_within_its_budget(folder: Path, temperature: str) -> None:
    path = folder / "fits.u32"
    rows = write_rows(path, 40 * MIB, COLUMNS)
    make(str(path), temperature)
    watched = watch(str(path), rows, memory="64MiB", engine="memory", cache="drop")
    assert_within(watched, 64 * MIB)
    assert watched.cache_growth() <= 64 * MIB + MARGIN


@pytest.mark.parametrize("engine", ["pread", "uring", "auto"])
def test_a_half_cached_file_stays_half_cached(
    matrix: tuple[str, int], ring: str | None, engine: str
) -> None:
    if engine == "uring" and ring:
        pytest.skip(f"io_uring: {ring}")
    path, rows = matrix
    make(path, "cold")
    residency.read_through(path, FILE_BYTES // 2)
    watched = watch(path, rows, memory="32MiB", engine=engine, cache="drop")
    assert_within(watched, 32 * MIB)
    assert watched.cache_growth() <= 32 * MIB + MARGIN


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
@pytest.mark.parametrize("engine", ["pread", "auto"])
def test_drop_leaves_what_was_cached_before(
    matrix: tuple[str, int], folder: Path, engine: str, order: str
) -> None:
    path, rows = matrix
    control = folder / "control.u32"
    if not control.exists():
        write_rows(control, 32 * MIB, COLUMNS)
    kept = []
    for _ in range(5):
        make(str(control), "hot")  # first: it is older, so it is the first that a machine evicts
        make(path, "hot")
        watched = watch(path, rows, memory="32MiB", engine=engine, order=order, cache="drop")
        if watched.cached_before is None or watched.cached_after is None:
            pytest.skip("cachestat is not available for this file: the page cache is unknown")
        # A file that nobody reads tells whether the machine itself has evicted something.
        undisturbed = (residency.cached_fraction(str(control)) or 0.0) >= residency.HOT_FRACTION
        if undisturbed and watched.cached_before >= 0.99 * FILE_BYTES:
            kept.append(watched.cached_after / watched.cached_before)
            if kept[-1] >= 0.99:
                return
    if len(kept) < 5:
        pytest.skip("the machine evicts page cache by itself right now")
    pytest.fail(f"of what was cached before, these parts stayed: {kept}")


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("memory", ["8MiB", "32MiB"])
def test_reductions_stay_within_the_budget(
    matrix: tuple[str, int], folder: Path, memory: str, order: str
) -> None:
    path, rows = matrix
    out = str(folder / "out.npy")
    told = {"job": "reduce", "path": path, "rows": rows, "columns": COLUMNS, "order": order}
    told |= {"memory": memory, "out": out}
    # OpenBLAS maps a buffer per thread, which is not ours.
    watched = run_watched(JOB, told, path, None, MALLOC_ARENA_MAX="1", OPENBLAS_NUM_THREADS="1")
    assert_within(watched, lowtide._core.parse_bytes(memory))
    assert os.path.getsize(out) == 128 + os.path.getsize(path)


def test_virtual_size_does_not_grow_with_the_file(matrix: tuple[str, int], folder: Path) -> None:
    path, rows = matrix
    make(path, "cold")
    told: dict[str, Any] = {
        "memory": "32MiB",
        "cache": "drop",
        "check": False,
        "epochs": 1,
        "max_batches": 100,
    }
    small = watch(path, rows, **told).found["virtual_growth"]
    sparse = folder / "sparse.u32"
    with open(sparse, "wb") as file:
        file.truncate(4 << 30)
    big = watch(str(sparse), (4 << 30) // (COLUMNS * 4), **told).found["virtual_growth"]
    assert big <= small + MARGIN


@pytest.mark.slow
def test_a_cgroup_of_256_mib_survives_a_shuffled_epoch_over_2_gib(folder: Path) -> None:
    path = folder / "large.u32"
    if shutil.disk_usage(folder).free < 4 << 30:
        pytest.skip("less than 4 GiB free on the disk")
    try:
        with MemoryGroup(256 * MIB) as group:
            rows = write_rows(path, 2 << 30, 1024)
            make(str(path), "cold")
            watch(str(path), rows, group, columns=1024, epochs=1)
            assert group.oom_kills() in (0, None)
    except Unavailable as why:
        pytest.skip(str(why))
