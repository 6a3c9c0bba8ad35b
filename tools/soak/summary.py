"""What a run has to say: the log, a line per minute, failures, and a table at the end."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MIB = 1 << 20


class Total:
    """The counts of one actor over all its lives."""

    def __init__(self) -> None:
        self.lives = 0
        self.counts: collections.Counter[str] = collections.Counter()
        self.faults: collections.Counter[str] = collections.Counter()
        self.peak_bytes = 0

    def add(self, report: dict[str, Any]) -> None:
        self.counts.update(report["counts"])
        self.faults.update(report["faults"])
        self.peak_bytes = max(self.peak_bytes, report["peak_bytes"])


class Record:
    """`repeat` is the command of this run, without --only."""

    def __init__(self, actors: list[str], log: Path | None, repeat: str) -> None:
        self.totals = {name: Total() for name in actors}
        self.failures: list[str] = []
        self.repeat = repeat
        self._log = None if log is None else log.open("w", encoding="utf-8")

    def say(self, text: str) -> None:
        print(text, flush=True)
        self.write(text)

    def write(self, text: str) -> None:
        if self._log is not None:
            print(text, file=self._log, flush=True)

    def note(self, at_s: float, text: str) -> None:
        """Into the log only."""
        self.write(f"{at_s:9.3f} {text}")

    def count(self, name: str, kind: str) -> None:
        self.totals[name].faults[kind] += 1

    def add(self, life: Any) -> None:
        """A life is over."""
        self.totals[life.name].lives += 1
        self.totals[life.name].add(life.report)

    def failure(self, name: str | None, text: str) -> None:
        """Of one actor, or of all."""
        self.failures.append(text.splitlines()[0])
        repeat = self.repeat if name is None else f"{self.repeat} --only {name}"
        self.say(f"FAILED: {text}\n  repeat: {repeat}")

    def idle(self, lives: dict[str, Any]) -> list[str]:
        """Those that have delivered nothing yet, as on a busy machine: a run waits for them."""
        return [
            name
            for name, total in self.totals.items()
            if not total.counts["batches"] and not lives[name].report["counts"].get("batches")
        ]

    def minute(self, number: float, lives: dict[str, Any]) -> None:
        reports = [life.report for life in lives.values()]
        counts = collections.Counter[str]()
        for total in self.totals.values():
            counts.update(total.counts)
            counts["faults"] += total.faults.total()
            counts["restarts"] += total.lives
        for report in reports:
            counts.update(report["counts"])
            counts["faults"] += sum(report["faults"].values())
        peak = max([report["peak_bytes"] for report in reports], default=0)
        self.say(
            f"minute {number:.0f}: {counts['batches']:,} batches, {counts['bytes'] / MIB:,.0f} MiB "
            f"checked, {counts['faults']:,} faults, {counts['restarts']} restarts, peak "
            f"{peak / MIB:.0f} MiB in one process, {len(self.failures)} failures"
        )

    def table(self) -> None:
        """After all lives are over."""
        rows = [("actor", "lives", "cycles", "batches", "MiB checked", "peak MiB", "faults")]
        rows += [_row(name, total) for name, total in self.totals.items()]
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        for row in rows:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:6], widths[1:])]
            self.say("  ".join([*cells, row[6]]))

    def verdict(self) -> int:
        """Says how it ended; returns the exit code."""
        if not self.failures:
            self.say(f"no failure: {self.repeat}")
            return 0
        self.say(f"{len(self.failures)} failures; the first: {self.failures[0]}")
        self.say(f"repeat: {self.repeat}")
        return 1


def _row(name: str, total: Total) -> tuple[str, ...]:
    counts = total.counts
    numbers = (total.lives, counts["cycles"], counts["batches"], round(counts["bytes"] / MIB))
    peak = f"{total.peak_bytes / MIB:.1f}"
    return (name, *(f"{number:,}" for number in numbers), peak, _faults(total.faults.items()))


def _faults(counted: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counted))
