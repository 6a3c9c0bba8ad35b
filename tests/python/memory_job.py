"""One read job in a fresh process, for the memory proofs.

Told by JSON on the command line. Says "ready" with its memory after all imports, waits for a
line, reads, checks every row, and says its peaks. Run by test_memory.py, which samples it.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

import numpy as np
from processes import read_status, reset_resident_peak


def check(index: Any, rows: Any, seen: Any) -> None:
    """Every row carries its number in the first column."""
    if not np.array_equal(rows[:, 0], index):
        raise SystemExit("a row is not the one that was asked for")
    seen[index] = True


def read_epochs(told: dict[str, Any]) -> dict[str, Any]:
    import lowtide

    options = {name: told[name] for name in ("memory", "engine", "cache") if name in told}
    shape = (told["rows"], told["columns"])
    with lowtide.open(told["path"], dtype="uint32", shape=shape, **options) as array:
        for epoch in range(told["epochs"]):
            seen = np.zeros(told["rows"] if told["check"] else 0, dtype=bool)
            count = 0
            batches = array.batches(told["batch"], order=told["order"], seed=7, epoch=epoch)
            for index, rows in batches:
                if told["check"]:
                    check(index, rows, seen)
                count += 1
                if count == told["max_batches"]:
                    break
            if told["check"] and not seen.all():
                raise SystemExit("a row was never delivered")
        stats = array.stats()
    return {"engine": stats.get("engine"), "memory": stats.get("memory")}


def reduce(told: dict[str, Any]) -> dict[str, Any]:
    """Every reduction, and what else reads an array in blocks; `told["out"]` is a new file."""
    import lowtide

    shape = (told["rows"], told["columns"])
    options: dict[str, Any] = {"order": told["order"], "memory": told["memory"]}
    with lowtide.open(told["path"], dtype="uint32", shape=shape, **options) as array:
        for axis in (None, 0):
            for name in ("sum", "mean", "std", "min", "any", "argmax", "nanmean"):
                getattr(np, name)(array, axis=axis)
        np.histogram(array, 10)
        array @ np.ones(told["columns"], "f4")
        np.save(told["out"], array)
    return {}


def profile_both(told: dict[str, Any]) -> dict[str, Any]:
    """memory_profiler's own sampler around np.memmap and around lowtide, in MiB."""
    import memory_profiler  # type: ignore[import-untyped]

    shape = (told["rows"], told["columns"])
    order = np.random.default_rng(0).permutation(told["rows"])

    def plain() -> Any:
        view = np.memmap(told["path"], dtype=np.uint32, mode="r", shape=shape)
        for first in range(0, len(order), told["batch"]):
            view[order[first : first + told["batch"]]].sum()
        return view  # still mapped in the last sample, which is taken after the return

    ours = memory_profiler.memory_usage((read_epochs, (told,)), interval=0.01)
    theirs = memory_profiler.memory_usage((plain, ()), interval=0.01)
    return {"ours": ours, "theirs": theirs}


def run_job(jobs: dict[str, Any]) -> None:
    """Runs the job, and reports the memory before it and its peaks."""
    told = json.loads(sys.argv[1])
    import lowtide  # noqa: F401

    report_peaks(functools.partial(jobs[told["job"]], told))


def report_peaks(job: Callable[[], dict[str, Any]]) -> None:
    """Says the memory before the job, waits for a line, and says what it found and its peaks."""
    exact = reset_resident_peak()
    before = read_status()
    print(json.dumps(before), flush=True)
    sys.stdin.readline()
    found = job()
    after = read_status()
    peak = after.get("resident_peak") if exact else None
    found["exact_growth"] = None if peak is None else peak - before["resident"]
    found["virtual_growth"] = after["virtual_peak"] - before["virtual"]
    found["file_growth"] = after["file"] - before["file"]
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    run_job({"profile": profile_both, "epochs": read_epochs, "reduce": reduce})
