"""One measurement of the benchmark `remote` in its own process; see `worker` for its parent."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

import worker


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON. max_rows and seconds end the work early."""

    reader: str
    endpoint: str  # "http://127.0.0.1:8333": a server of buckets, or our own
    key: str  # "bucket/object", or a path of our server
    size_bytes: int  # of the object
    rows: int
    ranges: int = 0  # how many are fetched; all methods fetch the same ones
    batch: int = 4096
    memory: str = "256MiB"
    gap: int | None = None
    requests: int = 128
    busy_us: int = 0
    max_rows: int = 0
    seconds: float = 60.0
    path: str = ""  # no local file is watched
    forbid_io_uring: bool = False

    @property
    def url(self) -> str:
        return f"{self.endpoint}/{self.key}"


def _work(task: Task) -> dict[str, Any]:
    from remote_methods import READERS

    method = READERS[task.reader](task)
    meter = worker.Meter()
    meter.ready()
    children = os.times()
    started_s = meter.start()
    found = method.read(started_s + task.seconds)
    found |= meter.stop()
    ended = os.times()  # curl is a process of its own
    found["user_s"] += ended.children_user - children.children_user
    found["system_s"] += ended.children_system - children.children_system
    return found | method.close()


if __name__ == "__main__":
    sys.exit(worker.serve(Task(**json.loads(sys.argv[1])), _work))
