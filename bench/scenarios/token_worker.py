"""One measurement of the benchmark `tokens` in its own process; see `worker` for its parent."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import worker

if TYPE_CHECKING:
    from token_methods import Batch, Job

FIXED_WORK = range(1000)  # its sum takes about 10 us, longer where others use the processor


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. max_steps and seconds end the work early.

    busy_us: how long the consumer computes after every batch; its wait for the next batch is
        measured. check_steps: if not 0, compares this many batches with a map instead of measuring.
    """

    reader: str
    path: str
    tokens: int
    batch_size: int = 12
    block_size: int = 1024
    epochs: int | None = None
    memory: str = "256MiB"
    engine: str = "auto"
    cache: str = "auto"
    state: dict[str, Any] | None = None
    seconds: float = 60.0
    max_steps: int = 0  # 0: no limit
    busy_us: int = 0
    check_steps: int = 0
    forbid_io_uring: bool = False


def run(task: Task, group: Any = None) -> worker.Outcome:
    """The parent's side."""
    return worker.run(task, group, 0.02, program=__file__)


def _check(job: Job, batches: Iterator[Batch], steps: int) -> None:
    """Raises ValueError unless every batch equals what a map of the file contains."""
    import numpy as np
    from token_methods import map_of

    data, size = map_of(job.path), job.block_size
    for step, (ix, batch) in enumerate(zip(job.starts(), batches)):
        samples = getattr(batch, "samples", None)
        starts = ix.tolist() if samples is None else (samples * size).tolist()
        windows = np.stack([data[start : start + size + 1] for start in starts]).astype(np.int64)
        x, y = (tensor.numpy() for tensor in batch)
        if x.dtype != np.int64 or y.dtype != np.int64:
            raise ValueError(f"batch {step} is {x.dtype} and {y.dtype}, not int64")
        if not (np.array_equal(x, windows[:, :-1]) and np.array_equal(y, windows[:, 1:])):
            raise ValueError(f"batch {step} differs from a map of the file")
        if step + 1 == steps:
            return
    raise ValueError(f"ended before batch {steps}")


def _flat_out(batches: Iterator[Batch], until_s: float, max_steps: int) -> int:
    steps, now = 0, time.perf_counter
    for _batch in batches:
        steps += 1
        if now() > until_s or steps >= max_steps:
            break
    return steps


def _while_busy(
    batches: Iterator[Batch],
    until_s: float,
    max_steps: int,
    busy_us: int,
    waits_ns: array[int],
    works_ns: array[int],
) -> int:
    """Appends how long each batch was waited for, and how long a fixed piece of work took then."""
    steps, now_ns, busy_ns = 0, time.perf_counter_ns, busy_us * 1000
    until_ns = int(until_s * 1e9)
    while steps < max_steps:
        asked_ns = now_ns()
        _batch = next(batches, None)
        got_ns = now_ns()
        if _batch is None or got_ns > until_ns:
            break
        waits_ns.append(got_ns - asked_ns)
        steps += 1
        busy_until_ns = got_ns + busy_ns
        begun_ns = now_ns()
        sum(FIXED_WORK)
        works_ns.append(now_ns() - begun_ns)
        while now_ns() < busy_until_ns:
            pass
    return steps


def _waits(waits_ns: array[int], works_ns: array[int]) -> dict[str, float]:
    parts = statistics.quantiles(waits_ns, n=100)
    return {
        "work_s": statistics.median(works_ns) * 1e-9,
        "wait_s": parts[49] * 1e-9,
        "wait_p90_s": parts[89] * 1e-9,
        "wait_p99_s": parts[98] * 1e-9,
    }


def _work(task: Task) -> dict[str, Any]:
    from token_methods import READERS, Job

    if "lowtide" in task.reader:
        import lowtide.torch  # noqa: F401
    names = "path tokens batch_size block_size epochs memory engine cache state".split()
    job = Job(**{name: getattr(task, name) for name in names})
    next(job.starts())  # keeps torch's initialisation out of the measurement
    children = os.times()
    meter = worker.Meter()
    meter.ready()
    batches = READERS[task.reader](job)
    if task.check_steps:
        _check(job, batches, task.check_steps)
        batches.close()  # type: ignore[attr-defined]
        return {"checked": task.check_steps}
    waits_ns, works_ns = array("q"), array("q")
    max_steps = task.max_steps or sys.maxsize
    started_s = meter.start()
    until_s = started_s + task.seconds
    steps = 1 if next(batches, None) is not None else 0
    first_batch_s = time.perf_counter() - started_s
    if task.busy_us:
        steps += _while_busy(batches, until_s, max_steps - 1, task.busy_us, waits_ns, works_ns)
    elif max_steps > 1:
        steps += _flat_out(batches, until_s, max_steps - 1)
    found = {"steps": steps, "first_batch_s": first_batch_s, **meter.stop()}
    batches.close()  # type: ignore[attr-defined]
    ended = os.times()  # counts the processes of a DataLoader, because they have ended
    found["user_s"] += ended.children_user - children.children_user
    found["system_s"] += ended.children_system - children.children_system
    return found | (_waits(waits_ns, works_ns) if waits_ns else {}) | {"notes": job.notes}


if __name__ == "__main__":
    sys.exit(worker.serve(Task(**json.loads(sys.argv[1])), _work))
