"""Shared by all benchmarks: alternating methods, residency checks, options and results.

Every measurement is a separate process. The methods alternate, round by round, so that compared
figures were measured within the same minutes. The residency of the file is checked before and after
each measurement. If pages of a hot file are missing, it is read again in order; a cold file is
evicted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import machine
import report
import residency
from cgroup import MemoryGroup, why_unavailable

ATTEMPTS = 3


@dataclass(frozen=True)
class Method:
    """One row of the table: the work, the reader and its options."""

    key: str
    label: str
    work: str  # "hot" | "cold" | "first"
    reader: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether Lowtide does the work."""
        return self.reader == "take" or self.reader.startswith("lowtide")


class Bench:
    """Runs the rounds and keeps the results; a subclass defines how to run one method."""

    def __init__(self, path: str, cgroup_bytes: int | None) -> None:
        self.path = path
        self.no_cgroup = why_unavailable()
        self.cgroup_bytes = cgroup_bytes  # None: cold methods run without a group
        self.hot_cgroup_bytes: int | None = None  # None: hot methods run without a group
        self.found: report.Rounds = {}

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        """Measures once, in the group if there is one; returns {"error": why} on failure."""
        raise NotImplementedError

    def files(self, method: Method) -> list[str]:
        """Returns the files that a method reads."""
        return [self.path]

    def rate(self, found: dict[str, Any]) -> str:
        """Summarises a measurement in one line."""
        raise NotImplementedError

    def measure(self, method: Method) -> None:
        """Measures once, and repeats it if the residency was not what the work needs."""
        for attempt in range(1, ATTEMPTS + 1):
            before = self._prepare(method)
            found = self._grouped(method)
            after = self._resident(method)
            found |= {"resident_before": before, "resident_after": after, "attempt": attempt}
            found["residency"] = _judge(method.work, before, after)
            if found["residency"] != "wrong" or "error" in found:
                break
        self.found.setdefault(method.key, []).append(found)

    def rounds(self, chosen: list[Method], rounds: int) -> None:
        started_s = time.monotonic()
        before = max((len(found) for found in self.found.values()), default=0)
        rounds += before
        for number in range(before, rounds):
            for work in ("hot", "first", "cold"):
                turn = [method for method in chosen if method.work == work]
                shift = number * 3 % max(1, len(turn))  # varies which method precedes which
                for method in turn[shift:] + turn[:shift]:
                    self.measure(method)
                    last = self.found[method.key][-1]
                    text = last.get("error") or self.rate(last)
                    spent = f"{time.monotonic() - started_s:4.0f} s"
                    say(f"[{spent}] round {number + 1}/{rounds} {work:5} {method.label}: {text}")

    def _prepare(self, method: Method) -> float | None:
        """Fills or empties the cache of the files; returns what `_resident` does."""
        for path in self.files(method):
            if method.work == "cold":
                residency.evict(path)
            if method.work == "hot":
                fraction = residency.cached_fraction(path)
                if fraction is None or fraction < residency.HOT_FRACTION:
                    residency.warm(path)
        return self._resident(method)

    def _resident(self, method: Method) -> float | None:
        """Returns the cached fraction of the file that is furthest from what the work needs."""
        if method.work == "first":
            return None
        found = [residency.cached_fraction(path) for path in self.files(method)]
        known = [fraction for fraction in found if fraction is not None]
        if len(known) < len(found):
            return None
        return min(known) if method.work == "hot" else max(known)

    def _grouped(self, method: Method) -> dict[str, Any]:
        with ExitStack() as stack:
            group = None
            limit = self.cgroup_bytes if method.work == "cold" else self.hot_cgroup_bytes
            if method.work == "cold" and limit is not None and self.no_cgroup:
                return {"error": f"skipped: {self.no_cgroup}"}
            if limit is not None and not self.no_cgroup:
                group = stack.enter_context(MemoryGroup(limit))
            found = self.run(method, group)
            return found | ({"cgroup_peak": group.peak_bytes()} if group else {})


def _judge(work: str, before: float | None, after: float | None) -> str:
    if work == "first":
        return "not asked"
    if before is None or after is None:
        return "unknown"
    if work == "hot":
        return "ok" if min(before, after) >= residency.HOT_FRACTION else "wrong"
    return "ok" if before < residency.COLD_FRACTION else "wrong"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def options_parser(name: str, about: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--data", help="folder for the data (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="keep the data for the next run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="time limit per plain method")
    parser.add_argument("--quick", action="store_true", help="one short round, a tenth of the data")
    parser.add_argument("--only", default="", help="prefixes of method keys, separated by commas")
    results = Path(__file__).parents[1] / "results"
    parser.add_argument("--out", default=str(results / f"{name}.json"))
    return parser


def choose(methods: list[Method], only: str) -> list[Method]:
    """Returns the methods whose keys begin with one of the prefixes in --only."""
    wanted = tuple(only.split(",")) if only else ("",)
    chosen = [method for method in methods if method.key.startswith(wanted)]
    if not chosen:
        sys.exit(f"--only: no key of a method begins with {only}")
    return chosen


def machine_facts(path: str) -> dict[str, Any]:
    """Describes the machine, and the size of the file's folios after a sequential read."""
    facts: dict[str, Any] = machine.describe(path)
    residency.warm(path)
    facts["folios"] = {
        "mapped_bytes_per_touch": machine.mapped_bytes_per_touch(path),
        "judged": "file evicted, read back in order, then touched in 64 places of a map",
    }
    return facts


_HIDDEN = {"--data": "DIR", "--environments": "DIR", "--out": "DIR"}
_HIDDEN |= dict.fromkeys(("--peers", "--readers", "--shufflers"), "PYTHON")


def command(name: str, argv: list[str]) -> str:
    """Returns the command as it was given, without the folders of this machine."""
    clean = []
    for before, word in zip(["", *argv], argv):
        option, equals, _ = word.partition("=")
        hidden = f"{option}={_HIDDEN[option]}" if equals and option in _HIDDEN else word
        clean.append(_HIDDEN.get(before, hidden))
    return " ".join([f"./dev bench {name}", *clean])


def earlier(out: str, facts: dict[str, Any]) -> report.Rounds:
    """The rounds in a result file, if there is one. Another commit or machine ends the program."""
    if not Path(out).exists():
        return {}
    result = json.loads(Path(out).read_text(encoding="utf-8"))
    for name in ("commit", "cpu", "kernel"):
        if result["facts"].get(name) != facts.get(name):
            sys.exit(f"--more: {out} has another {name}: {result['facts'].get(name)}")
    found: report.Rounds = result["rounds"]
    return found


def write_result(
    out: str,
    facts: dict[str, Any],
    bars: list[dict[str, Any]],
    labels: dict[str, str],
    found: report.Rounds,
) -> None:
    result = {"facts": facts, "bars": bars, "labels": labels, "rounds": found}
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
