#!/usr/bin/env python3
"""The benchmark `reduce`: reductions of 3,000,000 x 162 float32 by np.memmap and by lt.open.

Every measurement is a separate process, sampled from outside every 2 ms. The methods alternate,
round by round: hot (the file is in the page cache) and cold (it is not, and a cgroup of 400 MiB
leaves no room for it).
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import matrix
import reduce_worker
import report
import rounds
import worker
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

MEMORY_MIB = 64
CGROUP_BYTES = 400 * MIB
SAMPLE_S = 0.002
JOBS: dict[str, tuple[str, int | None]] = {
    "mean0": ("mean", 0),
    "mean1": ("mean", 1),
    "sum": ("sum", None),
    "max0": ("max", 0),
    "std0": ("std", 0),
}
RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("mean(axis=0), hot", "hot-mean0-lowtide", "hot-mean0-numpy", 0.8),
    ("mean(axis=0), cold", "cold-mean0-lowtide", "cold-mean0-numpy", 1.5),
)
LIMIT_BARS = (
    ("mean(axis=0), memory", "hot-mean0-lowtide", "growth", "80 MiB"),
    ("std(axis=0), memory", "hot-std0-lowtide", "growth", "80 MiB"),
)


def methods() -> list[Method]:
    found = []
    for work, jobs in (("hot", list(JOBS)), ("cold", ["mean0"])):
        for job in jobs:
            name, axis = JOBS[job]
            for reader, label in (("numpy", "np.memmap"), ("lowtide", f"lowtide {MEMORY_MIB}MiB")):
                told: dict[str, Any] = {"name": name, "axis": axis}
                if work == "cold" and reader == "lowtide":
                    told["cache"] = "drop"
                what = f"{name}(axis={axis}): {label}"
                found.append(Method(f"{work}-{job}-{reader}", what, work, reader, told))
    return found


class Bench(rounds.Bench):
    """Reduces the matrix through each reader."""

    def __init__(self, path: str, rows: int) -> None:
        super().__init__(path, CGROUP_BYTES)
        self._rows = rows

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        task = reduce_worker.Task(
            reader=method.reader,
            path=self.path,
            rows=self._rows,
            columns=matrix.COLUMNS,
            memory=f"{MEMORY_MIB}MiB",
            **method.options,
        )
        outcome = worker.run(task, group, SAMPLE_S, program=reduce_worker.__file__)
        if outcome.reason:
            return {"error": outcome.reason.replace(self.path, "FILE")}
        found = outcome.found
        found.pop("after")
        found["growth"] = outcome.growth("anon", "file")
        found["bytes_per_s"] = self._rows * matrix.ROW_BYTES / found["seconds"]
        return found

    def rate(self, found: dict[str, Any]) -> str:
        return f"{found['bytes_per_s'] / 1e9:.2f} GB/s, {found['growth'] / MIB:,.0f} MiB grown"


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("GB/s", "bytes_per_s", 1e-9, places=2),
        report.spread("spread", "bytes_per_s", 1e-9),
        report.peak_mib("peak grown MiB", "growth"),
        report.percent("in cache after", "resident_after"),
        report.against(RATIO_BARS, "bytes_per_s"),
    ]
    return report.table(labels, found, "bytes_per_s", columns)


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("reduce", __doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.rows = 1, told.rows // 10
    if told.rounds < 1 or told.rows < 1:
        parser.error("--rounds and --rows must be at least 1")
    return told


def main(argv: list[str]) -> int:
    told = options(argv)
    chosen = rounds.choose(methods(), told.only)
    say(f"preparing a matrix of {told.rows * matrix.ROW_BYTES / MIB:,.0f} MiB ...")
    with matrix.kept_or_removed(told.data, told.rows, told.keep) as path:
        bench = Bench(path, told.rows)
        facts = rounds.machine_facts(path)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("reduce", argv), "rows": told.rows}
    facts |= {"columns": matrix.COLUMNS, "memory_bytes": MEMORY_MIB * MIB}
    facts |= {"cgroup_bytes": CGROUP_BYTES}
    labels = {method.key: method.label for method in chosen}
    bars = [report.ratio_bar(bench.found, bar, "bytes_per_s") for bar in RATIO_BARS]
    bars += [report.limit_bar(bench.found, *bar, max) for bar in LIMIT_BARS]
    print(_table(labels, bench.found))
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, labels, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
