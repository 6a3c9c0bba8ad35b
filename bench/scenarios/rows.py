#!/usr/bin/env python3
"""The benchmark `rows`: 3,000,000 x 162 float32 in one permutation, by every method.

Every measurement is a separate process. The methods alternate, round by round, so that compared
figures were measured within the same minutes. The residency of the file is checked before and after
each measurement. If pages of a hot file are missing, it is read again in order; a cold file is
evicted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fio
import floor
import matrix
import report
import rounds
import worker
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

CGROUP_BYTES = 400 * MIB
BIG_BYTES = 1 << 40
COLD_PIECE = 64
FLOOR = 0.77  # of the rate of a program that only reads and copies
FLOORS = {  # what floor.cc does for a key: window and gap, as far as merging paid there
    "hot-floor-64": ("rows", matrix.ROW_BYTES, 48 * MIB, 0),
    "hot-floor-256": ("rows", matrix.ROW_BYTES, 224 * MIB, 32 << 10),
    "hot-floor-held": ("held", matrix.ROW_BYTES),
}
RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("hot, 64MiB", "hot-64", "hot-preadv", 3.0),
    ("hot, 64MiB", "hot-64", "hot-mapped", 0.5),
    ("hot, memory >= file", "hot-fits", "hot-mapped", 1.5),
    ("cold, 64MiB", "cold-64", "cold-fio", 1.0),
    ("cold, 64MiB", "cold-64", "cold-willneed", 1.5),
    ("cold, 256MiB", "cold-256", "cold-fio", 2.0),
    ("hot, 64MiB", "hot-64-own", "hot-floor-64", FLOOR),
    ("hot, 256MiB", "hot-256-own", "hot-floor-256", FLOOR),
    ("hot, memory >= file", "hot-fits", "hot-floor-held", FLOOR),
    ("in order, hot", "hot-scan", "hot-fromfile", 1.0),
    ("in order, cold", "cold-scan", "cold-readinto", 1.0),
)
FIRST_BATCH_KEYS = ("hot-64", "hot-64-own", "hot-256", "hot-scan", "first-big")


def _lowtide(key: str, label: str, work: str, reader: str = "lowtide", **options: Any) -> Method:
    return Method(key, f"lowtide {label}", work, reader, {"seconds": 60.0, **options})


def methods(slow_s: float) -> list[Method]:
    piece = {"piece": COLD_PIECE, "seconds": slow_s}
    cold: dict[str, Any] = {"cache": "drop"}
    no_ring: dict[str, Any] = {"forbid_io_uring": True, "engine": "pread"}
    in_order: dict[str, Any] = {"order": "sequential"}
    return [
        Method("hot-memmap", "np.memmap, first epoch", "hot", "memmap"),
        Method("hot-mapped", "np.memmap, fully mapped", "hot", "memmap-mapped"),
        Method("hot-again", "np.memmap again each chunk (fix 1)", "hot", "memmap-again"),
        Method("hot-dontneed", "np.memmap + MADV_DONTNEED (fix 2)", "hot", "memmap-dontneed"),
        Method("hot-preadv", "plain preadv loop", "hot", "preadv"),
        Method("hot-willneed", "plain WILLNEED + preadv", "hot", "willneed"),
        _lowtide("hot-64", "64MiB", "hot", memory="64MiB"),
        _lowtide("hot-64-own", '64MiB, order="shuffle"', "hot", memory="64MiB", order="own"),
        _lowtide("hot-256", "256MiB", "hot", memory="256MiB"),
        _lowtide("hot-256-own", '256MiB, order="shuffle"', "hot", memory="256MiB", order="own"),
        _lowtide("hot-fits", "2.5GiB, second epoch", "hot", "lowtide-second", memory="2.5GiB"),
        _lowtide("hot-pool", "64MiB, io_uring forbidden", "hot", memory="64MiB", **no_ring),
        Method("hot-floor-64", "the floor: sorted reads of 48 MiB of rows", "hot", "floor"),
        Method("hot-floor-256", "the floor: merged reads of 224 MiB of rows", "hot", "floor"),
        Method("hot-floor-held", "the floor: copies of rows in memory", "hot", "floor"),
        Method("hot-fromfile", "in order: np.fromfile", "hot", "fromfile", in_order),
        _lowtide("hot-scan", "64MiB, in order", "hot", "lowtide-sequential", **in_order),
        _lowtide("first-big", "64MiB, first batch of 1 TiB (sparse)", "first", order="own"),
        Method("cold-memmap", "np.memmap", "cold", "memmap", piece),
        Method("cold-again", "np.memmap again each chunk (fix 1)", "cold", "memmap-again", piece),
        Method(
            "cold-dontneed", "np.memmap + MADV_DONTNEED (fix 2)", "cold", "memmap-dontneed", piece
        ),
        Method("cold-preadv", "plain preadv loop", "cold", "preadv", {"seconds": slow_s}),
        Method("cold-willneed", "plain WILLNEED + preadv", "cold", "willneed"),
        Method("cold-fio", "fio randread 1k direct QD 128", "cold", "fio-random"),
        _lowtide("cold-64", "64MiB, drop", "cold", memory="64MiB", **cold),
        _lowtide("cold-256", "256MiB, drop", "cold", memory="256MiB", **cold),
        _lowtide(
            "cold-pool",
            "64MiB, drop, io_uring forbidden",
            "cold",
            max_rows=10**6,
            **no_ring,
            **cold,
        ),
        Method(
            "cold-readinto", "in order: readinto + drop-behind", "cold", "readinto-drop", in_order
        ),
        Method("cold-fio-scan", "in order: fio 1 MiB direct", "cold", "fio-sequential"),
        _lowtide(
            "cold-scan", "64MiB, drop, in order", "cold", "lowtide-sequential", **in_order, **cold
        ),
    ]


class Bench(rounds.Bench):
    """Reads the matrix by every method; `big` is a sparse file, to time its first batch."""

    def __init__(self, path: str, rows: int, seconds: float, big: str) -> None:
        super().__init__(path, CGROUP_BYTES)
        self._rows = rows
        self._seconds = seconds
        self._big = big

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        if method.reader.startswith("fio-"):
            return self._fio(method.reader.removeprefix("fio-"), group)
        if method.reader == "floor":
            kind, *numbers = FLOORS[method.key]
            found = floor.run(kind, self.path, *numbers, seconds=self._seconds)
            return found if "error" in found else _per_row(found | {"rows": found["done"]})
        return self._worker(method, group)

    def rate(self, found: dict[str, Any]) -> str:
        return f"{found['rows_per_s']:,.0f} rows/s"

    def _fio(self, pattern: str, group: MemoryGroup | None) -> dict[str, Any]:
        found = fio.run(self.path, pattern, self._seconds, group)
        if "error" in found:
            return found
        unit_bytes = matrix.ROW_BYTES if pattern == "sequential" else 1024  # one 1k read per row
        found["rows"] = found.pop("bytes") / unit_bytes
        return _per_row(found)

    def _worker(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        big = method.work == "first"
        told = {"seconds": self._seconds, "max_rows": 1 if big else 0, **method.options}
        told["path"] = self._big if big else self.path
        told["rows"] = BIG_BYTES // matrix.ROW_BYTES if big else self._rows
        outcome = worker.run(
            worker.Task(reader=method.reader, columns=matrix.COLUMNS, **told), group, 0.02
        )
        if outcome.reason:
            return {"error": outcome.reason.replace(told["path"], "FILE")}
        found = outcome.found
        found.pop("after")
        found |= {"anon_growth": outcome.growth("anon"), "file_growth": outcome.growth("file")}
        return _per_row(found)


def _per_row(found: dict[str, Any]) -> dict[str, Any]:
    found["rows_per_s"] = found["rows"] / found["seconds"]
    found["cpu_us_a_row"] = (found["user_s"] + found["system_s"]) / found["rows"] * 1e6
    return found


def _bars(found: report.Rounds) -> list[dict[str, Any]]:
    return [report.ratio_bar(found, bar, "rows_per_s") for bar in RATIO_BARS] + [
        report.limit_bar(found, f"open + first batch, {key}", key, "first_batch_s", "20 ms")
        for key in FIRST_BATCH_KEYS
    ]


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("krow/s", "rows_per_s", 1e-3),
        report.spread("spread", "rows_per_s", 1e-3),
        report.median("us CPU/row", "cpu_us_a_row", places=2),
        report.peak_mib("anon MiB", "anon_growth"),
        report.peak_mib("file MiB", "file_growth"),
        report.percent("in cache before", "resident_before"),
        report.percent("after", "resident_after"),
        report.against(RATIO_BARS, "rows_per_s"),
    ]
    return report.table(labels, found, "rows_per_s", columns)


def options(argv: list[str], name: str = "rows") -> argparse.Namespace:
    parser = rounds.options_parser(name, __doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.rows, told.seconds = 1, min(told.rows, 300_000), 1.0
    if told.rounds < 1 or told.rows < 1:
        parser.error("--rounds and --rows must be at least 1")
    return told


def choose(told: argparse.Namespace) -> list[Method]:
    return rounds.choose(methods(min(4.0, told.seconds)), told.only)


@contextmanager
def data(told: argparse.Namespace) -> Iterator[Callable[[], Bench]]:
    """Yields a function that makes a Bench over the matrix; it exists while the `with` lasts."""
    say(f"preparing a matrix of {told.rows * matrix.ROW_BYTES / MIB:,.0f} MiB ...")
    with (
        matrix.kept_or_removed(told.data, told.rows, told.keep) as path,
        tempfile.NamedTemporaryFile(dir=os.path.dirname(path), suffix=".sparse") as big,
    ):
        big.truncate(BIG_BYTES)
        yield lambda: Bench(path, told.rows, told.seconds, big.name)


def main(argv: list[str]) -> int:
    told = options(argv)
    chosen = choose(told)
    with data(told) as make_bench:
        bench = make_bench()
        facts = rounds.machine_facts(bench.path)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("rows", argv)}
    facts |= {"rows": told.rows, "columns": matrix.COLUMNS}
    facts |= {"cgroup_bytes": None if bench.no_cgroup else CGROUP_BYTES}
    labels = {method.key: method.label for method in chosen}
    bars = _bars(bench.found)
    print(_table(labels, bench.found))
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, labels, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
