"""One measurement in its own process, and the parent's side of it.

The worker prints its memory before the work, waits for a line, works, prints its results, and waits
until its input ends. Both outputs are one line of JSON. Meanwhile the parent watches the worker's
memory from outside.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from cgroup import MemoryGroup
from processes import Reading, Sampler, read_io, read_status, reset_resident_peak


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. max_rows and seconds end the work early."""

    reader: str
    path: str
    rows: int
    columns: int
    chunk: int = 4096
    piece: int = 4096
    order: str = "permutation"  # "permutation" (NumPy's, seed 0) | "own" | "sequential"
    memory: str = "64MiB"
    engine: str = "auto"
    cache: str = "auto"
    gap: int | str | None = None
    seconds: float = 60.0
    max_rows: int = 0  # 0: no limit
    forbid_io_uring: bool = False


@dataclass
class Outcome:
    """What the parent knows afterwards; `reason` is empty if the worker finished."""

    found: dict[str, Any] = field(default_factory=dict)
    ready: dict[str, int] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    reason: str = ""

    def growth(self, *names: str) -> int | None:
        """Returns how far a memory field, or a sum of fields, rose above its value before."""
        known = [_sum([getattr(reading, name) for name in names]) for reading in self.readings]
        last = self.found.get("after", {})
        known.append(_sum([last.get(name) for name in names]))
        before = _sum([self.ready.get(name) for name in names])
        peaks = [value for value in known if value is not None]
        return max(0, max(peaks) - before) if peaks and before is not None else None


def _tell(found: dict[str, Any]) -> None:
    """Answers the parent. Whoever prints to sys.stdout meanwhile does not disturb it."""
    print(json.dumps(found), file=sys.__stdout__, flush=True)


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


PERF_FILE = (
    "LOWTIDE_BENCH_PERF"  # a variable that names the file of perf's samples; see hotpaths.py
)


def _start_perf() -> subprocess.Popen[bytes] | None:
    """Has perf sample this process from now on, if the environment names a file for it."""
    path = os.environ.get(PERF_FILE)
    if not path:
        return None
    argv = ["perf", "record", "--quiet", "-F", "2000", "-p", str(os.getpid()), "-o", path]
    perf = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    while perf.poll() is None and not (os.path.exists(path) and os.path.getsize(path)):
        time.sleep(0.01)
    return perf


class Meter:
    """The worker's reports: `ready`, then `start` and `stop` around the timed part."""

    def ready(self) -> None:
        """Reports the memory before the work to the parent and waits for its signal."""
        reset_resident_peak()
        _tell(read_status())
        sys.stdin.readline()
        self._perf = _start_perf()
        self._told_s = time.monotonic()
        self._disk_bytes = read_io().get("read_bytes")

    def start(self) -> float:
        """Starts the clock and returns time.perf_counter()."""
        self._cpu = os.times()
        self._started_s = time.perf_counter()
        return self._started_s

    def stop(self) -> dict[str, Any]:
        seconds = time.perf_counter() - self._started_s
        worked_s = time.monotonic() - self._told_s
        cpu = os.times()
        status = read_status()
        before, after = self._disk_bytes, read_io().get("read_bytes")
        if self._perf is not None:
            self._perf.send_signal(signal.SIGINT)
            self._perf.wait()
        return {
            "seconds": seconds,
            "worked_s": worked_s,
            "user_s": cpu.user - self._cpu.user,
            "system_s": cpu.system - self._cpu.system,
            "after": status,
            "disk_read": None if before is None or after is None else after - before,
        }


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
            for name in "path rows columns chunk piece memory engine cache gap".split()
        },
        order=order,
    )
    meter = Meter()
    meter.ready()
    batches = READERS[task.reader](job)
    max_rows = task.max_rows or sys.maxsize
    rows, total, first_batch_s = 0, 0.0, None
    started_s = meter.start()
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
    found = meter.stop()
    batches.close()  # type: ignore[attr-defined]
    notes = {name: value for name, value in job.notes.items() if name != "touched"}
    return {"rows": rows, "whole": whole, "first_batch_s": first_batch_s, **found, "notes": notes}


def serve(task: Any, work: Callable[[Any], dict[str, Any]]) -> int:
    """Runs one task; a worker never outlives the process that started it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    try:
        if task.forbid_io_uring:
            from seccomp import forbid_io_uring

            forbid_io_uring()
        found = work(task)
    except Exception as error:
        _tell({"error": f"{type(error).__name__}: {error}"})
        return 1
    _tell(found)
    sys.stdin.read()
    return 0


def _converse(child: subprocess.Popen[str], outcome: Outcome, sampler: Sampler) -> None:
    assert child.stdin is not None and child.stdout is not None
    outcome.ready = json.loads(child.stdout.readline() or "{}")
    outcome.reason = str(outcome.ready.pop("error", ""))
    if outcome.reason or not outcome.ready:
        return
    with sampler:
        child.stdin.write("\n")
        child.stdin.flush()
        outcome.found = json.loads(child.stdout.readline() or "{}")
    outcome.reason = str(outcome.found.pop("error", ""))


def run(
    task: Any,
    group: MemoryGroup | None,
    interval_s: float,
    program: str = __file__,
    python: str = sys.executable,
) -> Outcome:
    """Starts a worker, samples it until its work is done, and kills it if it takes too long.

    `task` is a dataclass with path, seconds and forbid_io_uring, which `program` understands;
    `python` runs it.
    """
    argv = [python, program, json.dumps(asdict(task))]
    outcome = Outcome()
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            group.command(argv) if group else argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        late = threading.Timer(task.seconds + 60, child.kill)
        late.start()
        try:
            sampler = Sampler(child.pid, task.path, interval_s, group)
            _converse(child, outcome, sampler)
            end_s = outcome.found.get("worked_s", float("inf"))  # later readings show the teardown
            outcome.readings = [r for r in sampler.readings if r.at_s <= end_s]
        except OSError:
            pass  # it ended early, and its stderr may say why
        except BaseException:
            child.kill()
            raise
        finally:
            child.communicate()
            overstayed = late.finished.is_set()
            late.cancel()
        if not outcome.found and not outcome.reason:
            errors.seek(0)
            said = errors.read().strip().splitlines() or [f"exit code {child.returncode}"]
            outcome.reason = "no answer in time" if overstayed else said[-1]
    return outcome


if __name__ == "__main__":
    sys.exit(serve(Task(**json.loads(sys.argv[1])), _work))
