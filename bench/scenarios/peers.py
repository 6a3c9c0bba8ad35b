#!/usr/bin/env python3
"""`./dev bench --peers`: the same samples by Lowtide and by its peers, each in its own format.

    setup    installs the peers below .dev/peers; what does not install is reported
    rows     rows of 162 float32, shuffled, batches of 256
    tokens   windows of 1024 tokens of uint16, shuffled, batches of 12, as int64
    scan     the rows in file order, batches of 4096
    resume   from a state in the middle of an epoch of tokens to the next batch
    startup  import, open and the first batch of rows
    dlio     published loads of DLIO (MLPerf Storage), scaled: utilisation of the accelerator

Every measurement is a process of its own in the interpreter of its peer, and the peers alternate,
round by round. Before that, each peer converts the samples once. A whole epoch of a small set and
the first batches of the large one are compared with the source. A rate
includes opening and the first batch. Cold files are checked to be cold, and read in a cgroup; they
should be larger than it. The result file keeps the rounds of the other scenarios.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import peers_dlio
import peers_report
import peers_setup
import report
import rounds
from peers_bench import BATCH_SIZES, CGROUP_BYTES, KINDS, ONE_BATCH, Bench, methods
from peers_data import Adapter, all_adapters, source
from rounds import say
from scratch import scratch_folder

SAMPLES = {"rows": 1_600_000, "tokens": 500_000, "scan": 1_600_000, "resume": 60_000}
SAMPLES["startup"] = 200_000


def options(argv: list[str]) -> argparse.Namespace:
    parser = rounds.options_parser("peers", __doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "scenarios", nargs="+", choices=["setup", *KINDS, "dlio"], metavar="scenario"
    )
    parser.add_argument("--samples", type=int, help="rows or windows (default: about 1 GB)")
    parser.add_argument("--environments", default=str(peers_setup.FOLDER), help="where setup is")
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.seconds = 1, 1.0
    if told.rounds < 1 or (told.samples is not None and told.samples < 20_000):
        parser.error("--rounds must be at least 1, and --samples 20000")
    return told


def chosen(only: str) -> list[Adapter]:
    """The adapters whose names begin with one of the words in --only."""
    found = [one for one in all_adapters() if one.key.startswith(tuple(only.split(",")))]
    if not found and only != "fio":
        sys.exit(f"--only: no adapter's name begins with {only}")
    return found


@dataclass(frozen=True)
class Measured:
    """What one scenario adds to the result file."""

    labels: dict[str, str]
    rounds: report.Rounds
    facts: dict[str, Any]
    versions: dict[str, str]


def measure(scenario: str, told: argparse.Namespace) -> Measured:
    """Runs the rounds of one scenario."""
    samples = told.samples or SAMPLES[scenario] // (10 if told.quick else 1)
    picked = chosen(told.only)
    fio = {"fio"} if "fio".startswith(tuple(told.only.split(","))) else set()
    wanted = {one.key for one in picked} | fio
    say(f"{scenario}: preparing {samples:,} samples ...")
    with source(KINDS[scenario], samples, told.data, told.keep) as data:
        bench = Bench(scenario, data, picked, told)
        facts = rounds.machine_facts(bench.path) | {"file_bytes": os.path.getsize(bench.path)}
        if facts["file_bytes"] < CGROUP_BYTES and scenario not in ONE_BATCH:
            say(
                "cold: the files fit in the cgroup, so that maps read them once; use more --samples"
            )
        bench.prepare()
        turn = [one for one in methods(scenario, picked) if one.reader in wanted]
        bench.rounds(turn, told.rounds)
    facts |= {"samples": samples, "batch_size": BATCH_SIZES[scenario], "seconds": told.seconds}
    facts |= {"verified_samples": bench.verified}
    facts |= {"cgroup_bytes": None if bench.no_cgroup else CGROUP_BYTES}
    versions: dict[str, str] = {}
    for one in bench.adapters.values():
        python = peers_setup.python_of(one.environment, bench.environments)
        versions |= machine.versions(python, one.packages)
    return Measured({one.key: one.label for one in turn}, bench.found, facts, versions)


def measure_dlio(told: argparse.Namespace) -> Measured:
    environments = Path(told.environments)
    seconds = peers_dlio.SECONDS / (10 if told.quick else 1)
    folder = told.data or scratch_folder()
    wanted = tuple(told.only.split(","))
    chosen = [one for one in peers_dlio.methods() if one.reader.startswith(wanted)]
    if not chosen:
        sys.exit(f"--only: no reader of DLIO has a name that begins with {told.only}")
    bench = peers_dlio.measure(chosen, told.rounds, folder, environments, seconds)
    facts = machine.describe(folder) | {"loads": bench.facts()}
    packages = machine.versions(
        peers_setup.python_of("dlio", environments), ["dlio-benchmark", "mpi4py", "torch"]
    )
    return Measured({one.key: one.label for one in chosen}, bench.found, facts, packages)


def merged(out: str, scenario: str, new: Measured) -> dict[str, Any]:
    """The result file with the rounds of one scenario replaced."""
    old: dict[str, Any] = {"facts": {}, "labels": {}, "rounds": {}}
    if Path(out).exists():
        old = json.loads(Path(out).read_text(encoding="utf-8"))
    start = f"{scenario}-"
    kept = {key: label for key, label in old["labels"].items() if not key.startswith(start)}
    found = {key: old["rounds"][key] for key in kept} | new.rounds
    versions = old["facts"].get("versions", {}) | new.versions
    scenarios = old["facts"].get("scenarios", {}) | {scenario: new.facts}
    result = {"facts": {"versions": versions, "scenarios": scenarios}, "bars": []}
    result |= {"labels": kept | new.labels, "rounds": found}
    ours = {one.key for one in all_adapters() if one.ours} | {*peers_dlio.OURS}
    result["bars"] = peers_report.bars(result, ours)
    return result


def main(argv: list[str]) -> int:
    told = options(argv)
    if "setup" in told.scenarios:
        peers_setup.setup(folder=Path(told.environments))
    for scenario in [name for name in told.scenarios if name != "setup"]:
        new = measure_dlio(told) if scenario == "dlio" else measure(scenario, told)
        new.facts["command"] = rounds.command("--peers", argv)
        result = merged(told.out, scenario, new)
        rounds.write_result(
            told.out, *(result[name] for name in "facts bars labels rounds".split())
        )
        print(peers_report.table(result, scenario))
        print(
            report.bars_table([bar for bar in result["bars"] if bar["work"].startswith(scenario)])
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
