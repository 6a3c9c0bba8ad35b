"""A shuffle holds no more than it was allowed, dirty pages included."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from job_files import permutation
from test_create_memory import MARGIN, MIB, dirty_bytes

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

import residency
from cgroup import MemoryGroup, Unavailable
from processes import read_status

JOB = str(Path(__file__).with_name("shuffle_job.py"))
COLUMNS = 162
MEMORY = 64 * MIB


def shuffle_in_group(folder: Path, size: int) -> None:
    """Shuffles so many bytes with 64 MiB in a group of 256 MiB, and checks what it held."""
    if shutil.disk_usage(folder).free < 4 * size + (2 << 30):
        pytest.skip(f"less than {(4 * size >> 30) + 2} GiB free on the disk")
    rows = size // (COLUMNS * 4)
    source, out = folder / "m.npy", folder / "out.npy"
    with lt.create(source, dtype="f4", shape=(rows, COLUMNS), memory="64MiB") as w:
        for first in range(0, rows, 8192):
            last = min(rows, first + 8192)
            numbers = np.arange(first, last, dtype="f4")
            w[first:last] = np.repeat(numbers[:, None], COLUMNS, axis=1)
    told = {"source": str(source), "out": str(out), "folder": str(folder), "memory": "64MiB"}
    dirty, resident = [], []
    try:
        with MemoryGroup(256 * MIB) as group:
            argv = group.command([sys.executable, JOB, json.dumps(told)])
            with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                assert child.stdout.readline() == "begin\n"
                before = read_status(child.pid)
                while child.poll() is None:
                    dirty.append(dirty_bytes(group))
                    resident.append(read_status(child.pid).get("resident", 0))
                    time.sleep(0.005)
                growth = json.loads(child.stdout.read())["growth"]
            assert child.returncode == 0
            assert group.oom_kills() in (0, None)
    except Unavailable as why:
        pytest.skip(str(why))
    assert len(resident) > 20
    assert max(resident) - before["resident"] <= MEMORY + MARGIN
    assert growth is None or growth <= MEMORY + MARGIN
    assert max(dirty) <= MEMORY + MARGIN
    for path in (source, out):  # nothing stays in the page cache but headers and samples
        cached = residency.cached_bytes(str(path))
        assert cached is None or cached <= MIB, path
    most, held = max(dirty) / MIB, (max(resident) - before["resident"]) / MIB
    print(f"{size >> 30} GiB: {held:.0f} MiB held at most, {most:.0f} MiB dirty")
    order = permutation(folder, rows, 1)
    with lt.open(out) as a:
        np.testing.assert_array_equal(a[:, 0], order.astype("f4"))


@pytest.mark.slow
def test_a_shuffle_stays_within_its_memory(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as inner:  # both tests share the folder
        shuffle_in_group(Path(inner), 1 << 30)


@pytest.mark.slow
def test_a_shuffle_of_eight_gib_stays_within_its_memory(folder: Path) -> None:
    if os.environ.get("LOWTIDE_BIGFILES") != "1":
        pytest.skip("8 GiB are shuffled only with LOWTIDE_BIGFILES=1")
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        shuffle_in_group(Path(inner), 8 << 30)
