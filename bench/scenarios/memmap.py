#!/usr/bin/env python3
"""The benchmark `memmap`: speed and mapped pages of maps with a ceiling and of plain maps.

It uses a cached matrix of 3,000,000 x 162 float32: a loop over slices, a sum of the whole array,
whole rows in a permutation (in chunks of 4096, and one by one), and r+ writes. Every measurement is
a separate process, sampled from outside every 2 ms. The methods alternate, round by round.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matrix
import memmap_worker
import report
import rounds
import scratch
import worker
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

MEMORY_MIB = 256
SAMPLE_S = 0.002
RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("slice loop", "slices-lowtide", "slices-numpy", 0.8),
    ("shuffled whole rows", "fancy-lowtide", "fancy-take", 1.0),
)
# Mapped pages and buffers: 1.25 x memory + 16 MiB, for whole rows memory + 16 MiB.
LIMIT_BARS = (
    ("slice loop, mapped pages", "slices-lowtide", "file_growth", "336 MiB"),
    ("single rows, mapped pages", "rows-lowtide", "file_growth", "336 MiB"),
    ("r+ writes, mapped pages", "writes-lowtide", "file_growth", "336 MiB"),
    ("whole sum, mapped pages", "reduction-lowtide", "file_growth", "528 MiB"),
    ("shuffled whole rows, memory", "fancy-lowtide", "growth", "272 MiB"),
)


def methods() -> list[Method]:
    names = {
        "slices": "slices of 4096 rows",
        "reduction": "sum of the whole",
        "fancy": "shuffled rows, 4096 at a time",
        "rows": "shuffled rows, one by one",
        "writes": "r+ writes, 4096 rows at a time",
    }
    found = []
    for job, what in names.items():
        for reader, label in (("numpy", "np.memmap"), ("lowtide", f"lt.memmap {MEMORY_MIB}MiB")):
            found.append(Method(f"{job}-{reader}", f"{what}: {label}", "hot", reader, {"job": job}))
    take = f"{names['fancy']}: lt.open(...).take"
    found.append(Method("fancy-take", take, "hot", "take", {"job": "fancy"}))
    return found


class Bench(rounds.Bench):
    """Reads the matrix through each map."""

    def __init__(self, path: str, rows: int, seconds: float) -> None:
        super().__init__(path, 0)
        self._rows = rows
        self._seconds = seconds

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        task = memmap_worker.Task(
            reader=method.reader,
            path=self.path,
            rows=self._rows,
            columns=matrix.COLUMNS,
            memory=f"{MEMORY_MIB}MiB",
            seconds=self._seconds,
            **method.options,
        )
        outcome = worker.run(task, group, SAMPLE_S, program=memmap_worker.__file__)
        if outcome.reason:
            return {"error": outcome.reason.replace(self.path, "FILE")}
        found = outcome.found
        found.pop("after")
        found["file_growth"] = outcome.growth("file")
        found["growth"] = outcome.growth("anon", "file")
        over = [(r.file or 0) - outcome.ready["file"] for r in outcome.readings]
        within = sum(1 for bytes_ in over if bytes_ <= MEMORY_MIB * MIB)
        found["share_within"] = within / len(over) if over else None
        found["rows_per_s"] = found["rows"] / found["seconds"]
        return found

    def rate(self, found: dict[str, Any]) -> str:
        return f"{found['rows_per_s']:,.0f} rows/s, {found['file_growth'] / MIB:,.0f} MiB mapped"


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("krow/s", "rows_per_s", 1e-3),
        report.spread("spread", "rows_per_s", 1e-3),
        report.peak_mib("peak mapped MiB", "file_growth"),
        report.peak_mib("peak grown MiB", "growth"),
        report.percent("samples within memory", "share_within"),
        report.median("trims", "trims", places=0),
        report.percent("in cache after", "resident_after"),
        report.against(RATIO_BARS, "rows_per_s"),
    ]
    return report.table(labels, found, "rows_per_s", columns)


def options(argv: list[str], name: str = "memmap") -> argparse.Namespace:
    parser = rounds.options_parser(name, __doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.seconds = 1, 2.0
    if told.rounds < 1 or told.rows < 1:
        parser.error("--rounds and --rows must be at least 1")
    return told


def choose(told: argparse.Namespace) -> list[Method]:
    return rounds.choose(methods(), told.only)


@contextmanager
def data(told: argparse.Namespace) -> Iterator[Callable[[], Bench]]:
    """Yields a function that makes a Bench over the matrix; it exists while the `with` lasts."""
    say(f"preparing a matrix of {told.rows * matrix.ROW_BYTES / MIB:,.0f} MiB ...")
    name = f"memmap-{told.rows}x{matrix.COLUMNS}.f32"  # own file: it is written to
    with scratch.kept_or_removed(
        told.data,
        name,
        told.rows * matrix.ROW_BYTES,
        lambda part: matrix.write(part, told.rows),
        told.keep,
    ) as path:
        yield lambda: Bench(path, told.rows, told.seconds)


def main(argv: list[str]) -> int:
    told = options(argv)
    chosen = choose(told)
    with data(told) as make_bench:
        bench = make_bench()
        facts = rounds.machine_facts(bench.path)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("memmap", argv)}
    facts |= {"rows": told.rows, "columns": matrix.COLUMNS, "memory_bytes": MEMORY_MIB * MIB}
    labels = {method.key: method.label for method in chosen}
    bars = [report.ratio_bar(bench.found, bar, "rows_per_s") for bar in RATIO_BARS]
    bars += [report.limit_bar(bench.found, *bar, max) for bar in LIMIT_BARS]
    print(_table(labels, bench.found))
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, labels, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
