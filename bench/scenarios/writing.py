#!/usr/bin/env python3
"""The benchmark `writing`: files that Lowtide writes, against NumPy, megatron-core and shufflers.

Rows of 648 bytes are created, appended and scattered; documents become Megatron files; a matrix is
shuffled, and a smaller one by others too. Every measurement is a separate process and ends when the
file is durable, except for megatron-core's builder as it is. The methods alternate, round by round.
Each process is in a memory group of its own without a limit that matters, whose peak includes the
page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import machine
import matrix
import numpy as np
import peers_setup
import report
import residency
import rounds
import scratch
import worker
import writing_peers
import writing_worker
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

CGROUP_BYTES = 1 << 40
SAMPLE_S = 0.005
MEMORY_MIB = 64
SHUFFLE_MIB = 256
SCATTER_MIB = 256
SHUFFLED_TIMES = 4  # as many bytes as are created: 4 GiB
RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("create", "create-lowtide", "create-memmap", 1.0),
    ("append", "append-lowtide", "append-tofile", 1.0),
    ("scatter, a sixth of the memory", "scatter-lowtide", "scatter-memmap", 0.25),
    ("tokens", "tokens-lowtide", "tokens-megatron", 5.0),
    ("tokens, durable", "tokens-lowtide", "tokens-megatron-durable", 5.0),
    ("shuffle", "shuffle-lowtide", "shuffle-quarter", 0.8),
    ("shuffle, datasets", "peers-lowtide", "peers-datasets", 1.0),
    ("shuffle, Ray", "peers-lowtide", "peers-ray", 1.0),
    ("shuffle, Dask", "peers-lowtide", "peers-dask", 1.0),
    ("shuffle, terashuf", "peers-lowtide", "peers-terashuf", 1.0),
)


def methods() -> list[Method]:
    """Returns all methods; the first word of a key says what is written."""
    small, scattered, shuffled = (
        {"memory": f"{mib}MiB"} for mib in (MEMORY_MIB, SCATTER_MIB, SHUFFLE_MIB)
    )
    rows = [
        ("create-lowtide", "lowtide: w[i:j] = rows, 64 MiB", "lowtide-create", small),
        ("create-memmap", "np.memmap w+, flush", "memmap", {}),
        ("append-lowtide", "lowtide: w.append(rows), 64 MiB", "lowtide-append", small),
        ("append-tofile", "tofile, fsync", "tofile", {}),
        ("scatter-lowtide", "lowtide: w[index] = rows, 256 MiB", "lowtide-scatter", scattered),
        ("scatter-memmap", "np.memmap w+, flush", "memmap-scatter", {}),
        ("tokens-lowtide", "lowtide: TokenWriter, arrays", "lowtide-tokens", small),
        ("tokens-megatron", "megatron-core, tensors, not durable", "megatron", {}),
        ("tokens-megatron-durable", "megatron-core, tensors, fsync", "megatron-durable", {}),
        ("lists-lowtide", "lowtide: TokenWriter, lists", "lowtide-lists", small),
        ("lists-megatron", "megatron-core, lists, fsync", "megatron-lists", {}),
        ("shuffle-lowtide", "lowtide: lt.shuffle, 256 MiB", "lowtide-shuffle", shuffled),
        ("shuffle-quarter", "sequential bandwidth / 4", "copy", {}),
        ("peers-lowtide", "lowtide: lt.shuffle of 1 GiB, 256 MiB", "lowtide-shuffle", shuffled),
        ("peers-datasets", "datasets: shuffle().flatten_indices()", "datasets", {}),
        ("peers-ray", "Ray: random_shuffle, store of 256 MiB", "ray", {}),
        ("peers-dask", "Dask: shuffle, 2 workers of 2 GiB", "dask", {}),
        ("peers-terashuf", "terashuf, lines of base64, 256 MB", "terashuf", {}),
    ]
    return [Method(key, label, "first", reader, told) for key, label, reader, told in rows]


class Bench(rounds.Bench):
    """Writes by every method into one folder, which is emptied after each."""

    def __init__(self, folder: str, sources: dict[str, str], told: argparse.Namespace) -> None:
        super().__init__(folder, CGROUP_BYTES)
        self._sources = sources  # by the first word of a key
        self._told = told

    def _python(self, method: Method) -> str:
        if method.reader in writing_peers.PEERS:
            return self._told.shufflers
        return self._told.readers if method.reader.startswith("megatron") else sys.executable

    def _task(self, method: Method, folder: str, group: str) -> writing_worker.Task:
        kind = method.key.partition("-")[0]
        return writing_worker.Task(
            reader=method.reader,
            path=os.path.join(folder, "out.bin" if kind in ("tokens", "lists") else "out.npy"),
            source=self._sources.get(kind, ""),
            rows=self._told.rows * (SHUFFLED_TIMES if kind == "shuffle" else 1),
            documents=self._told.documents,
            group=group,
            **{"memory": f"{MEMORY_MIB}MiB", **method.options},
        )

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        source = self._sources.get(method.key.partition("-")[0], "")
        if source:
            for path in [source, *writing_peers.files(source)]:
                residency.evict(path)
        folder = tempfile.mkdtemp(dir=self.path)
        try:
            with ExitStack() as stack:
                if self.no_cgroup is None:
                    group = stack.enter_context(MemoryGroup(self.cgroup_bytes))
                task = self._task(method, folder, group.folder if group else "")
                outcome = worker.run(
                    task, group, SAMPLE_S,
                    program=writing_worker.__file__, python=self._python(method),
                )  # fmt: skip
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.sync()  # what one method left to the kernel must not slow down the next
        if outcome.reason:
            return {"error": outcome.reason.replace(self.path, "DIR").replace("ValueError: ", "")}
        found = outcome.found
        found.pop("after")
        found["growth"] = outcome.growth("anon", "file")
        if method.reader in writing_peers.PEERS:  # most of the work is done by other processes
            for name in ("user_s", "system_s", "growth"):
                found.pop(name)
        found["speed"] = found["bytes"] / found["seconds"]
        if method.reader == "copy":  # each byte was read and written once; a shuffle does so twice
            found["speed"] *= 2 / 4
        return found

    def rate(self, found: dict[str, Any]) -> str:
        peak = found["group_peak"]
        held = "unknown" if peak is None else f"{peak / MIB:,.0f} MiB"
        return f"{found['speed'] / MIB:,.0f} MiB/s, {held} of memory"


def _bars(found: report.Rounds) -> list[dict[str, Any]]:
    bars = [report.ratio_bar(found, bar, "speed") for bar in RATIO_BARS]
    for key, mib in (
        ("create-lowtide", MEMORY_MIB),
        ("append-lowtide", MEMORY_MIB),
        ("tokens-lowtide", MEMORY_MIB),
        ("scatter-lowtide", SCATTER_MIB),
        ("shuffle-lowtide", SHUFFLE_MIB),
        ("peers-lowtide", SHUFFLE_MIB),
    ):
        limit = f"{mib + 16} MiB"
        bars.append(report.limit_bar(found, f"memory, {key}", key, "growth", limit, max))
    return bars


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("MiB/s", "speed", 1 / MIB, places=0),
        report.spread("spread", "speed", 1 / MIB, places=0),
        report.median("CPU s", "cpu_s", places=2),
        report.peak_mib("peak grown MiB", "growth"),
        report.peak_mib("with page cache MiB", "group_peak"),
        report.against(RATIO_BARS, "speed"),
    ]
    for measured in found.values():
        for one in measured:
            if "user_s" in one:
                one["cpu_s"] = one["user_s"] + one["system_s"]
    return report.table(labels, found, "speed", columns)


def _write_source(path: str, rows: int) -> None:
    """Writes a matrix with a header, which lt.shuffle needs no words for."""
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file,
            {"descr": "<f4", "fortran_order": False, "shape": (rows, matrix.COLUMNS)},
        )
    matrix.append(path, rows)


def _source(told: argparse.Namespace, rows: int) -> AbstractContextManager[str]:
    say(f"preparing a matrix of {rows * matrix.ROW_BYTES / MIB:,.0f} MiB ...")
    return scratch.kept_or_removed(
        told.data, f"rows-{rows}x{matrix.COLUMNS}.npy", rows * matrix.ROW_BYTES + 128,
        lambda path: _write_source(path, rows), told.keep,
    )  # fmt: skip


def _prepare_peers(told: argparse.Namespace, source: str) -> Callable[[], None]:
    """Writes the matrix in the forms of others; without their packages, they will say so."""
    forms = writing_peers.forms(source)
    if not os.path.exists(forms):
        say("preparing the same rows for others ...")
        words = [told.shufflers, writing_peers.__file__, source]
        if subprocess.run(words, stderr=subprocess.DEVNULL).returncode != 0:
            shutil.rmtree(forms, ignore_errors=True)
    return lambda: None if told.keep else shutil.rmtree(forms, ignore_errors=True)


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("writing", __doc__)
    parser.add_argument("--rows", type=int, default=(1 << 30) // matrix.ROW_BYTES)
    parser.add_argument(
        "--readers",
        default=os.environ.get("LOWTIDE_READERS", peers_setup.python_of("torch")),
        help="Python with megatron-core",
    )
    parser.add_argument(
        "--shufflers",
        default=os.environ.get("LOWTIDE_SHUFFLERS", peers_setup.python_of("shufflers")),
        help="Python with datasets, ray, dask and, beside it, terashuf",
    )
    parser.add_argument(
        "--more", action="store_true", help="add the rounds to those that are in --out"
    )
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.rows = 1, told.rows // 10
    if told.rounds < 1 or told.rows < 1000:
        parser.error("--rounds must be at least 1, and --rows 1000")
    told.documents = told.rows // 4
    return told


def main(argv: list[str]) -> int:
    told = options(argv)
    chosen = rounds.choose(methods(), told.only)
    kinds = {method.key.partition("-")[0] for method in chosen}
    with ExitStack() as stack:
        sources = {}
        for kind, rows in (("shuffle", told.rows * SHUFFLED_TIMES), ("peers", told.rows)):
            if kind in kinds:
                sources[kind] = stack.enter_context(_source(told, rows))
        if "peers" in kinds:
            stack.callback(_prepare_peers(told, sources["peers"]))
        parent = told.data or scratch.scratch_folder()
        os.makedirs(parent, exist_ok=True)
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="lowtide-bench-", dir=parent)
        )
        bench = Bench(folder, sources, told)
        facts = machine.describe(folder)
        if told.more:
            bench.found = rounds.earlier(told.out, facts)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("writing", argv)}
    facts |= {"rows": told.rows, "columns": matrix.COLUMNS, "documents": told.documents}
    facts |= {"memory_bytes": MEMORY_MIB * MIB, "shuffled_rows": told.rows * SHUFFLED_TIMES}
    named = {method.key: method.label for method in methods() if method.key in bench.found}
    print(_table(named, bench.found))
    bars = _bars(bench.found)
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, named, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
