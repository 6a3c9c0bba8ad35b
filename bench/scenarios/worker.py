"""One measurement in its own process, and the parent's side of it.

The worker says "ready" with its memory before the work, waits for a line, works, and says what
it found: two lines of JSON. In between the parent samples its memory from outside.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cgroup import MemoryGroup
from processes import Reading, Sampler, read_io, read_status, reset_resident_peak


@dataclass(frozen=True)
class Task:
    """What a worker is told, as JSON. max_rows and seconds end the work early."""

    reader: str
    path: str
    rows: int
    columns: int
    chunk: int = 4096
    piece: int = 4096
    order: str = "permutation"  # "permutation" (NumPy's, seed 0) | "own" | "sequential"
    epochs: int = 1
    memory: str = "64MiB"
    engine: str = "auto"
    cache: str = "auto"
    seconds: float = 60.0
    max_rows: int = 0  # 0: no limit
    forbid_io_uring: bool = False


@dataclass
class Outcome:
    """What the parent knows afterwards; `reason` is empty when the worker finished."""

    found: dict[str, Any] = field(default_factory=dict)
    ready: dict[str, int] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    reason: str = ""

    def growth(self, name: str) -> int | None:
        """Peak of a memory field of the worker over its value before the work."""
        known = [value for value in (getattr(r, name) for r in self.readings) if value is not None]
        last = self.found.get("after", {}).get(name)
        known += [] if last is None else [last]
        return max(0, max(known) - self.ready[name]) if known and name in self.ready else None


def _work(task: Task) -> dict[str, Any]:
    import numpy as np
    from methods import READERS, Job

    order = None
    if task.order == "permutation":
        order = np.random.default_rng(0).permutation(task.rows)
    if "lowtide" in task.reader:
        import lowtide  # noqa: F401
    job = Job(
        **{
            name: getattr(task, name)
            for name in "path rows columns chunk piece epochs memory engine cache".split()
        },
        order=order,
    )
    reset_resident_peak()
    baseline = read_status()
    io_before = read_io().get("read_bytes")
    print(json.dumps(baseline), flush=True)
    sys.stdin.readline()
    told_s = time.monotonic()

    batches = READERS[task.reader](job)
    max_rows = task.max_rows or sys.maxsize
    rows, total, first_batch_s = 0, 0.0, None
    cpu, started_s = os.times(), time.perf_counter()
    until_s = started_s + task.seconds
    whole = True
    for batch in batches:
        rows += len(batch)
        total += float(batch[0, 0])
        now_s = time.perf_counter()
        if first_batch_s is None:
            first_batch_s = now_s - started_s
        if now_s > until_s or rows >= max_rows:
            whole = False
            break
    seconds = time.perf_counter() - started_s
    worked_s = time.monotonic() - told_s
    cpu_after = os.times()
    status = read_status()
    io_after = read_io().get("read_bytes")
    batches.close()  # type: ignore[attr-defined]
    return {
        "rows": rows,
        "seconds": seconds,
        "whole": whole,
        "worked_s": worked_s,
        "user_s": cpu_after.user - cpu.user,
        "system_s": cpu_after.system - cpu.system,
        "first_batch_s": first_batch_s,
        "after": status,
        "disk_read": None if io_before is None or io_after is None else io_after - io_before,
        "notes": {name: value for name, value in job.notes.items() if name != "touched"},
    }


def worker_main(text: str) -> int:
    """Runs one task; a worker never outlives the process that started it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    task = Task(**json.loads(text))
    try:
        if task.forbid_io_uring:
            from seccomp import forbid_io_uring

            forbid_io_uring()
        found = _work(task)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return 1
    print(json.dumps(found), flush=True)
    return 0


def run(task: Task, group: MemoryGroup | None, interval_s: float, io: bool = False) -> Outcome:
    """Starts a worker, samples it until it ends, and kills it when it overstays."""
    argv = [sys.executable, str(Path(__file__)), json.dumps(asdict(task))]
    outcome = Outcome()
    child = subprocess.Popen(
        group.command(argv) if group else argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    errors = ""
    try:
        outcome.ready = json.loads(child.stdout.readline() or "{}")
        outcome.reason = str(outcome.ready.pop("error", ""))
        with Sampler(child.pid, task.path, interval_s, io) as sampler:
            out, errors = child.communicate("\n", timeout=task.seconds + 60)
        outcome.found = json.loads(out or "{}")
        end_s = outcome.found.get("worked_s", float("inf"))  # after it the process is taken down
        outcome.readings = [r for r in sampler.readings if r.at_s <= end_s]
        outcome.reason = str(outcome.found.pop("error", outcome.reason))
    except subprocess.TimeoutExpired:
        outcome.reason = "no answer within its time"
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    if not outcome.found and not outcome.reason:
        outcome.reason = (errors.strip().splitlines() or [f"ended with {child.returncode}"])[-1]
    return outcome


if __name__ == "__main__":
    sys.exit(worker_main(sys.argv[1]))
