"""One measurement of `./dev bench --peers` in its own process; see `worker` for its parent.

It runs in the interpreter of the peer: only the standard library, NumPy and the peer are there.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import worker
from processes import read_io

sys.path.insert(0, str(Path(__file__).parents[1]))
PHASES = 4  # of the marks that are among the tokens


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. `seconds` ends the work early."""

    adapter: str
    path: str
    action: str  # "prepare" | "check" | "measure" | "save"
    data: dict[str, Any] = field(default_factory=dict)  # the fields of adapters.Data
    steps: int = 0  # of "check" and "save"; 0: the whole epoch
    imported: bool = True  # False: importing the peer is timed, too
    seconds: float = 60.0
    forbid_io_uring: bool = False


def _adapter(task: Task) -> tuple[Any, Any]:
    from adapters import Data

    return importlib.import_module(f"adapters.{task.adapter}"), Data(**task.data)


def numbers_of(view: Any, kind: str, batch: Any) -> Any:
    """The numbers of the samples in a batch. Raises ValueError if one is not in the source."""
    import numpy as np

    found = np.asarray(batch)
    if kind == "rows":
        numbers = found[:, 0].astype(np.int64)
        if not np.array_equal(view[numbers], found):
            raise ValueError("a row differs from that of the source")
        return numbers
    flat = view.base
    length = min(found.shape[1], view.shape[1])
    starts = np.full(len(found), -1)
    for phase in range(PHASES):  # where the first mark is depends on where the window starts
        low, high = found[:, phase].astype(np.int64), found[:, phase + 1].astype(np.int64)
        tried = (low + (high << 16)) * PHASES - phase
        for place in np.flatnonzero((tried >= 0) & (tried <= len(flat) - length)):
            if np.array_equal(flat[tried[place] : tried[place] + length], found[place, :length]):
                starts[place] = tried[place]
    if (starts < 0).any():
        raise ValueError("a window differs from that of the source")
    return starts


def _check(task: Task) -> dict[str, Any]:
    """Compares batches with the source; a whole epoch must have every sample once."""
    import numpy as np

    peer, data = _adapter(task)
    view, seen = data.view(), []
    stream = peer.batches(data)
    for step, batch in enumerate(stream, 1):
        if len(batch) != data.batch_size and len(batch) * 2 > data.batch_size * 3:
            raise ValueError(f"a batch has {len(batch)} samples instead of {data.batch_size}")
        seen.append(numbers_of(view, data.kind, batch))
        if step == task.steps:
            break
    _close(stream)
    numbers = np.concatenate(seen)
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError("a sample came twice in one epoch")
    if not task.steps and len(numbers) < 0.95 * data.samples:
        raise ValueError(f"an epoch has {len(numbers)} of {data.samples} samples")
    if not data.shuffled and (np.diff(numbers) <= 0).any():
        raise ValueError("the samples are not in file order")
    return {"samples": len(numbers)}


def _close(stream: Iterator[Any]) -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        close()


def _digest(batch: Any) -> int:
    import zlib

    import numpy as np

    return zlib.crc32(np.ascontiguousarray(np.asarray(batch)))


def _save(task: Task) -> dict[str, Any]:
    """Runs to the middle of an epoch, and a second time one batch further, for the comparison."""
    peer, data = _adapter(task)
    stream = peer.batches(data)
    for _ in range(task.steps):
        next(stream)
    expected = _digest(next(stream))
    _close(stream)
    return {"state": peer.save(data, task.steps), "digest": expected}


def _measure(task: Task) -> dict[str, Any]:
    children = os.times()
    meter = worker.Meter()
    if task.imported:
        import numpy  # noqa: F401

        peer, data = _adapter(task)
    meter.ready()
    disk_bytes = read_io().get("read_bytes")
    started_s = meter.start()
    if not task.imported:
        peer, data = _adapter(task)
    stream = peer.batches(data)
    batch = next(stream)
    first_s = time.perf_counter()
    samples, digest = len(batch), _digest(batch) if task.steps == 1 else None
    until_s = started_s + task.seconds
    if task.steps != 1:
        for batch in stream:
            samples += len(batch)
            if time.perf_counter() > until_s:
                break
    found = meter.stop() | {"samples": samples, "digest": digest}
    del batch
    _close(stream)
    del stream
    ended = os.times()  # counts the processes of the peer, because they have ended
    found["user_s"] += ended.children_user - children.children_user
    found["system_s"] += ended.children_system - children.children_system
    after = read_io().get("read_bytes")  # so does this
    if disk_bytes is not None and after is not None:
        found["disk_read"] = after - disk_bytes
    return found | {"first_batch_s": first_s - started_s}


def _prepare(task: Task) -> dict[str, Any]:
    peer, data = _adapter(task)
    os.makedirs(data.folder, exist_ok=True)
    if not hasattr(peer, "prepare"):  # it shares the form of another adapter
        peer = importlib.import_module(f"adapters.{peer.FORM}")
    peer.prepare(data)
    return {"prepared": True}


def _work(task: Task) -> dict[str, Any]:
    if task.action == "measure":
        return _measure(task)
    worker.Meter().ready()
    return {"prepare": _prepare, "check": _check, "save": _save}[task.action](task)


def _own_answers() -> None:
    """Keeps what peers print, also from C++, out of the answers to the parent."""
    sys.__stdout__ = os.fdopen(os.dup(1), "w")  # type: ignore[misc]
    os.dup2(2, 1)


if __name__ == "__main__":
    _own_answers()
    sys.exit(worker.serve(Task(**json.loads(sys.argv[1])), _work))
