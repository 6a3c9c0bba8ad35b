#!/usr/bin/env python3
"""The benchmark `against`: this tree beside another revision or wheel of Lowtide.

    ./dev bench against REV|WHEEL rows|tokens|memmap [options of that benchmark]

REV is built with the compiler and flags of this tree; WHEEL is installed as it is. Every method of
ours runs once for each of the two in every round, and they take turns in going first. A ratio
above 1 means that this tree is faster. Exits with 1 if the median of a ratio is below --least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memmap
import report
import rounds
import rows
import tokens
from rounds import Method, say

SCENARIOS: dict[str, Any] = {"rows": rows, "tokens": tokens, "memmap": memmap}
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Side:
    """One of the two that are compared; its workers import lowtide from `package`, if not empty."""

    name: str
    bench: rounds.Bench
    package: str

    def measure(self, method: Method) -> dict[str, Any]:
        with_package(self.package)
        self.bench.measure(method)
        return self.bench.found[method.key][-1]


def with_package(package: str) -> None:
    """What this process starts from now on imports lowtide from `package`, or as installed."""
    os.environ.pop("PYTHONPATH", None)
    if package:
        os.environ["PYTHONPATH"] = package


def imported_from(package: str) -> str:
    """The folder from which a worker imports lowtide."""
    with_package(package)
    program = "import lowtide; print(lowtide.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd="/", check=True, capture_output=True, text=True
    )
    return str(Path(found.stdout.strip()).parent)


def install(other: str, folder: str) -> str:
    """Installs a wheel, or a revision of this repository, into folder/package; returns its name."""
    name, source = Path(other).name, other
    if not other.endswith(".whl"):
        name = (
            _git(other, "rev-parse", "--short", "--verify", f"{other}^{{commit}}").decode().strip()
        )
        source = os.path.join(folder, "tree")
        os.mkdir(source)
        subprocess.run(["tar", "-x", "-C", source], input=_git(other, "archive", name), check=True)
        say(f"building {name} ...")
    elif not os.path.isfile(other):
        sys.exit(f"against: {other}: no such wheel")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--quiet"]
    pip += ["--config-settings=cmake.define.LOWTIDE_COMMAND=false"]
    pip += ["--target", os.path.join(folder, "package"), source]
    if subprocess.run(pip, env=os.environ | {"CXX": os.environ.get("CXX", "c++")}).returncode:
        sys.exit(f"against: {other} could not be installed")
    return name


def _git(revision: str, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    except FileNotFoundError:
        sys.exit(f"against: revision {revision}: git is not installed")
    if done.returncode:
        sys.exit(f"against: revision {revision}: {done.stderr.decode().strip()}")
    return done.stdout


def figure(found: dict[str, Any]) -> float:
    """What is compared, so that more is better: a rate, or the inverse of a wait."""
    for name in ("wait_s", "resume_s"):
        if name in found:
            return 1 / float(found[name])
    return float(found["windows_per_s"] if "windows_per_s" in found else found["rows_per_s"])


def cpu(found: dict[str, Any]) -> float:
    """CPU seconds per unit of work; whoever reads for a fixed time reads a different amount."""
    work = found["steps"] if "steps" in found else found["rows"]
    return float((found["user_s"] + found["system_s"]) / work)


def compare(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Median and spread of the ratios of the rounds in which both were measured well."""
    both = [(a, b) for a, b in zip(ours, theirs) if report.is_good(a) and report.is_good(b)]
    if not both:
        return None
    ratios = [figure(a) / figure(b) for a, b in both]
    cpu_ratios = [cpu(a) / cpu(b) for a, b in both if cpu(b)]  # the clock ticks every 10 ms
    return {
        "ratio": statistics.median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "cpu_ratio": statistics.median(cpu_ratios) if cpu_ratios else None,
        "rounds": len(ratios),
    }


def take_turns(sides: tuple[Side, Side], chosen: list[Method], count: int) -> None:
    for number in range(count):
        for method in chosen:
            for side in sides if number % 2 == 0 else sides[::-1]:
                found = side.measure(method)
                text = found.get("error") or side.bench.rate(found)
                turn = f"round {number + 1}/{count} {method.work:5}"
                say(f"{turn} {method.label}, {side.name}: {text}")


def _middle(side: Side, key: str) -> str:
    """The round in the middle, in the words of its bench."""
    good = [one for one in side.bench.found[key] if report.is_good(one)]
    if not good:
        return str(side.bench.found[key][0].get("error", "residency was wrong"))[:60]
    return side.bench.rate(sorted(good, key=figure)[len(good) // 2])


def table(sides: tuple[Side, Side], chosen: list[Method], least: float) -> tuple[str, list[str]]:
    """The table of ratios, and the keys whose ratio is below `least`."""
    lines = [
        ["work", "method", *(side.name for side in sides), "ratio", "spread", "CPU", "verdict"]
    ]
    slower = []
    for method in chosen:
        ours, theirs = sides
        found = compare(ours.bench.found[method.key], theirs.bench.found[method.key])
        cells = [method.work, method.label, *(_middle(side, method.key) for side in sides)]
        if found is None:
            lines.append([*cells, "unknown", "", "", "not measured"])
            continue
        below = found["ratio"] < least
        slower += [method.key] if below else []
        spread = f"{found['least']:.2f}..{found['most']:.2f}"
        verdict = f"below {least:g}" if below else "PASS"
        spent = "unknown" if found["cpu_ratio"] is None else f"{found['cpu_ratio']:.2f} x"
        lines.append([*cells, f"{found['ratio']:.2f} x", spread, spent, verdict])
    return "\n" + report.aligned(lines, 4), slower


def _options(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="against", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", metavar="REV|WHEEL")
    parser.add_argument("name", choices=sorted(SCENARIOS))
    parser.add_argument("--least", type=float, default=0.97, help="ratio below which we are slower")
    return parser.parse_known_args(argv)


def main(argv: list[str]) -> int:
    mine, rest = _options(argv)
    scenario = SCENARIOS[mine.name]
    told = scenario.options(rest, f"against-{mine.name}")
    chosen = [method for method in scenario.choose(told) if method.ours]
    chosen.sort(key=lambda method: ("hot", "first", "cold").index(method.work))
    if not chosen:
        sys.exit(f"against: no method of lowtide begins with {told.only}")
    with tempfile.TemporaryDirectory(prefix="lowtide-against-") as folder:
        name = install(mine.other, folder)
        package = os.path.join(folder, "package")
        if imported_from(package) == imported_from(""):
            sys.exit(f"against: {mine.other} is not what a worker imports")
        with scenario.data(told) as make_bench:
            sides = (Side("this tree", make_bench(), ""), Side(name, make_bench(), package))
            facts = rounds.machine_facts(sides[0].bench.path)
            take_turns(sides, chosen, told.rounds)
    text, slower = table(sides, chosen, mine.least)
    print(text)
    words = [name if word == mine.other else word for word in argv]
    facts |= {"command": rounds.command("against", words), "against": name, "least": mine.least}
    labels = {method.key: method.label for method in chosen}
    found = {side.name: side.bench.found for side in sides}
    ratios = [
        {"key": key, **(compare(*(one[key] for one in found.values())) or {})} for key in labels
    ]
    rounds.write_result(told.out, facts, ratios, labels, found)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
