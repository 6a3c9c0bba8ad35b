"""One job over a map in a fresh process, for the proofs about its pages. Told by JSON.

Says its memory after all imports and with the map made, waits for a line, works, and says what it
found and its peaks. Run by test_memmap_memory.py, which samples it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import lowtide as lt
import numpy as np
from memory_job import report_peaks


def slices(m: Any, told: dict[str, Any]) -> int:
    step = told["step"]
    return sum(int(m[at : at + step].sum(dtype=np.int64)) for at in range(0, len(m), step))


def single_rows(m: Any, told: dict[str, Any]) -> int:
    order = np.random.default_rng(0).permutation(len(m))
    return sum(int(m[int(row)].sum(dtype=np.int64)) for row in order[: told["count"]])


def elements(m: Any, told: dict[str, Any]) -> int:
    order = np.random.default_rng(0).permutation(len(m))
    return sum(int(m[row, 5]) for row in order[: told["count"]].tolist())


def rows(m: Any, told: dict[str, Any]) -> int:
    order = np.random.default_rng(0).permutation(len(m))
    return sum(int(m[order[at : at + 1024]].sum(dtype=np.int64)) for at in range(0, len(m), 1024))


def short_rows(m: Any, told: dict[str, Any]) -> int:
    flat = m.reshape(-1)
    rng = np.random.default_rng(0)
    return sum(int(flat[rng.integers(0, flat.size, 4096)].sum(dtype=np.int64)) for _ in range(20))


def whole(m: Any, told: dict[str, Any]) -> int:
    os.nice(10)  # of this thread alone: on a busy machine, the one that trims goes first
    return sum(int(np.asarray(m).sum(dtype=np.int64)) for _ in range(3))


def writes(m: Any, told: dict[str, Any]) -> int:
    for at in range(0, len(m), told["step"]):
        m[at : at + told["step"]] = at
    order = np.random.default_rng(0).permutation(len(m))[: told["count"]]
    m[order] = order[:, None]
    return 0


JOBS = {
    job.__name__: job for job in (slices, single_rows, elements, rows, short_rows, whole, writes)
}


def main() -> None:
    told = json.loads(sys.argv[1])
    options = {name: told[name] for name in ("memory", "cache", "mode") if name in told}
    m = lt.memmap(told["path"], dtype="<u4", shape=tuple(told["shape"]), **options)
    report_peaks(lambda: {"sum": JOBS[told["job"]](m, told), **m._mmap.ceiling.stats()})


if __name__ == "__main__":
    main()
