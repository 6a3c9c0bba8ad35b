#!/usr/bin/env python3
"""The benchmark `remote`: objects on servers, against obstore, tensorstore and curl.

All servers are on loopback and share the processors with the clients. SeaweedFS serves random
ranges of 64 KiB (`range`) and whole scans. A server of ours (`remote_server.py`) serves the same
ranges (`near`) at less cost, so that clients differ more; shuffled rows of 648 bytes and
tokens 20 ms after the request; and an epoch with faults. Every measurement is a separate process,
which is watched from outside; the methods alternate, round by round. The word `server` measures
what our server can do at most.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from typing import Any

import machine
import matrix
import numpy as np
import remote_stores
import remote_worker
import report
import rounds
import scratch
import worker
from cgroup import MemoryGroup
from report import MIB
from rounds import Method, say

SAMPLE_S = 0.005
MEMORY_MIB = 256
LATE_MS = 20
STEP_US = 200
EPOCH_S = 120.0  # an epoch is read to its end
FAULTS = "fail=0.01/cut=0.01/stall=0.01"
SINGLE_ROWS = 16384  # at one request per row
NEAR_TIMES = 4  # as many ranges as from SeaweedFS
OWN = ("near", "late", "tokens", "faults", "server")  # what our server serves
_RANGE_BARS = (
    ("lowtide", "obstore", 1.5),
    ("lowtide", "obstore-single", 1.5),
    ("lowtide", "tensorstore", 1.0),
    ("lowtide-ahead", "obstore", 1.5),
    ("lowtide-ahead", "obstore-single", 1.5),
    ("lowtide-ahead", "tensorstore", 1.0),
)
RATIO_BARS: tuple[report.RatioBar, ...] = (
    *(
        (f"64 KiB, {word}: {ours}", f"{word}-{ours}", f"{word}-{theirs}", least)
        for word in ("range", "near")
        for ours, theirs, least in _RANGE_BARS
    ),
    ("scan", "scan-lowtide", "scan-curl", 0.9),
    ("rows at 20 ms", "late-lowtide", "late-single", 20.0),
    ("faults", "faults-lowtide", "late-lowtide", 1 / 1.3),
)


def methods() -> list[Method]:
    """Returns all methods; the first word of a key says what is read."""
    wide = {"key": "wide.npy"}
    rows = {"key": f"late={LATE_MS}/rows.npy", "seconds": EPOCH_S}
    single = rows | {"gap": 0, "max_rows": SINGLE_ROWS}
    tokens = {"key": f"late={LATE_MS}/tokens.bin", "batch": 12, "busy_us": STEP_US, "seconds": 5}
    faulty = rows | {"key": f"late={LATE_MS}/{FAULTS}/rows.npy"}
    ahead = wide | {"batch": 64, "seconds": EPOCH_S}
    told: list[tuple[str, str, str, dict[str, Any]]] = []
    for word in ("range", "near"):
        told += [
            (f"{word}-lowtide", "lowtide: take, 16 callers", "lowtide-take", wide),
            (f"{word}-lowtide-ahead", "lowtide: batches, shuffled", "lowtide-shuffled", ahead),
            (f"{word}-obstore", "obstore: get_ranges, 16 callers", "obstore", wide),
            (f"{word}-obstore-single", "the same, coalesce=0", "obstore-single", wide),
            (f"{word}-tensorstore", "tensorstore: zarr3, one shard", "tensorstore",
             {"key": "wide.zarr/", "requests": 32}),
        ]  # fmt: skip
    told += [
        ("scan-lowtide", "lowtide: batches, in order", "lowtide-scan", wide | {"batch": 64}),
        ("scan-curl", "curl -Z, ranges of 16 MiB, 4 at a time", "curl", wide),
        ("late-lowtide", "lowtide: batches, shuffled", "lowtide-shuffled", rows),
        ("late-single", "lowtide, gap=0: a request per row", "lowtide-shuffled", single),
        ("tokens-lowtide", "lowtide: Loader, 12 x 1024", "lowtide-tokens", tokens),
        ("faults-lowtide", "1 % each of 503, resets, stalls", "lowtide-shuffled", faulty),
        ("server-lowtide", "lowtide: in order, no latency", "lowtide-scan", {"key": "rows.npy"}),
        ("server-curl", "curl -Z, no latency", "curl", {"key": "rows.npy"}),
    ]
    return [Method(key, label, "first", reader, options) for key, label, reader, options in told]


class Bench(rounds.Bench):
    """Reads by every method from servers that run as long as it does."""

    def __init__(self, told: argparse.Namespace, weed: str, ours: str, sizes: dict[str, int]):
        super().__init__("", 1)
        self._told, self._weed, self._ours, self._sizes = told, weed, ours, sizes

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        own = method.key.startswith(OWN)
        options = {"memory": f"{MEMORY_MIB}MiB", "seconds": self._told.seconds, **method.options}
        key = options.pop("key")
        name = key.rpartition("/")[2] or "wide.npy"
        task = remote_worker.Task(
            reader=method.reader,
            endpoint=self._ours if own else self._weed,
            # Our server wants no name of a bucket, but the peers give one.
            key=key if own and "near" not in method.key else f"{remote_stores.BUCKET}/{key}",
            size_bytes=self._sizes[name],
            rows=self._told.rows if name == "rows.npy" else self._told.wide_rows,
            ranges=self._told.ranges * (NEAR_TIMES if method.key.startswith("near") else 1),
            **options,
        )
        python = sys.executable if method.ours or method.reader == "curl" else self._told.readers
        outcome = worker.run(task, None, SAMPLE_S, program=remote_worker.__file__, python=python)
        if outcome.reason:
            return {"error": outcome.reason.replace(self._ours, "").replace(self._weed, "")}
        found = outcome.found
        found.pop("after")
        found["growth"] = outcome.growth("anon")
        found["speed"] = found["bytes"] / found["seconds"]
        found["cpu_s"] = found["user_s"] + found["system_s"]
        found["cpu_s_per_gb"] = found["cpu_s"] / (found["bytes"] / 1e9)
        return found

    def rate(self, found: dict[str, Any]) -> str:
        waits = f", waits {found['wait_s'] * 1e6:.0f} us" if "wait_s" in found else ""
        held = "unknown" if found["growth"] is None else f"{found['growth'] / MIB:,.0f} MiB"
        sent = f", {found['requests']:,} requests" if "requests" in found else ""
        return (
            f"{found['speed'] / 1e6:,.1f} MB/s, {found['cpu_s_per_gb']:.2f} CPU s per GB, "
            f"grown by {held}{sent}{waits}"
        )


def _bars(found: report.Rounds) -> list[dict[str, Any]]:
    bars = [report.ratio_bar(found, bar, "speed") for bar in RATIO_BARS]
    # What the call itself takes is less; a wait for the server would be milliseconds.
    bars.append(
        report.limit_bar(
            found, "tokens at 20 ms: wait of a step", "tokens-lowtide", "wait_s", "100 us"
        )
    )
    limit = f"{MEMORY_MIB + 16} MiB"
    for key in ("range-lowtide-ahead", "scan-lowtide", "late-lowtide", "tokens-lowtide",
                "faults-lowtide"):  # fmt: skip
        bars.append(report.limit_bar(found, f"memory, {key}", key, "growth", limit, max))
    return bars


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("MB/s", "speed", 1e-6),
        report.spread("spread", "speed", 1e-6),
        report.median("CPU s per GB", "cpu_s_per_gb", places=2),
        report.peak_mib("peak grown MiB", "growth"),
        report.median("requests", "requests", places=0),
        report.median("fetched MB", "fetched_bytes", 1e-6, places=0),
        report.against(RATIO_BARS, "speed"),
    ]
    return report.table(labels, found, "speed", columns)


def _write_rows(path: str, rows: int) -> None:
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (rows, matrix.COLUMNS)}
        )
    matrix.append(path, rows)


def _write_tokens(path: str, tokens: int) -> None:
    np.random.default_rng(0).integers(0, 50257, tokens, dtype=np.uint16).tofile(path)


def _prepare(told: argparse.Namespace, folder: str, chosen: list[Method]) -> dict[str, int]:
    """Writes the data that the chosen methods read; returns the sizes of the files."""
    writers = {
        "wide.npy": (("range", "scan", "near"), remote_stores.write_wide, told.wide_rows),
        "rows.npy": (("late", "faults", "server"), _write_rows, told.rows),
        "tokens.bin": (("tokens",), _write_tokens, told.tokens),
    }
    sizes = {}
    for name, (words, write, count) in writers.items():
        path = os.path.join(folder, name)
        if any(method.key.startswith(words) for method in chosen):
            say(f"preparing {name} ...")
            write(path, count)
            sizes[name] = os.path.getsize(path)
    return sizes


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("remote", __doc__)
    parser.set_defaults(seconds=3.0)
    parser.add_argument("--rows", type=int, default=(1 << 30) // matrix.ROW_BYTES)
    parser.add_argument("--ranges", type=int, default=2048)
    parser.add_argument("--weed", default=os.environ.get("LOWTIDE_WEED", "weed"))
    parser.add_argument(
        "--readers",
        default=os.environ.get("LOWTIDE_READERS", sys.executable),
        help="Python with obstore and tensorstore",
    )
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.rows, told.ranges = 1, told.rows // 4, told.ranges // 4
    if told.rounds < 1 or told.rows < 100_000:
        parser.error("--rounds must be at least 1, and --rows 100000")
    told.wide_rows = told.rows * matrix.ROW_BYTES // (8 * remote_stores.WIDE_COLUMNS)
    told.tokens = told.rows * matrix.ROW_BYTES // 4  # as wide_rows: half as many bytes
    return told


def main(argv: list[str]) -> int:
    told = options(argv)
    chosen = rounds.choose(methods(), told.only)
    with ExitStack() as stack:
        parent = told.data or scratch.scratch_folder()
        os.makedirs(parent, exist_ok=True)
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="lowtide-bench-", dir=parent)
        )
        sizes = _prepare(told, folder, chosen)
        facts = machine.describe(folder)
        weed_address = ""
        if any(method.reader == "tensorstore" for method in chosen):
            why = remote_stores.make_shard(told.readers, os.path.join(folder, "wide.npy"), folder)
            say(why or "the shard is there")
        if any(method.key.startswith(("range", "scan")) for method in chosen):
            weed_folder = os.path.join(folder, "weed")
            os.mkdir(weed_folder)
            weed = stack.enter_context(remote_stores.seaweed(told.weed, weed_folder))
            weed_address = weed.endpoint
            weed.put("wide.npy", os.path.join(folder, "wide.npy"))
            weed.put_shard(folder)
            facts |= {"server": remote_stores.version(shutil.which(told.weed) or "")}
        ours = stack.enter_context(remote_stores.ranges(folder))
        bench = Bench(told, weed_address, ours, sizes)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("remote", argv)}
    facts |= {"rows": told.rows, "columns": matrix.COLUMNS, "ranges": told.ranges}
    facts |= {"object_bytes": sizes, "memory_bytes": MEMORY_MIB * MIB, "latency_ms": LATE_MS}
    named = {method.key: method.label for method in chosen}
    print(_table(named, bench.found))
    bars = _bars(bench.found)
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, named, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
