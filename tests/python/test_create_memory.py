"""lt.create holds no more than it was allowed, dirty pages included."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

from cgroup import MemoryGroup, Unavailable

MIB = 1 << 20
MARGIN = 16 * MIB
JOB = str(Path(__file__).with_name("write_job.py"))


def dirty_bytes(group: MemoryGroup) -> int:
    """Pages of the group that are not on the disk yet."""
    names = ("dirty", "writeback") if group.version == 1 else ("file_dirty", "file_writeback")
    lines = Path(group.folder, "memory.stat").read_text(encoding="ascii").splitlines()
    found = dict(line.split() for line in lines)
    return sum(int(found[name]) for name in names)


@pytest.mark.parametrize("how", ["append", "slices", "converted", "scattered"])
@pytest.mark.parametrize("memory", ["1MiB", "8MiB"])
def test_resident_memory_stays_within_the_budget(folder: Path, memory: str, how: str) -> None:
    size = (12 if how == "scattered" else 48) * MIB  # scattered rows read the pages they change
    told = {"path": str(folder / "a.npy"), "how": how, "memory": memory, "bytes": size}
    done = subprocess.run(
        [sys.executable, JOB, json.dumps(told)], capture_output=True, text=True, check=True
    )
    growth = json.loads(done.stdout)["growth"]
    if growth is None:
        pytest.skip("VmHWM cannot be reset: the peak is unknown")
    assert growth <= int(memory.removesuffix("MiB")) * MIB + MARGIN


def write_in_group(folder: Path, how: str, memory: int, size: int) -> tuple[int, int | None]:
    """Writes in a group of 256 MiB; returns the most dirty pages and the growth of the process."""
    if shutil.disk_usage(folder).free < size + (2 << 30):
        pytest.skip(f"less than {(size >> 30) + 2} GiB free on the disk")
    told = {
        "path": str(folder / "a.npy"), "how": how, "memory": f"{memory // MIB}MiB", "bytes": size,
    }  # fmt: skip
    try:
        with MemoryGroup(256 * MIB) as group:
            argv = group.command([sys.executable, JOB, json.dumps(told)])
            dirty = []
            with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
                while child.poll() is None:
                    dirty.append(dirty_bytes(group))
                    time.sleep(0.005)
                assert child.stdout is not None
                said = child.stdout.read()
            assert child.returncode == 0
            assert group.oom_kills() in (0, None)
            assert len(dirty) > 10
            return max(dirty), json.loads(said)["growth"]
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["append", "slices", "scattered"])
def test_dirty_pages_stay_within_the_budget(folder: Path, how: str) -> None:
    size = (128 if how == "scattered" else 512) * MIB
    dirty, growth = write_in_group(folder, how, 32 * MIB, size)
    assert dirty <= 32 * MIB + MARGIN  # the kernel counts in batches, per processor
    assert growth is None or growth <= 32 * MIB + MARGIN


@pytest.mark.slow
@pytest.mark.parametrize("how", ["append", "slices"])
def test_eight_gib_are_written_within_the_budget(folder: Path, how: str) -> None:
    if os.environ.get("LOWTIDE_BIGFILES") != "1":
        pytest.skip("files of 8 GiB are written only with LOWTIDE_BIGFILES=1")
    dirty, growth = write_in_group(folder, how, 64 * MIB, 8 << 30)
    assert dirty <= 64 * MIB + MARGIN
    assert growth is None or growth <= 64 * MIB + MARGIN
