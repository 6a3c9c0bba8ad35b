"""The promise about the pages of lt.memmap, proved: fresh processes, watched from outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

from test_memory import MARGIN, MIB, Watched, make, run_watched

JOB = str(Path(__file__).with_name("memmap_job.py"))
ROWS, COLUMNS = 262_144, 256  # 256 MiB of uint32
MEMORY = 32 * MIB


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("memmap") / "m.u4"
    block = np.ones((8192, COLUMNS), "<u4")
    with open(path, "wb") as file:
        for first in range(0, ROWS, len(block)):
            block[:, 0] = np.arange(first, first + len(block))
            file.write(block.data)
    yield str(path)
    path.unlink()


def total(rows: Any) -> int:
    return int(np.sum(rows, dtype=np.int64)) + len(rows) * (COLUMNS - 1)


def watch(path: str, **told: Any) -> Watched:
    told = {"path": path, "shape": (ROWS, COLUMNS), "memory": MEMORY, "mode": "r", **told}
    return run_watched(JOB, told, path, interval_s=0.001)


@pytest.mark.parametrize("step", [1000, 8192])  # 1 MiB and 8 MiB
@pytest.mark.parametrize("temperature", ["hot", "cold"])
def test_a_loop_over_slices_stays_within_its_ceiling(
    matrix: str, temperature: str, step: int
) -> None:
    make(matrix, temperature)
    watched = watch(matrix, job="slices", step=step)
    assert watched.found["sum"] == total(np.arange(ROWS))
    assert watched.peak_growth() <= 1.25 * MEMORY + MARGIN
    assert watched.found["trims"] >= 5


@pytest.mark.parametrize("job", ["single_rows", "elements"])
def test_rows_and_elements_in_any_order_stay_within_it(matrix: str, job: str) -> None:
    make(matrix, "hot")
    watched = watch(matrix, job=job, count=20_000)
    rows = np.random.default_rng(0).permutation(ROWS)[:20_000]
    assert watched.found["sum"] == (total(rows) if job == "single_rows" else len(rows))
    assert watched.peak_growth() <= 1.25 * MEMORY + MARGIN


def test_shuffled_whole_rows_are_read_by_the_engine(matrix: str) -> None:
    make(matrix, "hot")
    watched = watch(matrix, job="rows")
    assert watched.found["sum"] == total(np.arange(ROWS))
    assert watched.peak_growth() <= MEMORY + MARGIN
    # Pages that the map had entered would still be there.
    assert watched.found["file_growth"] <= MARGIN and watched.found["trims"] == 0
    assert watched.found["memory"] < MEMORY  # the engine has the rest


def test_shuffled_elements_of_a_flat_view_are_gathered_in_pieces(matrix: str) -> None:
    make(matrix, "hot")
    watched = watch(matrix, job="short_rows")
    assert watched.peak_growth() <= 1.25 * MEMORY + MARGIN


def test_a_whole_view_that_numpy_reads_is_trimmed_by_the_thread(matrix: str) -> None:
    make(matrix, "hot")
    memory = 2 * MEMORY
    watched = watch(matrix, job="whole", memory=memory)
    assert watched.found["sum"] == 3 * total(np.arange(ROWS))
    assert watched.found["trims"] >= 3
    assert watched.peak_growth() <= 2 * memory + MARGIN  # nine sixteenths of the file


def test_writes_stay_within_it_and_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new.u4"
    path.touch()
    watched = watch(str(path), job="writes", mode="r+", step=2048, count=20_000)
    assert watched.peak_growth() <= 1.25 * MEMORY + MARGIN
    expected = np.repeat(np.arange(0, ROWS, 2048), 2048)
    order = np.random.default_rng(0).permutation(ROWS)[:20_000]
    expected[order] = order
    found = np.memmap(path, "<u4", "r", shape=(ROWS, COLUMNS))
    assert np.array_equal(found[:, 0], expected)
    assert np.array_equal(found[:, -1], expected)


def test_drop_leaves_the_page_cache_as_it_was(matrix: str) -> None:
    make(matrix, "cold")
    watched = watch(matrix, job="slices", step=1000, cache="drop")
    assert watched.peak_growth() <= 1.25 * MEMORY + MARGIN
    # Read-ahead of a fault reaches far, and is dropped with the next trim.
    assert watched.cache_growth() <= 2 * MEMORY + 2 * MARGIN
    assert watched.cached_after is not None
    assert watched.cached_after - (watched.cached_before or 0) <= MARGIN


def test_a_tiny_memory_is_enough(matrix: str) -> None:
    make(matrix, "hot")
    watched = watch(matrix, job="slices", step=100, memory=1)
    assert watched.found["sum"] == total(np.arange(ROWS))
    assert watched.peak_growth() <= MARGIN
