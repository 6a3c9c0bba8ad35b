"""The table of the benchmark `tokens` and its bars."""

from __future__ import annotations

from typing import Any

import report
from report import Rounds
from rounds import Method

RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("hot, windows(t, ix, T)", "hot-windows", "hot-preadv", 1.5),
    ("hot, windows(t, ix, T)", "hot-windows", "hot-getbatch", 10.0),
    ("hot, windows(t, ix, T)", "hot-windows", "hot-floor", 0.77),
    ("hot, Loader, 64MiB", "hot-loader-64", "hot-floor", 0.77),
    ("cold, Loader, 256MiB", "cold-loader", "cold-fio", 0.9),
    ("cold, Loader, 256MiB", "cold-loader", "cold-willneed", 2.0),
    ("cold, Loader, 64MiB", "cold-loader-64", "cold-fio", 0.9),
    ("cold, Loader, 64MiB", "cold-loader-64", "cold-willneed", 2.0),
)
_OVER_BUDGET_MIB = 16


def table(labels: dict[str, str], rounds: Rounds) -> str:
    columns = [
        report.median("us/batch", "us_a_batch"),
        report.spread("spread", "us_a_batch"),
        report.median("kwindow/s", "windows_per_s", 1e-3),
        report.median("wait us", "wait_s", 1e6),
        report.median("p99", "wait_p99_s", 1e6),
        report.median("first ms", "first_batch_s", 1e3, 2),
        report.median("CPU s/1e9 tokens", "cpu_s_a_billion", places=2),
        report.peak_mib("grown MiB", "growth"),
        report.peak_mib("file cached MiB", "cached"),
        report.percent("in cache before", "resident_before"),
        report.percent("after", "resident_after"),
        report.against(RATIO_BARS, "windows_per_s"),
    ]
    return report.table(labels, rounds, "us_a_batch", columns)


def bars(rounds: Rounds, chosen: list[Method]) -> list[dict[str, Any]]:
    found = [report.ratio_bar(rounds, bar, "windows_per_s") for bar in RATIO_BARS]
    for key in ("busy-loader", "busy-loader-64"):
        work = f"wait per step in quiet rounds, {key}"
        found.append(report.limit_bar(_quiet(rounds), work, key, "wait_s", "5 us"))
    for key in ("resume-1e9", "resume-1e12"):
        found.append(report.limit_bar(rounds, f"first batch, {key}", key, "resume_s", "20 ms"))
        found.append(report.told_bar(rounds, f"open, {key}", key, "open_s", "ms"))
    return found + _memory_bars(rounds, chosen) + _processor_bars(rounds)


def _quiet(rounds: Rounds) -> Rounds:
    """The rounds in which a fixed piece of work took at most a tenth longer than at its best."""
    works = [one["work_s"] for found in rounds.values() for one in found if "work_s" in one]
    longest_s = 1.1 * min(works, default=0.0)
    return {
        key: [one for one in found if one.get("work_s", longest_s) <= longest_s]
        for key, found in rounds.items()
    }


def _memory_bars(rounds: Rounds, chosen: list[Method]) -> list[dict[str, Any]]:
    """The maximum of all rounds counts: a budget must hold in every round."""
    found = []
    for method in chosen:
        if not method.ours:
            continue
        budget_mib = int(method.options.get("memory", "256MiB").removesuffix("MiB"))
        limit = f"{budget_mib + _OVER_BUDGET_MIB} MiB"
        key = method.key
        found.append(report.limit_bar(rounds, f"memory grown, {key}", key, "growth", limit, max))
        if method.options.get("cache") == "drop":
            work = f"file in page cache, {key}"
            found.append(report.limit_bar(rounds, work, key, "cached", limit, max))
    return found


def _processor_bars(rounds: Rounds) -> list[dict[str, Any]]:
    """CPU seconds per billion tokens, ours and nanoGPT's."""
    work, name = "CPU s per 1e9 tokens, ", "cpu_s_a_billion"
    keys = ("hot-getbatch", "hot-windows", "hot-loader", "cold-getbatch", "cold-loader")
    return [report.told_bar(rounds, work + key, key, name, "s") for key in keys]
