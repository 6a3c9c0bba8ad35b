"""One measurement of the benchmark `scale` in its own process; see `worker` for its parent.

Every method gets one permutation of the rows, which is drawn before its memory counts. Lowtide
draws its own order.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import worker
from matrix import COLUMNS


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. `seconds` ends the epoch early."""

    reader: str
    path: str
    offset_bytes: int  # where the rows begin
    rows: int
    batch_size: int
    memory: str = "64MiB"
    seconds: float = 60.0
    forbid_io_uring: bool = False


Batches = Iterator[Any]
CHECKED_ROWS = 8


def _map(task: Task) -> np.memmap[Any, Any]:
    shape = (task.rows, COLUMNS)
    return np.memmap(task.path, "float32", "r", offset=task.offset_bytes, shape=shape)


def _memmap(task: Task, order: list[Any]) -> Batches:
    rows = _map(task)
    for numbers in order:
        yield rows[numbers]


def _memmap_again(task: Task, order: list[Any]) -> Batches:
    """A new map for each batch, which is said to keep memory low."""
    for numbers in order:
        yield _map(task)[numbers]


class _Rows:
    """A data set of torch's whose items are batches; each worker process makes its own map."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._rows: Any = None

    def __getitem__(self, numbers: Any) -> Any:
        import torch

        if self._rows is None:
            self._rows = _map(self._task)
        return torch.from_numpy(self._rows[numbers])


def _dataloader(task: Task, order: list[Any]) -> Batches:
    import torch.utils.data

    yield from torch.utils.data.DataLoader(
        _Rows(task), batch_size=None, sampler=order, num_workers=2
    )


def _h5py(task: Task, order: list[Any]) -> Batches:
    import h5py

    with h5py.File(task.path) as file:
        stored = file["x"]
        for numbers in order:
            places = np.argsort(numbers)  # h5py wants increasing numbers
            batch = np.empty((len(numbers), COLUMNS), np.float32)
            batch[places] = stored[numbers[places]]
            yield batch


def _lowtide(task: Task, _: list[Any]) -> Batches:
    import lowtide as lt

    shape = (task.rows, COLUMNS)
    told: dict[str, Any] = {"offset": task.offset_bytes, "memory": task.memory, "cache": "drop"}
    with lt.open(task.path, "float32", shape, **told) as rows:
        for _, batch in rows.batches(task.batch_size, order="shuffle", seed=0):
            yield batch


READERS: dict[str, tuple[Callable[[Task, list[Any]], Batches], str]] = {
    "memmap": (_memmap, "numpy"),
    "again": (_memmap_again, "numpy"),
    "dataloader": (_dataloader, "torch.utils.data"),
    "h5py": (_h5py, "h5py"),
    "lowtide": (_lowtide, "lowtide"),
}  # and what each imports


def _order(task: Task) -> list[Any]:
    if task.reader == "lowtide":
        return []
    numbers = np.random.default_rng(0).permutation(task.rows)
    return np.array_split(numbers, range(task.batch_size, task.rows, task.batch_size))


def _check(task: Task, batch: Any) -> None:
    """The first column of a row is its number."""
    found = np.asarray(batch)[:CHECKED_ROWS]
    numbers = found[:, 0].astype(np.int64)
    if not np.array_equal(_map(task)[numbers], found):
        raise ValueError("a row differs from that of the file")


def _work(task: Task) -> dict[str, Any]:
    read, package = READERS[task.reader]
    __import__(package)
    order = _order(task)
    meter = worker.Meter()
    meter.ready()
    batches = read(task, order)
    rows, last = 0, None
    until_s = meter.start() + task.seconds
    for batch in batches:
        rows += len(batch)
        last = batch if rows == len(batch) else last
        if time.perf_counter() > until_s:
            break
    found = meter.stop()
    batches.close()  # type: ignore[attr-defined]
    _check(task, last)
    return {"rows": rows, **found}


if __name__ == "__main__":
    sys.exit(worker.serve(Task(**json.loads(sys.argv[1])), _work))
