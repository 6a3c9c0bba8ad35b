#!/usr/bin/env python3
"""The benchmark `hotpaths`: where the processor time of the hot paths goes.

Methods of the benchmarks `rows` and `tokens` run as they do there, while perf samples their
threads. Samples are summed by what they are spent on, and shown as microseconds per row or per
batch of windows. The other benchmarks have the rates: perf itself costs time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import report
import rounds
import rows
import tokens
import worker
from rounds import Method, say

SCENARIOS: dict[str, Any] = {"rows": rows, "tokens": tokens}
PATHS = {
    "rows": (
        "hot-64-own",
        "hot-256-own",
        "hot-fits",
        "cold-64",
        "cold-256",
        "cold-scan",
    ),
    "tokens": ("hot-windows", "hot-loader-64", "cold-loader-64"),
}
# What a sample is spent on: the first pattern that matches its symbol, in the kernel.
KERNEL = (
    ("copy", re.compile(r"copy_(to|from)_|_copy_to_iter|copy_user|copy_page_to_iter|rep_movs")),
    ("fault", re.compile(r"fault|clear_page|clear_huge|zap_|alloc_(pages|folio)|free_unref|lru_")),
    ("lookup", re.compile(r"filemap|folio|xas_|xa_|page_cache|generic_file_read|ext4_file_read")),
    (
        "disk",
        re.compile(
            r"blk|bio|virtio|virtqueue|vring|nvme|iomap|ext4|dio|dma|sg_|scsi|gup|pin_user|unpin"
            r"|wbt|elv|mq_|submit_|end_io|irq"
        ),
    ),
)
NAMES = {
    "copy": "copying",
    "lookup": "finding cached pages",
    "disk": "submitting requests",
    "fault": "page faults",
    "kernel": "rest of the kernel",
    "lowtide": "Lowtide",
    "python": "Python and NumPy or torch",
}


def kind_of(library: str, symbol: str) -> str:
    """What a sample in this function counts as: a key of NAMES."""
    if library.startswith("["):  # [kernel.kallsyms], or a module of it
        return next((kind for kind, pattern in KERNEL if pattern.search(symbol)), "kernel")
    if library.startswith(("libc.", "ld-musl")) and "mem" in symbol:
        return "copy"
    return "lowtide" if library.startswith("_core") else "python"


def shares(text: str) -> dict[str, float]:
    """Sums the lines "12.34%|_core.so|[.] symbol" that perf prints."""
    found = dict.fromkeys(NAMES, 0.0)
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) >= 3 and parts[0].endswith("%"):
            found[kind_of(parts[1], parts[2].partition("] ")[2])] += float(parts[0][:-1]) / 100
    return found


def sampled(path: str) -> dict[str, float]:
    argv = ["perf", "report", "-i", path, "--stdio", "--no-children", "--percent-limit", "0"]
    argv += ["--sort", "dso,symbol", "-F", "overhead,dso,symbol", "--field-separator", "|"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return shares(done.stdout)


def measure(bench: rounds.Bench, method: Method, folder: str) -> None:
    """Measures once; the result has the microseconds of each kind as `cpu_KIND`."""
    path = os.environ[worker.PERF_FILE] = os.path.join(folder, "samples")
    bench.measure(method)
    found = bench.found[method.key][-1]
    if not report.is_good(found):
        return
    spent_us = (found["user_s"] + found["system_s"]) * 1e6 / found.get("rows", found.get("steps"))
    found["cpu_us"] = spent_us
    for kind, share in sampled(path).items():
        found[f"cpu_{kind}"] = share * spent_us


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [report.median("CPU us", "cpu_us", places=2)]
    columns += [report.median(name, f"cpu_{kind}", places=2) for kind, name in NAMES.items()]
    return report.table(labels, found, "cpu_us", columns)


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("hotpaths", __doc__)
    parser.set_defaults(rounds=3)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--tokens", type=int, default=2_000_000_000)
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.rows, told.tokens, told.seconds = 1, 300_000, 2 * 10**8, 1.0
    if shutil.which("perf") is None:
        sys.exit("hotpaths: perf is not installed (Debian: apt-get install linux-perf)")
    return told


def main(argv: list[str]) -> int:
    told = options(argv)
    labels: dict[str, str] = {}
    found: report.Rounds = {}
    facts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="lowtide-hotpaths-") as folder:
        for name, scenario in SCENARIOS.items():
            wanted = [method for method in scenario.choose(told) if method.key in PATHS[name]]
            if not wanted:
                continue
            with scenario.data(told) as make_bench:
                bench = make_bench()
                facts |= rounds.machine_facts(bench.path)
                for number in range(told.rounds):
                    for method in wanted:
                        measure(bench, method, folder)
                        last = bench.found[method.key][-1]
                        text = last.get("error") or f"{last.get('cpu_us', 0):.2f} us of CPU"
                        say(f"round {number + 1}/{told.rounds} {name}, {method.label}: {text}")
            labels |= {f"{name}-{method.key}": method.label for method in wanted}
            found |= {f"{name}-{key}": all for key, all in bench.found.items()}
    facts["command"] = rounds.command("hotpaths", argv)
    print(_table(labels, found))
    rounds.write_result(told.out, facts, [], labels, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
