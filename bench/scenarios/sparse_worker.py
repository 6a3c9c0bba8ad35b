"""One measurement of the benchmark `sparse` in its own process; see `worker` for its parent."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import sparse_methods
import worker

CHECKED_BATCHES = 4  # when nothing is measured
CHECKED_S = 20.0


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. `seconds` ends the work early."""

    reader: str
    path: str
    rows: int
    batch_size: int
    block: int = 1  # neighbours that stay together, for annbatch
    epochs: int = 1
    memory: str = "256MiB"
    cache: str = "auto"
    seconds: float = 10.0
    check: bool = False  # compares some batches instead of measuring
    forbid_io_uring: bool = False


def _checked(method: Any) -> dict[str, Any]:
    """Compares the first batches with the source, row by row."""
    rows, until_s = 0, time.perf_counter() + CHECKED_S
    for _, batch in zip(range(CHECKED_BATCHES), method.batches(), strict=False):
        rows += method.check(batch)
        if time.perf_counter() > until_s:
            break
    return {"rows": rows}


def _work(task: Task) -> dict[str, Any]:
    sys.path.pop(0)  # else packages that look for PyData's `sparse` would find this benchmark
    method = sparse_methods.READERS[task.reader](task)  # imports what it needs
    meter = worker.Meter()
    meter.ready()
    method.open()
    if task.check:
        meter.start()
        return _checked(method) | meter.stop()
    rows, last = 0, None
    until_s = meter.start() + task.seconds
    batches = method.batches()
    for last in batches:
        rows += method.rows(last)
        if time.perf_counter() > until_s:
            break
    found = meter.stop()
    if last is None:
        raise ValueError("there is no batch")
    method.check(last)
    batches.close()
    return {"rows": rows, **found}


if __name__ == "__main__":
    sys.exit(worker.serve(Task(**json.loads(sys.argv[1])), _work))
