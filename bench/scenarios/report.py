"""Turns rounds into medians, ratios and the bars that the project must reach."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

Rounds = dict[str, list[dict[str, Any]]]
Column = tuple[str, Callable[[Rounds, str], str]]  # its head, and its cell for a key
RatioBar = tuple[str, str, str, float]  # work, key, key to compare with, least ratio of speeds
MIB = 1 << 20
_SCALES = {
    "s": 1.0,
    "ms": 1e3,
    "us": 1e6,
    "MiB": 1 / MIB,
}  # by the unit in which a limit is written


def good(rounds: Rounds, key: str, name: str) -> list[float]:
    """Returns the values of one field over the rounds that ran with the right residency."""
    return [one[name] for one in rounds.get(key, []) if is_good(one) and one.get(name) is not None]


def is_good(one: dict[str, Any]) -> bool:
    """Whether a measurement ran with the right residency."""
    return "error" not in one and one["residency"] != "wrong"


def _pairs(rounds: Rounds, ours: str, theirs: str, name: str) -> list[float]:
    """Returns the ratio in each round in which both measurements are valid and have the field."""
    ratios = []
    for a, b in zip(rounds.get(ours, []), rounds.get(theirs, []), strict=False):
        if is_good(a) and is_good(b) and name in a and name in b:
            ratios.append(a[name] / b[name])
    return ratios


def ratio_bar(rounds: Rounds, bar: RatioBar, name: str) -> dict[str, Any]:
    """A bar on the ratio of two medians of a field; "not measured" if one is missing."""
    work, ours, theirs, least = bar
    mine, other = good(rounds, ours, name), good(rounds, theirs, name)
    ratio = statistics.median(mine) / statistics.median(other) if mine and other else None
    reached = ratio is not None and ratio >= least
    return _bar(
        work, f">= {least:g} x {theirs}", ratio, _pairs(rounds, ours, theirs, name), reached
    )


def limit_bar(
    rounds: Rounds,
    work: str,
    key: str,
    name: str,
    limit: str,
    pick: Callable[[list[float]], float] = statistics.median,
) -> dict[str, Any]:
    """A bar on a field: `pick` of all rounds must stay below a limit such as "20 ms"."""
    values = good(rounds, key, name)
    found = pick(values) if values else None
    number, unit = limit.split()
    reached = found is not None and found < float(number) / _SCALES[unit]
    return _bar(work, f"< {limit}", found, values, reached)


def told_bar(rounds: Rounds, work: str, key: str, name: str, unit: str) -> dict[str, Any]:
    """Lists the median of a field among the bars, without a limit."""
    values = good(rounds, key, name)
    bar = _bar(work, f"reported, in {unit}", statistics.median(values or [0.0]), values, True)
    return bar | ({"verdict": "told"} if values else {"reached": None, "verdict": "not measured"})


def _bar(
    work: str, text: str, found: float | None, values: list[float], reached: bool
) -> dict[str, Any]:
    return {
        "work": work,
        "bar": text,
        "reached": found,
        "least": min(values) if values else None,
        "most": max(values) if values else None,
        "verdict": "not measured" if found is None else "PASS" if reached else "below",
    }


def bars_table(found: list[dict[str, Any]]) -> str:
    lines = [["work", "bar", "reached", "spread", "verdict"]]
    for bar in found:
        unit = bar["bar"].split()[-1]
        scale, unit = (_SCALES[unit], f" {unit}") if unit in _SCALES else (1, " x")
        if bar["reached"] is None:
            lines.append([bar["work"], bar["bar"], "unknown", "", bar["verdict"]])
            continue
        reached = f"{bar['reached'] * scale:.2f}{unit}"
        spread = ""  # of two methods whose valid rounds are not the same
        if bar["least"] is not None:
            spread = f"{bar['least'] * scale:.2f}..{bar['most'] * scale:.2f}"
        lines.append([bar["work"], bar["bar"], reached, spread, bar["verdict"]])
    return "\n" + aligned(lines, 2)


def table(labels: dict[str, str], rounds: Rounds, name: str, columns: list[Column]) -> str:
    """Returns one line per method: its cells, or why it has no `name`."""
    lines = [["work", "method", *(head for head, _ in columns)]]
    for key, label in labels.items():
        work = key.partition("-")[0]
        wrong = sum(1 for one in rounds.get(key, []) if one.get("residency") == "wrong")
        if not good(rounds, key, name):
            reasons = [one.get("error", "residency was wrong") for one in rounds.get(key, [])]
            reason = (reasons or ["not run"])[0][:60]
            lines.append([work, f"{label}: {reason}", *[""] * len(columns)])
            continue
        label += f" ({wrong} rounds left out)" if wrong else ""
        lines.append([work, label, *(cell(rounds, key) for _, cell in columns)])
    return "\n" + aligned(lines, 2)


def aligned(lines: list[list[str]], left: int) -> str:
    """Formats lines as a table: aligns the first `left` columns left, the others right."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    out = []
    for line in lines:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.append("  ".join(cells).rstrip())
    out.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(out)


def median(head: str, name: str, scale: float = 1.0, places: int = 1) -> Column:
    """A column with the median of a field; empty if no round has it."""

    def cell(rounds: Rounds, key: str) -> str:
        values = good(rounds, key, name)
        return f"{statistics.median(values) * scale:,.{places}f}" if values else ""

    return head, cell


def spread(head: str, name: str, scale: float = 1.0, places: int = 1) -> Column:
    """A column with the smallest and the largest value of a field."""

    def cell(rounds: Rounds, key: str) -> str:
        values = [value * scale for value in good(rounds, key, name)]
        return f"{min(values):,.{places}f}..{max(values):,.{places}f}" if values else ""

    return head, cell


def peak_mib(head: str, name: str) -> Column:
    """A column with the largest number of bytes over all rounds."""

    def cell(rounds: Rounds, key: str) -> str:
        values = good(rounds, key, name)
        return f"{max(values) / MIB:,.0f}" if values else "unknown"

    return head, cell


def percent(head: str, name: str) -> Column:
    def cell(rounds: Rounds, key: str) -> str:
        values = good(rounds, key, name)
        return f"{statistics.median(values):.1%}" if values else "unknown"

    return head, cell


def against(bars: tuple[RatioBar, ...], name: str) -> Column:
    """A column with the ratio to each method that a bar compares with this one."""

    def cell(rounds: Rounds, key: str) -> str:
        parts = []
        for _, ours, theirs, _ in bars:
            pairs = _pairs(rounds, ours, theirs, name) if ours == key else []
            parts += [f"{statistics.median(pairs):.2f}x {theirs}"] if pairs else []
        return ", ".join(parts)

    return "against", cell
