#!/usr/bin/env python3
"""The benchmark `rows`: 3,000,000 x 162 float32 in one permutation, by every method there is.

Every measurement is a process of its own. The methods take turns, round by round; what is
compared was measured within the same minutes. Residency of the file is checked before and
after: a hot file is read back in order when pages are missing, a cold one is evicted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fio
import machine
import matrix
import report
import residency
import worker
from cgroup import MemoryGroup, why_unavailable

MIB = 1 << 20
CGROUP_BYTES = 400 * MIB
BIG_BYTES = 1 << 40
ATTEMPTS = 3
COLD_PIECE = 64


@dataclass(frozen=True)
class Method:
    """One row of the table: which work, which reader, and what it is told."""

    key: str
    label: str
    work: str  # "hot" | "cold" | "first"
    reader: str
    options: dict[str, Any] = field(default_factory=dict)


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
        _lowtide("hot-fits", "2.5GiB, second epoch", "hot", "lowtide-second", memory="2.5GiB"),
        _lowtide("hot-pool", "64MiB, io_uring forbidden", "hot", memory="64MiB", **no_ring),
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


class Bench:
    """Runs the rounds and keeps what was found."""

    def __init__(self, path: str, rows: int, seconds: float, big: str) -> None:
        self._path = path
        self._rows = rows
        self._seconds = seconds
        self._big = big
        self.no_cgroup = why_unavailable()
        self.found: dict[str, list[dict[str, Any]]] = {}

    def measure(self, method: Method) -> None:
        """One measurement; it is repeated while the residency was not what its work needs."""
        for attempt in range(1, ATTEMPTS + 1):
            before = self._prepare(method.work)
            found = self._run(method)
            after = None if method.work == "first" else residency.cached_fraction(self._path)
            found |= {"resident_before": before, "resident_after": after, "attempt": attempt}
            found["residency"] = _judge(method.work, before, after)
            if found["residency"] != "wrong" or "error" in found:
                break
        self.found.setdefault(method.key, []).append(found)

    def _prepare(self, work: str) -> float | None:
        if work == "cold":
            return residency.evict(self._path)
        if work == "hot":
            fraction = residency.cached_fraction(self._path)
            if fraction is None or fraction < residency.HOT_FRACTION:
                return residency.warm(self._path)
            return fraction
        return None

    def _run(self, method: Method) -> dict[str, Any]:
        with ExitStack() as stack:
            group = None
            if method.work == "cold":
                if self.no_cgroup:
                    return {"error": f"skipped: {self.no_cgroup}"}
                group = stack.enter_context(MemoryGroup(CGROUP_BYTES))
            if method.reader.startswith("fio-"):
                found = self._fio(method.reader.removeprefix("fio-"), group)
            else:
                found = self._worker(method, group)
            return found | ({"cgroup_peak": group.peak_bytes()} if group else {})

    def _fio(self, pattern: str, group: MemoryGroup | None) -> dict[str, Any]:
        found = fio.run(self._path, pattern, self._seconds, group)
        if "error" in found:
            return found
        unit_bytes = matrix.ROW_BYTES if pattern == "sequential" else 1024  # a 1k read serves a row
        found["rows"] = found.pop("bytes") / unit_bytes
        return _per_row(found)

    def _worker(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        big = method.work == "first"
        told = {"seconds": self._seconds, "max_rows": 1 if big else 0, **method.options}
        told["path"] = self._big if big else self._path
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


def _judge(work: str, before: float | None, after: float | None) -> str:
    if work == "first":
        return "not asked"
    if before is None or after is None:
        return "unknown"
    if work == "hot":
        return "ok" if min(before, after) >= residency.HOT_FRACTION else "wrong"
    return "ok" if before < residency.COLD_FRACTION else "wrong"


def _rounds(bench: Bench, chosen: list[Method], rounds: int) -> None:
    started_s = time.monotonic()
    for number in range(rounds):
        for work in ("hot", "first", "cold"):
            turn = [method for method in chosen if method.work == work]
            shift = number * 3 % max(1, len(turn))  # nobody always comes after the same one
            for method in turn[shift:] + turn[:shift]:
                bench.measure(method)
                last = bench.found[method.key][-1]
                text = last.get("error") or f"{last['rows_per_s']:,.0f} rows/s"
                spent = f"{time.monotonic() - started_s:4.0f} s"
                say(f"[{spent}] round {number + 1}/{rounds} {work:5} {method.label}: {text}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _command(argv: list[str]) -> str:
    """The command as it was given, without the folders of this machine."""
    clean = []
    for before, word in zip(["", *argv], argv):
        name, equals, _ = word.partition("=")
        hidden = f"{name}=DIR" if equals and name in ("--data", "--out") else word
        clean.append("DIR" if before in ("--data", "--out") else hidden)
    return " ".join(["./dev bench rows", *clean])


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rows", description=__doc__)
    parser.add_argument("--data", help="folder for the matrix (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="leave the matrix for the next run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=6.0, help="limit of a plain method")
    parser.add_argument("--quick", action="store_true", help="one round over a tenth of the rows")
    parser.add_argument("--only", default="", help="keys that begin so, separated by commas")
    parser.add_argument("--out", default=str(Path(__file__).parents[1] / "results" / "rows.json"))
    options = parser.parse_args(argv)
    if options.quick:
        options.rounds, options.rows, options.seconds = 1, min(options.rows, 300_000), 1.0
    if options.rounds < 1 or options.rows < 1:
        parser.error("--rounds and --rows must be at least 1")
    return options


def main(argv: list[str]) -> int:
    options = _options(argv)
    only = tuple(options.only.split(",")) if options.only else ("",)
    chosen = [m for m in methods(min(4.0, options.seconds)) if m.key.startswith(only)]
    if not chosen:
        sys.exit(f"rows: no method begins with {options.only}")
    say(f"writing or finding a matrix of {options.rows * matrix.ROW_BYTES / MIB:,.0f} MiB ...")
    with (
        matrix.kept_or_removed(options.data, options.rows, options.keep) as path,
        tempfile.NamedTemporaryFile(dir=os.path.dirname(path), suffix=".sparse") as big,
    ):
        big.truncate(BIG_BYTES)
        bench = Bench(path, options.rows, options.seconds, big.name)
        facts = machine.describe(path)
        residency.warm(path)
        facts["folios"] = {
            "mapped_bytes_per_touch": machine.mapped_bytes_per_touch(path),
            "judged": "file evicted, read back in order, then touched in 64 places of a map",
        }
        _rounds(bench, chosen, options.rounds)
    facts |= {"command": _command(argv), "rows": options.rows, "columns": matrix.COLUMNS}
    facts |= {"cgroup_bytes": None if bench.no_cgroup else CGROUP_BYTES}
    labels = {method.key: method.label for method in chosen}
    print(report.table(labels, bench.found))
    bars = report.bars(bench.found)
    print(report.bars_table(bars))
    result = {"facts": facts, "bars": bars, "labels": labels, "rounds": bench.found}
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
