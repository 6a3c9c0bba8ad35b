"""One measurement of the benchmark `writing` in its own process; see `worker` for its parent."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import worker


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, passed as JSON."""

    reader: str  # the method, which here writes
    path: str  # of what it writes
    source: str  # of the matrix that is shuffled or copied
    rows: int
    documents: int
    memory: str
    group: str = ""  # the folder of its memory group
    seconds: float = 600.0
    forbid_io_uring: bool = False


def _peak_bytes(group: str) -> int | None:
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        try:
            return int(Path(group, name).read_text(encoding="ascii"))
        except OSError:
            continue
    return None


def _work(task: Task) -> dict[str, Any]:
    from writing_methods import WRITERS
    from writing_peers import PEERS

    method = (WRITERS | PEERS)[task.reader](task)
    meter = worker.Meter()
    meter.ready()
    meter.start()
    size_bytes = method.write()
    found = meter.stop() | {"group_peak": _peak_bytes(task.group)}
    method.check()  # which may read a lot
    return {"bytes": size_bytes, **found}


if __name__ == "__main__":
    sys.exit(worker.serve(Task(**json.loads(sys.argv[1])), _work))
