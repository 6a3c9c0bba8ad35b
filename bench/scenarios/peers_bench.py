"""Prepares, verifies and measures the peers of one scenario; see `peers`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import fio
import matrix
import peers_setup
import peers_worker
import rounds
import worker
from cgroup import MemoryGroup
from peers_data import Adapter, Source, source
from report import MIB
from rounds import Method, say

KINDS = {"rows": "rows", "tokens": "tokens", "scan": "rows", "resume": "tokens", "startup": "rows"}
BATCH_SIZES = {"rows": 256, "tokens": 12, "scan": 4096, "resume": 12, "startup": 256}
FIO = {"rows": "random", "tokens": "windows", "scan": "sequential"}
ONE_BATCH = ("resume", "startup")  # the time until the first batch is what is measured
CGROUP_BYTES = 768 * MIB
SMALL_SAMPLES = 5 * 4096  # whole batches in every scenario but tokens
CHECKED_STEPS = 8
PREPARE_S = 900.0
SAMPLE_S = 0.05


def methods(scenario: str, adapters: list[Adapter]) -> list[Method]:
    """Returns all methods of a scenario. A key is scenario-work-adapter."""
    found = []
    for work in ("hot",) if scenario in ONE_BATCH else ("hot", "cold"):
        for one in adapters:
            if scenario in one.scenarios:
                promise = one.scenarios[scenario]
                label = f"{one.name} ({promise})" if promise else one.name
                found.append(Method(f"{scenario}-{work}-{one.key}", label, work, one.key))
    if scenario in FIO:
        found.append(Method(f"{scenario}-cold-fio", f"fio, {FIO[scenario]}", "cold", "fio"))
    return found


class Bench(rounds.Bench):
    """Measures one scenario by its adapters."""

    def __init__(
        self, scenario: str, data: Source, adapters: list[Adapter], told: argparse.Namespace
    ) -> None:
        super().__init__(data.path, CGROUP_BYTES)
        self.hot_cgroup_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.adapters = {one.key: one for one in adapters if scenario in one.scenarios}
        self.why: dict[str, str] = {}  # adapters that cannot be measured
        self.verified: dict[str, int] = {}  # samples of each that were compared with the source
        self._scenario, self._data, self._told = scenario, data, told
        self.environments = Path(told.environments)
        self.labels: dict[str, str] = {}
        self._saved: dict[str, dict[str, Any]] = {}

    def files(self, method: Method) -> list[str]:
        adapter = self.adapters.get(method.reader)
        return self._data.files(adapter) if adapter else [self.path]

    def prepare(self) -> None:
        """Converts the samples for each adapter and compares what it reads with the source."""
        kind = KINDS[self._scenario]
        with source(kind, min(SMALL_SAMPLES, self._data.samples), None, keep=False) as small:
            for adapter in self.adapters.values():
                if self._verified_before(adapter):
                    continue
                started_s = time.monotonic()
                why = self._whole_epoch(adapter, small) or self._convert(adapter, self._data)
                why = why or self._first_batches(adapter)
                if why:
                    self.why[adapter.key] = why
                else:
                    self._note(adapter)
                spent = f"{time.monotonic() - started_s:.0f} s"
                say(f"{adapter.name}: {why or 'verified'} ({spent})")

    def _noted(self, adapter: Adapter) -> Path:
        return Path(f"{self._data.path}.forms", f"{self._scenario}-{adapter.key}.json")

    def _note(self, adapter: Adapter) -> None:
        """Notes beside the forms what was verified, for the next run over data that is kept."""
        noted = self._noted(adapter)
        noted.parent.mkdir(exist_ok=True)
        found = {"samples": self.verified[adapter.key], "saved": self._saved.get(adapter.key)}
        noted.write_text(json.dumps(found), encoding="utf-8")

    def _verified_before(self, adapter: Adapter) -> bool:
        noted = self._noted(adapter)
        if not noted.exists() or noted.stat().st_mtime < adapter.written_s:
            return False
        found = json.loads(noted.read_text(encoding="utf-8"))
        self.verified[adapter.key] = found["samples"]
        if found["saved"]:
            self._saved[adapter.key] = found["saved"]
        return True

    def _convert(self, adapter: Adapter, data: Source) -> str:
        """Writes the form of an adapter, unless it is there; returns why it cannot."""
        folder = data.folder(adapter)
        done = Path(f"{folder}.done")
        if not adapter.form or done.exists():
            return ""
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
        outcome = self._work(adapter, data, "prepare", seconds=PREPARE_S)
        if not outcome.reason:
            done.touch()
        return outcome.reason

    def _whole_epoch(self, adapter: Adapter, small: Source) -> str:
        why = self._convert(adapter, small)
        return why or self._work(adapter, small, "check", seconds=PREPARE_S).reason

    def _first_batches(self, adapter: Adapter) -> str:
        outcome = self._work(adapter, self._data, "check", steps=CHECKED_STEPS)
        self.verified[adapter.key] = outcome.found.get("samples", 0)
        if outcome.reason or self._scenario != "resume":
            return outcome.reason
        half = self._data.samples // BATCH_SIZES["resume"] // 2
        outcome = self._work(adapter, self._data, "save", steps=half, seconds=PREPARE_S)
        self._saved[adapter.key] = outcome.found
        return outcome.reason

    def measure(self, method: Method) -> None:
        why = self.why.get(method.reader)
        if why is None:
            super().measure(method)
        else:
            self.found.setdefault(method.key, []).append({"error": why, "residency": "not asked"})

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        if method.reader == "fio":
            return self._fio(group)
        saved = self._saved.get(method.reader, {})
        told = {"cache": "drop" if method.work == "cold" else "auto", "state": saved.get("state")}
        outcome = self._work(
            self.adapters[method.reader], self._data, "measure", group, told,
            seconds=self._told.seconds, imported=self._scenario != "startup",
            steps=1 if self._scenario in ONE_BATCH else 0,
        )  # fmt: skip
        if group is not None and group.oom_kills():
            return {"error": f"killed: it needs more than {CGROUP_BYTES / MIB:,.0f} MiB"}
        if outcome.reason:
            return {"error": outcome.reason}
        return self._found(outcome, saved)

    def _found(self, outcome: worker.Outcome, saved: dict[str, Any]) -> dict[str, Any]:
        found = outcome.found
        found.pop("after")
        digest = found.pop("digest")
        if saved and digest != saved["digest"]:
            return {"error": "resumed with another batch than the next one"}
        for name in ("group_anon", "group_cache", "group_file"):
            found[name] = _rise([getattr(reading, name) for reading in outcome.readings])
        found["cpu_s"] = found["user_s"] + found["system_s"]
        if self._scenario in ONE_BATCH:
            return found | {"rate": 1 / found["first_batch_s"]}
        found["cpu_us_per_sample"] = found["cpu_s"] / found["samples"] * 1e6
        return found | {"rate": found["samples"] / found["seconds"]}

    def _fio(self, group: MemoryGroup | None) -> dict[str, Any]:
        found = fio.run(self.path, FIO[self._scenario], self._told.seconds, group)
        if "error" in found:
            return found
        whole = found["bytes"] / matrix.ROW_BYTES
        samples = whole if self._scenario == "scan" else found["reads"]  # a read per sample
        cpu_s = found["user_s"] + found["system_s"]
        rates = {"rate": samples / found["seconds"], "cpu_us_per_sample": cpu_s / samples * 1e6}
        return found | rates | {"samples": samples, "cpu_s": cpu_s, "disk_read": found["bytes"]}

    def rate(self, found: dict[str, Any]) -> str:
        first_s = found.get("first_batch_s")  # fio has none
        first = "" if first_s is None else f", first batch after {first_s:.3f} s"
        return f"{found['rate']:,.0f} per s{first}"

    def _work(
        self, adapter: Adapter, data: Source, action: str, group: MemoryGroup | None = None,
        told: dict[str, Any] | None = None, **more: Any,
    ) -> worker.Outcome:  # fmt: skip
        """Runs a worker in the interpreter of the adapter."""
        arguments = {"shuffled": self._scenario != "scan", **(told or {})}
        task = peers_worker.Task(
            adapter=adapter.key, path=data.path, action=action,
            data=data.data(adapter, BATCH_SIZES[self._scenario], **arguments), **more,
        )  # fmt: skip
        python = peers_setup.python_of(adapter.environment, self.environments)
        outcome = worker.run(task, group, SAMPLE_S, peers_worker.__file__, python)
        folder = os.path.dirname(data.path)
        outcome.reason = outcome.reason.replace(folder, "DIR").replace(
            str(self.environments), "ENV"
        )
        if outcome.reason.startswith("ModuleNotFoundError"):
            outcome.reason = peers_setup.why_missing(
                adapter.environment, adapter.packages[0], self.environments
            )
        return outcome


def _rise(values: list[int | None]) -> int | None:
    """How far the largest value is above the first, which was taken before the work."""
    known = [value for value in values if value is not None]
    return max(known) - known[0] if known else None
