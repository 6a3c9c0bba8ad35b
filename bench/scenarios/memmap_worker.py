"""One pass over a mapped matrix in its own process, through np.memmap, lt.memmap or lt.open."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from worker import Meter, serve

_SINGLE_ROWS = 200_000


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. `seconds` ends a pass early."""

    reader: str  # "numpy" | "lowtide" | "take"
    job: str  # a key of JOBS
    path: str
    rows: int
    columns: int
    chunk: int = 4096
    memory: str = "256MiB"
    cache: str = "keep"
    seconds: float = 60.0
    forbid_io_uring: bool = False


def _slices(m: Any, task: Task, order: Any) -> Iterator[int]:
    for first in range(0, task.rows, task.chunk):
        part = m[first : first + task.chunk]
        part.sum()
        yield len(part)


def _reduction(m: Any, task: Task, order: Any) -> Iterator[int]:
    m.sum()
    yield task.rows


def _fancy(m: Any, task: Task, order: Any) -> Iterator[int]:
    for first in range(0, task.rows, task.chunk):
        yield len(m[order[first : first + task.chunk]])


def _rows(m: Any, task: Task, order: Any) -> Iterator[int]:
    for row in order:
        m[row].sum()
        yield 1


def _writes(m: Any, task: Task, order: Any) -> Iterator[int]:
    for first in range(0, task.rows, task.chunk):
        part = m[first : first + task.chunk]
        part += 1
        yield len(part)


JOBS: dict[str, Callable[[Any, Task, Any], Iterator[int]]] = {
    "slices": _slices,
    "reduction": _reduction,
    "fancy": _fancy,
    "rows": _rows,
    "writes": _writes,
}


class _Taker:
    """Uses lt.open instead of a map, to compare it with shuffled fancy reads."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, rows: Any) -> Any:
        return self._array.take(rows)


def _open(task: Task) -> Any:
    shape = (task.rows, task.columns)
    mode: Any = "r+" if task.job == "writes" else "r"
    if task.reader == "numpy":
        return np.memmap(task.path, np.float32, mode, shape=shape)
    import lowtide

    if task.reader == "take":
        return _Taker(lowtide.open(task.path, "float32", shape, memory=task.memory))
    return lowtide.memmap(
        task.path, np.float32, mode, shape=shape, memory=task.memory, cache=task.cache
    )


def _work(task: Task) -> dict[str, Any]:
    m = _open(task)
    order: Any = np.random.default_rng(0).permutation(task.rows)
    if task.job == "rows":
        order = order[:_SINGLE_ROWS].tolist()
    meter = Meter()
    meter.ready()
    until_s = meter.start() + task.seconds
    rows, whole = 0, True
    for count in JOBS[task.job](m, task, order):
        rows += count
        if time.perf_counter() > until_s:
            whole = False
            break
    found = meter.stop()
    trims = m._mmap.ceiling.stats()["trims"] if task.reader == "lowtide" else None
    return {"rows": rows, "whole": whole, "trims": trims, **found}


if __name__ == "__main__":
    sys.exit(serve(Task(**json.loads(sys.argv[1])), _work))
