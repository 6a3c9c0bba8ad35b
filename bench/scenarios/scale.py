#!/usr/bin/env python3
"""The benchmark `scale`: shuffled rows while the file outgrows memory, and while the budget grows.

Rows of 162 float32 in one permutation, in batches of 256, from the first 1, 2, 4 and 8 GiB of a
file, in a memory group that has room for the smallest of them only. Every measurement is a process
of its own, begins with nothing cached, and ends after an epoch or a few seconds. Memory is that of
the group (anonymous, and page cache with what is mapped of it) above what the process had before it
opened the file. Lowtide has a budget of 64 MiB; with all of the file, also others.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matrix
import report
import rounds
import scale_worker
import scratch
import worker
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

WORKER = str(Path(__file__).with_name("scale_worker.py"))
HEAD_BYTES = 2048  # HDF5's, before the rows
BATCH = 256
BUDGET_TIMES = 4  # a large budget takes longer to fill: these runs are so many times as long
SAMPLE_S = 0.02
LABELS = {
    "memmap": "np.memmap",
    "again": "a new np.memmap per batch",
    "dataloader": "torch DataLoader over np.memmap",
    "h5py": "h5py",
    "lowtide": "lowtide",  # and its budget
}


@dataclass(frozen=True)
class Plan:
    """The sizes of the file, the budgets for the largest of them, and the group, in MiB."""

    sizes_mib: tuple[int, ...] = (1024, 2048, 4096, 8192)
    budgets_mib: tuple[int, ...] = (32, 64, 128, 256)
    memory_mib: int = 64
    limit_mib: int = 1536
    readers: tuple[str, ...] = tuple(LABELS)

    @property
    def rows(self) -> int:
        return rows_in(self.sizes_mib[-1])

    def facts(self) -> dict[str, Any]:
        """What a result says about it."""
        return {**asdict(self), "columns": matrix.COLUMNS, "batch_size": BATCH}


QUICK = Plan((128, 512), (32, 64), limit_mib=384)  # torch fits into that


def rows_in(size_mib: int) -> int:
    return size_mib * MIB // matrix.ROW_BYTES


def methods(plan: Plan) -> list[Method]:
    found = []
    for size in plan.sizes_mib:
        for reader in plan.readers:
            found.append(_method(f"{size}-{reader}", reader, size, plan.memory_mib))
    size = plan.sizes_mib[-1]
    found += [_method(f"{size}-budget-{mib}", "lowtide", size, mib) for mib in plan.budgets_mib]
    return found


def _method(key: str, reader: str, size_mib: int, memory_mib: int) -> Method:
    told = {"rows": rows_in(size_mib), "memory": f"{memory_mib}MiB"}
    budget = f', memory="{memory_mib}MiB"' if reader == "lowtide" else ""
    return Method(key, LABELS[reader] + budget, "cold", reader, told)


class Bench(rounds.Bench):
    """Reads the beginning of one file by every method."""

    def __init__(self, path: str, plan: Plan, seconds: float) -> None:
        super().__init__(path, plan.limit_mib * MIB)
        self._seconds = seconds

    def rate(self, found: dict[str, Any]) -> str:
        return f"{found['rows_per_s']:,.0f} rows/s in {found['memory'] / MIB:,.0f} MiB"

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        task = scale_worker.Task(
            reader=method.reader,
            path=self.path,
            offset_bytes=HEAD_BYTES,
            batch_size=BATCH,
            seconds=self._seconds * (BUDGET_TIMES if "-budget-" in method.key else 1),
            **method.options,
        )
        outcome = worker.run(task, group, SAMPLE_S, WORKER)
        if group is not None and group.oom_kills():
            return {"error": f"killed: it needs more than {self.cgroup_bytes / MIB:,.0f} MiB"}
        if outcome.reason:
            return {"error": outcome.reason.replace(self.path, "FILE")}
        found = outcome.found
        found.pop("after")
        found["rows_per_s"] = found["rows"] / found["seconds"]
        return found | {"memory": _rise(outcome.readings)}


def _rise(readings: list[worker.Reading]) -> int:
    """How far the memory of the group rose above that of its first reading, before the work."""
    held = [(one.group_anon or 0) + (one.group_cache or 0) for one in readings]
    return max(held) - held[0]


def _write(path: str, rows: int) -> None:
    """Writes the matrix as a data set of HDF5, so that all methods can read the same file."""
    if importlib.util.find_spec("h5py") is None:
        Path(path).write_bytes(bytes(HEAD_BYTES))
        matrix.append(path, rows)
        return
    import h5py

    with h5py.File(path, "w") as file:
        stored = file.create_dataset("x", (rows, matrix.COLUMNS), "float32")
        first = 0
        for block in matrix.blocks(rows):
            stored[first : first + len(block)] = block
            first += len(block)
        if stored.id.get_offset() != HEAD_BYTES:
            raise ValueError(f"HDF5 put the rows at byte {stored.id.get_offset()}")


def data(folder: str | None, keep: bool, rows: int) -> AbstractContextManager[str]:
    """Provides the path of the file until the `with` block ends; see `scratch`."""
    say(f"preparing a file of {rows * matrix.ROW_BYTES / MIB:,.0f} MiB ...")
    size_bytes = HEAD_BYTES + rows * matrix.ROW_BYTES
    return scratch.kept_or_removed(
        folder, f"scale-{rows}.h5", size_bytes, lambda path: _write(path, rows), keep
    )


def table(labels: dict[str, str], found: report.Rounds) -> str:
    """One line per file size, or budget, and method."""
    columns = [
        report.median("krow/s", "rows_per_s", 1e-3, 2),
        report.spread("spread", "rows_per_s", 1e-3, 2),
        report.peak_mib("memory MiB", "memory"),
        report.median("read from disk MiB", "disk_read", 1 / MIB, 0),
        report.percent("in cache before", "resident_before"),
    ]
    return report.table(labels, found, "rows_per_s", columns)


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("scale", __doc__)
    parser.set_defaults(rounds=3, seconds=3.0)
    parser.add_argument(
        "--more", action="store_true", help="add the rounds to those that are in --out"
    )
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.seconds = 1, 0.2
    if told.rounds < 1:
        parser.error("--rounds must be at least 1")
    return told


def main(argv: list[str]) -> int:
    told = options(argv)
    plan = QUICK if told.quick else Plan()
    chosen = rounds.choose(methods(plan), told.only)
    with data(told.data, told.keep, plan.rows) as path:
        bench = Bench(path, plan, told.seconds)
        facts = rounds.machine.describe(path)
        if told.more:
            bench.found = rounds.earlier(told.out, facts)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("scale", argv), "seconds": told.seconds, **plan.facts()}
    labels = {one.key: one.label for one in methods(plan) if one.key in bench.found}
    print(table(labels, bench.found))
    rounds.write_result(told.out, facts, [], labels, bench.found)
    say("./dev bench report draws the picture and fills the tables")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
