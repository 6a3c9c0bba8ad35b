#!/usr/bin/env python3
"""The benchmark `columns`: 3,000,000 x 162 float32 with 3,000,000 int64 labels, in batches of 256.

Every measurement is a separate process, sampled from outside. The methods alternate, round by
round: hot (the files are in the page cache) and cold (they are not, and a cgroup of 800 MiB leaves
no room for them). Documents of 10 to 4,000 tokens are compared with windows of their mean length.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from importlib.metadata import version
from typing import Any

import columns_data
import columns_worker
import matrix
import report
import rounds
import worker
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

BATCH = 256
MEMORY_MIB = 256
CGROUP_BYTES = 800 * MIB
SAMPLE_S = 0.005
ROWS_PER_DOCUMENT = 10  # of the matrix, so that both files grow together
OURS_S = 20.0  # time limit of a loader
TOKENS = ("lowtide-documents", "lowtide-windows")
RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("columns, hot", "hot-columns", "hot-alone", 0.9),
    ("columns, cold", "cold-columns", "cold-alone", 0.9),
    ("columns, hot", "hot-columns", "hot-dataloader", 10.0),
    ("columns, cold", "cold-columns", "cold-dataloader", 50.0),
    ("__getitem__, hot", "hot-item", "hot-item-memmap", 0.5),
    ("lt.torch.Dataset, hot", "hot-dataset", "hot-item-memmap", 5.0),
    ("weights, hot", "hot-weighted", "hot-uniform", 0.9),
    ("weights, cold", "cold-weighted", "cold-uniform", 0.9),
    ("documents, cold", "cold-documents", "cold-windows", 0.8),
)
BOUNDED_READERS = ("alone", "columns", "documents", "uniform", "weighted", "windows")


def methods(seconds: float, quarter_bytes: int) -> list[Method]:
    """Returns all methods. `quarter_bytes`: a quarter of the files, the budget of `memory`."""
    labels = {
        "dataloader": "DataLoader, 2 workers, two np.memmaps",
        "item-memmap": "__getitem__ over two np.memmaps",
        "lowtide-item": "lowtide: __getitem__ over two Arrays",
        "lowtide-dataset": "lowtide: Dataset((x, y))",
        "lowtide-columns": "lowtide: Loader((x, y))",
        "lowtide-alone": "lowtide: Loader(x)",
        "lowtide-uniform": 'lowtide: Loader((x, y), order="random")',
        "lowtide-weighted": "lowtide: Loader((x, y), weights=w)",
        "lowtide-documents": "lowtide: Loader(documents)",
        "lowtide-windows": f"lowtide: Loader(tokens, block_size={columns_data.MEAN_TOKENS})",
    }
    found = []
    for work in ("hot", "cold"):
        for reader, label in labels.items():
            if reader in TOKENS and work == "hot":
                continue
            told: dict[str, Any] = {"seconds": seconds}
            if reader.startswith("lowtide-"):
                told["cache"] = "drop" if work == "cold" else "keep"
                if reader not in ("lowtide-item", "lowtide-dataset"):
                    told |= {"seconds": OURS_S, "epochs": 2 if work == "hot" else 1}
            key = f"{work}-{reader.removeprefix('lowtide-')}"
            found.append(Method(key, label, work, reader, told))
    two = {"memory": str(quarter_bytes), "epochs": 2, "seconds": 10 * OURS_S, "cache": "keep"}
    label = "lowtide: Loader((x, y)), a quarter of the file, 2 epochs"
    found.append(Method("hot-quarter", label, "hot", "lowtide-columns", two))
    return found


class Bench(rounds.Bench):
    """Reads the files by every method."""

    def __init__(self, path: str, labels: str, tokens: str, told: argparse.Namespace) -> None:
        super().__init__(path, CGROUP_BYTES)
        self._labels = labels
        self._tokens = tokens
        self._rows = told.rows
        self._documents = told.documents

    def files(self, method: Method) -> list[str]:
        return [self._tokens] if method.reader in TOKENS else [self.path, self._labels]

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        task = columns_worker.Task(
            reader=method.reader,
            path=self.path,
            labels=self._labels,
            tokens=self._tokens,
            rows=self._rows,
            documents=self._documents,
            batch_size=BATCH,
            **{"memory": f"{MEMORY_MIB}MiB", **method.options},
        )
        outcome = worker.run(task, group, SAMPLE_S, program=columns_worker.__file__)
        if outcome.reason:
            reason = outcome.reason
            for path in (self.path, self._labels, self._tokens):
                reason = reason.replace(path, "FILE")
            return {"error": reason}
        found = outcome.found
        found.pop("after")
        found["growth"] = outcome.growth("anon", "file")
        found["samples_per_s"] = found["samples"] / found["seconds"]
        found["bytes_per_s"] = found["first_column_bytes"] / found["seconds"]
        # Samples have the same size in all methods but those that are compared by their bytes.
        found["speed"] = found["bytes_per_s" if method.reader in TOKENS else "samples_per_s"]
        return found

    def rate(self, found: dict[str, Any]) -> str:
        return f"{found['samples_per_s']:,.0f} samples/s, {found['growth'] / MIB:,.0f} MiB grown"


def _bars(found: report.Rounds, quarter_bytes: int) -> list[dict[str, Any]]:
    bars = [report.ratio_bar(found, bar, "speed") for bar in RATIO_BARS]
    bounded = [key for key in found if key.partition("-")[2] in BOUNDED_READERS]
    limits = {key: f"{MEMORY_MIB + 16} MiB" for key in bounded}
    limits["hot-quarter"] = f"{quarter_bytes // MIB + 16} MiB"
    for key, limit in limits.items():
        bars.append(report.limit_bar(found, f"memory, {key}", key, "growth", limit, max))
    return bars


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("ksample/s", "samples_per_s", 1e-3, places=1),
        report.spread("spread", "samples_per_s", 1e-3),
        report.median("MB/s", "bytes_per_s", 1e-6),
        report.peak_mib("peak grown MiB", "growth"),
        report.percent("in cache after", "resident_after"),
        report.against(RATIO_BARS, "speed"),
    ]
    return report.table(labels, found, "speed", columns)


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("columns", __doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.rows, told.seconds = 1, told.rows // 10, 1.0
    if told.rounds < 1 or told.rows < ROWS_PER_DOCUMENT * BATCH:
        parser.error(f"--rounds must be at least 1, and --rows {ROWS_PER_DOCUMENT * BATCH}")
    told.documents = told.rows // ROWS_PER_DOCUMENT
    return told


def main(argv: list[str]) -> int:
    told = options(argv)
    file_bytes = told.rows * (matrix.ROW_BYTES + 8)
    quarter_bytes = max(MIB, file_bytes // 4)
    chosen = rounds.choose(methods(told.seconds, quarter_bytes), told.only)
    say(f"preparing columns of {file_bytes / MIB:,.0f} MiB and documents ...")
    with ExitStack() as stack:
        path = stack.enter_context(matrix.kept_or_removed(told.data, told.rows, told.keep))
        labels = stack.enter_context(columns_data.labels(told.data, told.rows, told.keep))
        tokens = stack.enter_context(columns_data.tokens(told.data, told.documents, told.keep))
        bench = Bench(path, labels, tokens, told)
        facts = rounds.machine_facts(path)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("columns", argv), "torch": version("torch")}
    facts |= {"rows": told.rows, "columns": matrix.COLUMNS, "documents": told.documents}
    facts |= {"batch_size": BATCH, "memory_bytes": MEMORY_MIB * MIB}
    facts |= {"cgroup_bytes": None if bench.no_cgroup else CGROUP_BYTES}
    named = {method.key: method.label for method in chosen}
    bars = _bars(bench.found, quarter_bytes)
    print(_table(named, bench.found))
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, named, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
