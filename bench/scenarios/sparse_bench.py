#!/usr/bin/env python3
"""The benchmark `sparse`: 1,000,000 cells x 20,000 genes with about 1,000 values per cell.

The matrix is in an uncompressed .h5ad, in a folder of bionemo-scdl, in zarr, and in the store that
annbatch shuffled for itself. Dense rows are in safetensors, .npz and fbin. Every measurement is a
separate process, sampled from outside, and peers have an interpreter of their own (--peers). The
methods alternate, round by round: hot (the files are in the page cache) and cold (they are not, and
a cgroup of a twentieth of the matrix leaves little room for them; it has at least 384 MiB, and 768
or 1536 MiB for peers, which hold more). Before that, every method reads some batches, whose rows
are compared with the source.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import fio
import machine
import peers_setup
import report
import rounds
import sparse_data
import sparse_report
import sparse_rows
import sparse_worker
import worker
from cgroup import MemoryGroup
from processes import peak
from report import MIB
from rounds import Method, say
from sparse_report import RATIO_BARS

BATCH = 64
BLOCK_BATCH = 4096  # where annbatch is compared: the size that its README has
DENSE_BATCH = 256
FEW_EPOCHS = 10  # of a small matrix
MEMORY_MIB = 256
HELD_MIB = 2560  # holds the dense rows, as maps of them do
LEAST_CGROUP_MIB = 384  # ours may hold 256, and the interpreter is there too
LEAST_PEER_MIB = 768  # torch and anndata alone hold 300 MiB
LEAST_ANNBATCH_MIB = 1536  # it holds twice its 8,192 rows; with 768 MiB it was killed
DENSE_CGROUP_MIB = 384  # of files of 2 GB; torch fits in it
SAMPLE_S = 0.005
OURS_S = 20.0  # time limit of a loader
WHOLE_S = 600.0  # of a method that must not end early
PACKAGES = "anndata annbatch bionemo-scdl h5py numpy safetensors scipy torch zarr zarrs".split()
PEERS = ("bionemo", "annloader", "annbatch", "safetensors", "npz", "fbin")


def methods(seconds: float, rows: int) -> list[Method]:
    """Returns all methods. A key is work-form-reader; the form says which files are read."""
    batches = {"batch_size": min(BLOCK_BATCH, rows // 4)}
    cells = [
        ("h5ad-lowtide", "lowtide: .h5ad", "lowtide", {}),
        ("h5ad-annloader", "AnnLoader, the same .h5ad", "annloader", {}),
        ("scdl-lowtide", "lowtide: SCDL folder", "lowtide", {}),
        ("scdl-bionemo", "bionemo-scdl, the same folder, 1 thread", "bionemo", {}),
        ("zarr-lowtide", "lowtide: zarr", "lowtide", {}),
        ("h5ad-batches", f"lowtide: .h5ad, batches of {BLOCK_BATCH}", "lowtide", batches),
        (
            "annbatch-blocks",
            "annbatch, own store, blocks of 32",
            "annbatch",
            batches | {"block": 32},
        ),
        ("annbatch-random", "annbatch, own store, chunk_size=1", "annbatch", batches),
    ]
    dense = {"batch_size": DENSE_BATCH}
    few = dense | {"epochs": FEW_EPOCHS}
    for form in sparse_data.DENSE:
        cells.append((f"{form}-lowtide", f"lowtide: {form}", "lowtide-rows", dense))
        label = {"safetensors": "safe_open, rows by NumPy", "npz": "np.load", "fbin": "np.memmap"}[
            form
        ]
        # np.load reads all of the file first, so that only the rate of a whole epoch is fair.
        more = dense | ({"seconds": WHOLE_S} if form == "npz" else {})
        cells.append((f"{form}-own", f"{label}: {form}", form, more))
    found = []
    for work in ("hot", "cold"):
        for key, label, reader, more in cells:
            found.append(_method(f"{work}-{key}", label, reader, seconds, more))
    held = dense | {"memory": f"{HELD_MIB}MiB"}
    for form in sparse_data.DENSE:
        label = f"lowtide: {form}, {HELD_MIB} MiB"
        found.append(_method(f"hot-{form}-held", label, "lowtide-held", seconds, held))
    whole = {"epochs": 2, "seconds": WHOLE_S}
    found += [
        _method("hot-few-dense", "lowtide: dense=True, columns=", "lowtide-dense", seconds, few),
        _method("hot-few-sparse", "lowtide: the same cells, sparse", "lowtide", seconds, few),
        _method("hot-few-loader", "lowtide, then SciPy", "lowtide-scipy", seconds, few),
        _method("hot-few-scipy", "SciPy, batches in memory", "scipy", seconds, few),
        _method("hot-h5ad-epochs", "lowtide: .h5ad, two epochs", "lowtide", seconds, whole),
        _method("cold-h5ad-epochs", "lowtide: .h5ad, two epochs", "lowtide", seconds, whole),
        Method("cold-h5ad-fio", "fio randread 4k direct QD 128, / 2", "cold", "fio"),
    ]
    return found


def _method(key: str, label: str, reader: str, seconds: float, more: dict[str, Any]) -> Method:
    work = key.partition("-")[0]
    told: dict[str, Any] = {"seconds": seconds}
    if reader.startswith("lowtide"):
        told = {"seconds": OURS_S, "cache": "drop" if work == "cold" else "keep"}
        told["epochs"] = 2 if work == "hot" else 1
    return Method(key, label, work, reader, told | more)


def form_of(method: Method) -> str:
    return method.key.split("-")[1]


def cgroup_bytes(method: Method, rows: int) -> int:
    """The limit of the memory group in which a method reads cold files."""
    if form_of(method) in sparse_data.DENSE:
        return DENSE_CGROUP_MIB * MIB
    least = LEAST_PEER_MIB if method.reader in PEERS else LEAST_CGROUP_MIB
    if method.reader == "annbatch":
        least = LEAST_ANNBATCH_MIB
    return max(least * MIB, sparse_data.form_bytes("h5ad", rows) // 20)


class Bench(rounds.Bench):
    """Reads the forms by every method."""

    def __init__(self, data: sparse_data.Data, told: argparse.Namespace) -> None:
        super().__init__(data.path("h5ad"), 0)
        self._data = data
        self._told = told

    def files(self, method: Method) -> list[str]:
        return sparse_data.files(self._data.path(form_of(method)))

    def measure(self, method: Method) -> None:
        why = self._data.why.get(form_of(method))
        if why is None:
            self.cgroup_bytes = cgroup_bytes(method, self._told.rows)
            super().measure(method)
        else:
            self.found.setdefault(method.key, []).append({"error": why, "residency": "not asked"})

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        if method.reader == "fio":
            found = fio.run(self.path, "pages", self._told.seconds, group)
            if "error" not in found:  # a row takes two reads: its values and its columns
                found["rows_per_s"] = found["reads"] / 2 / found["seconds"]
            return found
        outcome = self._outcome(method, group)
        if outcome.reason:
            return {"error": self._reason(outcome, group)}
        found = outcome.found
        found.pop("after")
        found["growth"] = outcome.growth("anon", "file")
        found["cached_peak"] = peak(outcome.readings, "cached")
        found["rows_per_s"] = found["rows"] / found["seconds"]
        found["cpu_us"] = (found["user_s"] + found["system_s"]) * 1e6 / found["rows"]
        return found

    def _outcome(self, method: Method, group: MemoryGroup | None, **more: Any) -> worker.Outcome:
        form = form_of(method)
        task = sparse_worker.Task(
            reader=method.reader,
            path=self._data.path(form),
            rows=sparse_data.form_rows(form, self._told.rows),
            **{"batch_size": BATCH, "memory": f"{MEMORY_MIB}MiB", **method.options, **more},
        )
        python = self._told.peers if method.reader in PEERS else sys.executable
        return worker.run(task, group, SAMPLE_S, program=sparse_worker.__file__, python=python)

    def _reason(self, outcome: worker.Outcome, group: MemoryGroup | None) -> str:
        if group is not None and group.oom_kills():
            return f"killed: it needs more than {self.cgroup_bytes / MIB:,.0f} MiB"
        return outcome.reason.replace(self._data.folder, "DIR")

    def verify(self, chosen: list[Method]) -> dict[str, int]:
        """Compares batches of each method with the source; returns how many rows of each."""
        done: dict[str, int] = {}
        for method in chosen:
            name = method.key.partition("-")[2]
            if method.reader == "fio" or name in done or form_of(method) in self._data.why:
                continue
            outcome = self._outcome(method, None, check=True)
            if "differs from" in outcome.reason or "other rows" in outcome.reason:
                raise SystemExit(f"bench: {method.label}: {outcome.reason}")
            done[name] = outcome.found.get("rows", 0)
            say(f"{method.label}: {outcome.reason or f'{done[name]:,} rows are right'}")
        return done

    def rate(self, found: dict[str, Any]) -> str:
        grown = found.get("growth")
        held = "" if grown is None else f", {grown / MIB:,.0f} MiB grown"
        return f"{found['rows_per_s']:,.0f} rows/s{held}"


def _bars(found: report.Rounds) -> list[dict[str, Any]]:
    bars = [report.ratio_bar(found, bar, "rows_per_s") for bar in RATIO_BARS]
    sparse_report.add_fill_rates(found)
    bars.append(report.ratio_bar(found, sparse_report.FILL_BAR, "fill_rows_per_s"))
    for key in ("hot-h5ad-epochs", "cold-h5ad-epochs"):
        limit = f"{MEMORY_MIB + 16} MiB"
        bars.append(report.limit_bar(found, f"memory, {key}", key, "growth", limit, max))
    key = "cold-h5ad-epochs"
    bars.append(report.limit_bar(found, "page cache, drop", key, "cached_peak", "64 MiB", max))
    return bars


def _table(labels: dict[str, str], found: report.Rounds) -> str:
    columns = [
        report.median("krow/s", "rows_per_s", 1e-3, places=2),
        report.spread("spread", "rows_per_s", 1e-3, places=2),
        report.median("CPU us per row", "cpu_us", places=2),
        report.peak_mib("peak grown MiB", "growth"),
        report.peak_mib("with page cache MiB", "cgroup_peak"),
        report.percent("in cache after", "resident_after"),
        report.against(RATIO_BARS, "rows_per_s"),
    ]
    return report.table(labels, found, "rows_per_s", columns)


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("sparse", __doc__)
    parser.set_defaults(seconds=10.0)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--peers",
        default=os.environ.get("LOWTIDE_SPARSE_PEERS", peers_setup.python_of("sparse")),
        help="Python with anndata, annbatch, bionemo-scdl, safetensors, torch and zarrs",
    )
    parser.add_argument(
        "--more", action="store_true", help="add the rounds to those that are in --out"
    )
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.rows, told.seconds = 1, told.rows // 10, 1.0
    if told.rounds < 1 or not 2048 <= told.rows <= sparse_rows.MAX_ROWS:
        parser.error(f"--rounds must be at least 1, and --rows 2048 to {sparse_rows.MAX_ROWS}")
    return told


def main(argv: list[str]) -> int:
    told = options(argv)
    chosen = rounds.choose(methods(told.seconds, told.rows), told.only)
    forms = {"h5ad", *map(form_of, chosen)}
    size_bytes = sum(sparse_data.form_bytes(form, told.rows) for form in forms)
    with sparse_data.folder(told.data, told.rows, size_bytes, told.keep) as data:
        for form in (form for form in sparse_data.FORMS if form in forms):
            started_s = time.monotonic()
            data.make(form, told.rows, told.peers)
            spent = f"{time.monotonic() - started_s:.0f} s"
            say(f"{sparse_data.FORMS[form]}: {data.why.get(form, 'made')} ({spent})")
        bench = Bench(data, told)
        facts = rounds.machine_facts(bench.path)
        if told.more:
            bench.found = rounds.earlier(told.out, facts)
        facts["verified_rows"] = bench.verify(chosen)
        bench.rounds(chosen, told.rounds)
    facts |= {
        "command": rounds.command("sparse", argv),
        "packages": machine.versions(told.peers, PACKAGES),
    }
    facts |= {"rows": told.rows, "columns": sparse_rows.COLUMNS, "batch_size": BATCH}
    facts |= {"dense_width": sparse_data.WIDTH, "memory_bytes": MEMORY_MIB * MIB}
    all_methods = methods(told.seconds, told.rows)
    facts["cgroup_bytes"] = {
        method.key: cgroup_bytes(method, told.rows)
        for method in all_methods
        if method.work == "cold" and method.key in bench.found and not bench.no_cgroup
    }
    named = {method.key: method.label for method in all_methods if method.key in bench.found}
    bars = _bars(bench.found)
    print(_table(named, bench.found))
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, named, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
