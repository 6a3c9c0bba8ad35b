"""One measurement of the benchmark `columns` in its own process; see `worker` for its parent."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from typing import Any

import worker


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. `seconds` ends the work early."""

    reader: str
    path: str  # of the matrix
    labels: str
    tokens: str
    rows: int
    documents: int
    batch_size: int
    epochs: int = 1
    memory: str = "256MiB"
    cache: str = "auto"
    seconds: float = 60.0
    forbid_io_uring: bool = False


def _work(task: Task) -> dict[str, Any]:
    from columns_methods import READERS, check, prepare

    prepare(task)
    children = os.times()
    meter = worker.Meter()
    meter.ready()
    batches = READERS[task.reader](task)
    samples, size_bytes, last = 0, 0, None
    until_s = meter.start() + task.seconds
    for batch in batches:
        samples += task.batch_size
        size_bytes += batch[0].nbytes
        last = batch
        if time.perf_counter() > until_s:
            break
    found = meter.stop()
    batches.close()  # type: ignore[attr-defined]
    if last is None:
        raise ValueError("there is no batch")
    check(task, last)
    ended = os.times()  # counts the processes of a DataLoader, because they have ended
    found["user_s"] += ended.children_user - children.children_user
    found["system_s"] += ended.children_system - children.children_system
    return {"samples": samples, "first_column_bytes": size_bytes, **found}


if __name__ == "__main__":
    sys.exit(worker.serve(Task(**json.loads(sys.argv[1])), _work))
