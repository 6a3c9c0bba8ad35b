#!/usr/bin/env python3
"""The benchmark `gap`: what merging costs. One shuffled epoch over 1 GiB, for several `gap=`.

Nothing is cached, and the rows are read within a cgroup of 400 MiB. The methods alternate, round by
round.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import matrix
import report
import rounds
import rows
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

GAPS = {"fitted": None, "16": "16KiB", "4": "4KiB", "none": "0"}


def methods() -> list[Method]:
    found = [_method(name, memory="64MiB", gap=gap) for name, gap in GAPS.items()]
    return [*found, _method("256", memory="256MiB", gap=None)]


def _method(name: str, memory: str, gap: str | None) -> Method:
    told = {"order": "own", "cache": "drop", "seconds": 120.0, "memory": memory, "gap": gap}
    label = f"lowtide {memory}, gap {gap or 'fitted to the disk'}"
    return Method(f"cold-{name}", label, "cold", "lowtide", told)


class Bench(rows.Bench):
    """Reads the matrix once per method, and keeps what was requested beside what was delivered."""

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        found = super().run(method, group)
        if "error" not in found:
            notes = found["notes"]
            found["read_per_byte"] = notes["bytes_read"] / notes["bytes_asked"]
            found |= {"requests": notes["reads"], "gap_bytes": notes["gap_bytes"]}
        return found

    def rate(self, found: dict[str, Any]) -> str:
        return f"{super().rate(found)}, {found['read_per_byte']:.1f} bytes read per byte"


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("read per byte", "read_per_byte"),
        report.spread("spread", "read_per_byte"),
        report.median("requests", "requests", places=0),
        report.median("gap KiB at the end", "gap_bytes", 1 / 1024),
        report.median("krow/s", "rows_per_s", 1e-3),
        report.spread("spread", "rows_per_s", 1e-3),
    ]
    return report.table(labels, found, "rows_per_s", columns)


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("gap", __doc__)
    parser.add_argument("--rows", type=int, default=(1 << 30) // matrix.ROW_BYTES)
    parser.set_defaults(rounds=3)
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
        bench = Bench(path, told.rows, told.seconds, big="")
        facts = rounds.machine_facts(path)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("gap", argv), "rows": told.rows}
    facts |= {"columns": matrix.COLUMNS, "cgroup_bytes": rows.CGROUP_BYTES}
    labels = {method.key: method.label for method in chosen}
    print(_table(labels, bench.found))
    rounds.write_result(told.out, facts, [], labels, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
