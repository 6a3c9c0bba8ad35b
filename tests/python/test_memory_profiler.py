"""What memory_profiler, the tool of the Stack Overflow answer, shows for np.memmap and for us."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

import residency
from test_memory import COLUMNS, FILE_BYTES, MARGIN, MIB, watch, write_rows

pytest.importorskip("lowtide")
pytest.importorskip("memory_profiler")


def test_the_curve_of_np_memmap_rises_and_ours_stays_low(tmp_path: Path) -> None:
    path = tmp_path / "matrix.u32"
    rows = write_rows(path, FILE_BYTES, COLUMNS)
    residency.warm(str(path))
    found = watch(str(path), rows, job="profile", memory="32MiB").found
    path.unlink()
    ours, theirs = found["ours"], found["theirs"]
    assert len(ours) > 2 and len(theirs) > 2, "memory_profiler took too few samples"
    assert (max(theirs) - theirs[0]) * MIB > 0.8 * FILE_BYTES
    assert (max(ours) - ours[0]) * MIB <= 32 * MIB + MARGIN
