"""Tables and bars of bench/results/peers.json, whose keys are scenario-work-adapter.

Those of DLIO are dlio-work-load-reader: each of its loads is compared by itself.
"""

from __future__ import annotations

import statistics
from typing import Any

import report
from report import MIB

SCENARIOS = ("rows", "tokens", "scan", "resume", "startup", "dlio")


def of_scenario(result: dict[str, Any], scenario: str) -> tuple[dict[str, str], report.Rounds]:
    """Labels and rounds of one scenario, under keys such as "hot-memmap"."""
    start = f"{scenario}-"
    labels = {
        key.removeprefix(start): label
        for key, label in result["labels"].items()
        if key.startswith(start)
    }
    return labels, {key: result["rounds"][start + key] for key in labels}


def table(result: dict[str, Any], scenario: str) -> str:
    """One line per peer of a scenario."""
    labels, found = of_scenario(result, scenario)
    speed = [
        report.median("k samples/s", "rate", 1e-3),
        report.spread("spread", "rate", 1e-3),
        report.median("first batch ms", "first_batch_s", 1e3),
        report.median("us CPU/sample", "cpu_us_per_sample", places=2),
    ]
    if scenario in ("resume", "startup"):
        speed = [
            report.median("first batch ms", "first_batch_s", 1e3),
            report.spread("spread", "first_batch_s", 1e3),
            report.median("s CPU", "cpu_s", places=2),
        ]
    if scenario == "dlio":
        columns = [
            report.median("samples/s", "rate"),
            report.spread("spread", "rate"),
            report.percent("accelerator used", "utilisation"),
            report.percent("in cache before", "resident_before"),
        ]
        return report.table(labels, found, "rate", columns)
    columns = [
        *speed,
        report.peak_mib("anon MiB", "group_anon"),
        report.peak_mib("mapped MiB", "group_file"),
        report.peak_mib("page cache MiB", "group_cache"),
        report.median("read from disk MiB", "disk_read", 1 / MIB, places=0),
        report.percent("in cache before", "resident_before"),
    ]
    return report.table(labels, found, "rate", columns)


def bars(result: dict[str, Any], ours: set[str]) -> list[dict[str, Any]]:
    """Per scenario, hot and cold: our best rate against that of the best peer; fio is no peer."""
    found = []
    for scenario in SCENARIOS:
        labels, measured = of_scenario(result, scenario)
        for work in dict.fromkeys(key.rpartition("-")[0] for key in labels):
            rates = {
                key: statistics.median(values)
                for key in labels
                if key.rpartition("-")[0] == work and (values := report.good(measured, key, "rate"))
            }
            mine = [key for key in rates if key.rpartition("-")[2] in ours]
            theirs = [key for key in rates if key not in mine and not key.endswith("-fio")]
            if mine and theirs:
                best, peer = max(mine, key=rates.__getitem__), max(theirs, key=rates.__getitem__)
                bar = (f"{scenario}, {work.replace('-', ', ')}", best, peer, 1.0)
                found.append(report.ratio_bar(measured, bar, "rate"))
    return found
