"""One reduction of a matrix in its own process, through np.memmap or lt.open."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from worker import Meter, serve


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON."""

    reader: str  # "numpy" | "lowtide"
    name: str  # a reduction: "mean"
    axis: int | None
    path: str
    rows: int
    columns: int
    memory: str = "64MiB"
    cache: str = "keep"
    seconds: float = 60.0
    forbid_io_uring: bool = False


def _work(task: Task) -> dict[str, Any]:
    shape = (task.rows, task.columns)
    a: Any
    if task.reader == "numpy":
        a = np.memmap(task.path, np.float32, "r", shape=shape)
    else:
        import lowtide

        a = lowtide.open(task.path, "float32", shape, memory=task.memory, cache=task.cache)
    meter = Meter()
    meter.ready()
    meter.start()
    found = getattr(a, task.name)(axis=task.axis)
    measured = meter.stop()
    return {"checksum": float(np.sum(found, dtype=np.float64)), **measured}


if __name__ == "__main__":
    sys.exit(serve(Task(**json.loads(sys.argv[1])), _work))
