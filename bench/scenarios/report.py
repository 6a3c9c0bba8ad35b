"""From rounds to medians, ratios and the bars that the project has set itself."""

from __future__ import annotations

import statistics
from typing import Any

Rounds = dict[str, list[dict[str, Any]]]
MIB = 1 << 20

# work, what is measured, against what, at least how many times as fast
RATIO_BARS = (
    ("hot, 64MiB", "hot-64", "hot-preadv", 3.0),
    ("hot, 64MiB", "hot-64", "hot-mapped", 0.5),
    ("hot, memory >= file", "hot-fits", "hot-mapped", 1.5),
    ("cold, 64MiB", "cold-64", "cold-fio", 1.0),
    ("cold, 64MiB", "cold-64", "cold-willneed", 1.5),
    ("cold, 256MiB", "cold-256", "cold-fio", 2.0),
    ("in order, hot", "hot-scan", "hot-fromfile", 1.0),
    ("in order, cold", "cold-scan", "cold-readinto", 1.0),
)
FIRST_BATCH_S = 0.020
FIRST_BATCH_KEYS = ("hot-64", "hot-64-own", "hot-256", "hot-scan", "first-big")


def good(rounds: Rounds, key: str, name: str) -> list[float]:
    """Values of one field over the rounds that ran and whose residency was not wrong."""
    return [
        one[name]
        for one in rounds.get(key, [])
        if "error" not in one and one["residency"] != "wrong" and one.get(name) is not None
    ]


def _pairs(rounds: Rounds, ours: str, theirs: str) -> list[float]:
    """The ratio within each round in which both were measured well."""
    ratios = []
    for a, b in zip(rounds.get(ours, []), rounds.get(theirs, []), strict=False):
        if all("error" not in one and one["residency"] != "wrong" for one in (a, b)):
            ratios.append(a["rows_per_s"] / b["rows_per_s"])
    return ratios


def bars(rounds: Rounds) -> list[dict[str, Any]]:
    """Every bar with what was reached; None and "not measured" where a side is missing."""
    found = []
    for work, ours, theirs, least in RATIO_BARS:
        mine, other = good(rounds, ours, "rows_per_s"), good(rounds, theirs, "rows_per_s")
        ratio = statistics.median(mine) / statistics.median(other) if mine and other else None
        pairs = _pairs(rounds, ours, theirs)
        found.append(
            {
                "work": work,
                "bar": f">= {least:g} x {theirs}",
                "reached": ratio,
                "least": min(pairs) if pairs else None,
                "most": max(pairs) if pairs else None,
                "verdict": _verdict(ratio is not None, ratio is not None and ratio >= least),
            }
        )
    for key in FIRST_BATCH_KEYS:
        times = good(rounds, key, "first_batch_s")
        middle = statistics.median(times) if times else None
        found.append(
            {
                "work": f"open + first batch, {key}",
                "bar": f"< {FIRST_BATCH_S * 1000:g} ms",
                "reached": middle,
                "least": min(times) if times else None,
                "most": max(times) if times else None,
                "verdict": _verdict(bool(times), middle is not None and middle < FIRST_BATCH_S),
            }
        )
    return found


def _verdict(measured: bool, reached: bool) -> str:
    return "not measured" if not measured else "PASS" if reached else "below"


def _columns(lines: list[list[str]], left: int) -> str:
    """Lines as a table: the first `left` columns to the left, the others to the right."""
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


def _mib(values: list[float]) -> str:
    return f"{max(values) / MIB:,.0f}" if values else "unknown"


def _percent(values: list[float]) -> str:
    return f"{statistics.median(values):.1%}" if values else "unknown"


def _against(rounds: Rounds, key: str) -> str:
    """The ratio to each method that a bar compares this one with."""
    parts = []
    for bar in RATIO_BARS:
        if bar[1] == key:
            pairs = _pairs(rounds, key, bar[2])
            parts.append(f"{statistics.median(pairs):.2f}x {bar[2]}" if pairs else "")
    return ", ".join(part for part in parts if part)


def table(labels: dict[str, str], rounds: Rounds) -> str:
    head = ["work", "method", "krow/s", "spread", "us CPU/row"]
    head += ["anon MiB", "file MiB", "in cache before", "after", "against"]
    lines = [head]
    for key, label in labels.items():
        work = key.partition("-")[0]
        rates = [rate / 1000 for rate in good(rounds, key, "rows_per_s")]
        wrong = sum(1 for one in rounds.get(key, []) if one.get("residency") == "wrong")
        if not rates:
            reasons = [one.get("error", "residency was wrong") for one in rounds.get(key, [])]
            lines.append([work, f"{label}: {(reasons or ['not run'])[0][:60]}", *[""] * 8])
            continue
        lines.append(
            [
                work,
                label + (f" ({wrong} rounds left out)" if wrong else ""),
                f"{statistics.median(rates):,.1f}",
                f"{min(rates):,.1f}..{max(rates):,.1f}",
                f"{statistics.median(good(rounds, key, 'cpu_us_a_row')):,.2f}",
                _mib(good(rounds, key, "anon_growth")),
                _mib(good(rounds, key, "file_growth")),
                _percent(good(rounds, key, "resident_before")),
                _percent(good(rounds, key, "resident_after")),
                _against(rounds, key),
            ]
        )
    return "\n" + _columns(lines, 2)


def bars_table(found: list[dict[str, Any]]) -> str:
    lines = [["work", "bar", "reached", "spread", "verdict"]]
    for bar in found:
        scale, unit = (1000, " ms") if "ms" in bar["bar"] else (1, " x")
        if bar["reached"] is None:
            lines.append([bar["work"], bar["bar"], "unknown", "", bar["verdict"]])
            continue
        low, middle, high = (bar[name] * scale for name in ("least", "reached", "most"))
        spread = f"{low:.2f}..{high:.2f}"
        lines.append([bar["work"], bar["bar"], f"{middle:.2f}{unit}", spread, bar["verdict"]])
    return "\n" + _columns(lines, 2)
