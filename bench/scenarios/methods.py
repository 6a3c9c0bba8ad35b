"""The methods of reading rows. Each takes a Job and returns an iterator of arrays.

Work that a method does before it returns is preparation and is not timed. Work of its iterator is
timed, including opening the file.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from processes import read_io

Rows = NDArray[Any]
FOLIO_BYTES = 2 << 20


@dataclass
class Job:
    """What to read, and how. `order` holds row numbers; None means file order."""

    path: str
    rows: int
    columns: int
    chunk: int = 4096
    piece: int = 4096  # cold maps deliver pieces, because one chunk can take half a minute
    order: NDArray[np.int64] | None = None
    memory: str = "64MiB"
    engine: str = "auto"
    cache: str = "auto"
    gap: int | str | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def row_bytes(self) -> int:
        return self.columns * 4

    def map(self) -> np.memmap[Any, Any]:
        return np.memmap(self.path, dtype=np.float32, mode="r", shape=(self.rows, self.columns))

    def chunks(self) -> Iterator[NDArray[np.int64]]:
        assert self.order is not None
        for first in range(0, len(self.order), self.chunk):
            yield self.order[first : first + self.chunk]

    def pieces(self, chunk: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        for first in range(0, len(chunk), self.piece):
            yield chunk[first : first + self.piece]


def memmap(job: Job) -> Iterator[Rows]:
    def run() -> Iterator[Rows]:
        view = job.map()
        for chunk in job.chunks():
            for piece in job.pieces(chunk):
                yield view[piece]

    return run()


def memmap_mapped(job: Job) -> Iterator[Rows]:
    view = job.map()
    job.notes["touched"] = float(view.reshape(-1)[:: mmap.PAGESIZE // 4].sum())

    def run() -> Iterator[Rows]:
        for chunk in job.chunks():
            yield view[chunk]

    return run()


def memmap_again(job: Job) -> Iterator[Rows]:
    """Fix 1: a new np.memmap for every chunk."""

    def run() -> Iterator[Rows]:
        for chunk in job.chunks():
            view = job.map()
            for piece in job.pieces(chunk):
                yield view[piece]

    return run()


def memmap_dontneed(job: Job) -> Iterator[Rows]:
    """Fix 2: one np.memmap, and madvise(MADV_DONTNEED) after every chunk."""

    def run() -> Iterator[Rows]:
        view = job.map()
        whole: mmap.mmap = view._mmap  # type: ignore[attr-defined]
        for chunk in job.chunks():
            for piece in job.pieces(chunk):
                yield view[piece]
            whole.madvise(mmap.MADV_DONTNEED)

    return run()


def _preadv_rows(job: Job, announce: bool) -> Iterator[Rows]:
    buffer = np.empty((job.chunk, job.columns), dtype=np.float32)
    places = [[row.data.cast("B")] for row in buffer]
    size, preadv, advise = job.row_bytes, os.preadv, os.posix_fadvise
    fd = os.open(job.path, os.O_RDONLY)
    try:
        for chunk in job.chunks():
            offsets = (chunk * size).tolist()
            if announce:
                for offset in offsets:
                    advise(fd, offset, size, os.POSIX_FADV_WILLNEED)
            for place, offset in zip(places, offsets, strict=False):
                preadv(fd, place, offset)
            yield buffer[: len(chunk)]
    finally:
        os.close(fd)


def preadv(job: Job) -> Iterator[Rows]:
    return _preadv_rows(job, announce=False)


def willneed(job: Job) -> Iterator[Rows]:
    return _preadv_rows(job, announce=True)


def fromfile(job: Job) -> Iterator[Rows]:
    def run() -> Iterator[Rows]:
        with open(job.path, "rb", buffering=0) as file:
            for first in range(0, job.rows, job.chunk):
                count = min(job.chunk, job.rows - first) * job.columns
                yield np.fromfile(file, np.float32, count).reshape(-1, job.columns)

    return run()


def readinto_drop(job: Job) -> Iterator[Rows]:
    """Reads in order and drops the cache behind, in whole 2 MiB folios, as parts would stay."""

    def run() -> Iterator[Rows]:
        buffer = np.empty((job.chunk, job.columns), dtype=np.float32)
        raw = buffer.data.cast("B")
        dropped = 0
        with open(job.path, "rb", buffering=0) as file:
            for first in range(0, job.rows, job.chunk):
                want = min(job.chunk, job.rows - first) * job.row_bytes
                got = 0
                while got < want:
                    more = file.readinto(raw[got:want])
                    if not more:
                        raise EOFError("the file ends before its last row")
                    got += more
                behind = file.tell() // FOLIO_BYTES * FOLIO_BYTES
                os.posix_fadvise(file.fileno(), dropped, behind - dropped, os.POSIX_FADV_DONTNEED)
                dropped = behind
                yield buffer[: want // job.row_bytes]
            os.posix_fadvise(file.fileno(), dropped, 0, os.POSIX_FADV_DONTNEED)

    return run()


def _open(job: Job) -> Any:
    import lowtide

    before, started_s = read_io(), time.perf_counter()
    array = lowtide.open(
        job.path,
        dtype="float32",
        shape=(job.rows, job.columns),
        memory=job.memory,
        engine=job.engine,
        cache=job.cache,
        gap=job.gap,
    )
    job.notes["open_s"] = time.perf_counter() - started_s
    after = read_io()
    if before and after:
        job.notes["open_read_calls"] = after["syscr"] - before["syscr"]
        job.notes["open_read_bytes"] = after["rchar"] - before["rchar"]
    return array


def _close(job: Job, array: Any) -> None:
    stats = array.stats()
    names = ["engine", "engine_reason", "cache", "bytes_asked", "bytes_read", "reads", "gap_bytes"]
    for name in names:
        if name in stats:
            job.notes[name] = stats[name]
    array.close()


def _lowtide_batches(job: Job, array: Any, epoch: int) -> Iterator[Rows]:
    order = "shuffle" if job.order is None else job.order
    for _, rows in array.batches(job.chunk, order=order, seed=0, epoch=epoch):
        yield rows


def lowtide_rows(job: Job) -> Iterator[Rows]:
    """Reads in the order of the job, or in lowtide's own shuffle if the job has none."""
    import lowtide  # noqa: F401

    def run() -> Iterator[Rows]:
        array = _open(job)
        try:
            yield from _lowtide_batches(job, array, 0)
        finally:
            _close(job, array)

    return run()


def lowtide_second_epoch(job: Job) -> Iterator[Rows]:
    """Times the second epoch, because the first one loads the file into the budget."""
    array = _open(job)
    for rows in _lowtide_batches(job, array, 0):
        job.notes.setdefault("touched", float(rows[0, 0]))

    def run() -> Iterator[Rows]:
        try:
            yield from _lowtide_batches(job, array, 1)
        finally:
            _close(job, array)

    return run()


def lowtide_sequential(job: Job) -> Iterator[Rows]:
    import lowtide  # noqa: F401

    def run() -> Iterator[Rows]:
        array = _open(job)
        try:
            yield from array.iter_chunks(job.chunk)
        finally:
            _close(job, array)

    return run()


READERS: dict[str, Callable[[Job], Iterator[Rows]]] = {
    "memmap": memmap,
    "memmap-mapped": memmap_mapped,
    "memmap-again": memmap_again,
    "memmap-dontneed": memmap_dontneed,
    "preadv": preadv,
    "willneed": willneed,
    "fromfile": fromfile,
    "readinto-drop": readinto_drop,
    "lowtide": lowtide_rows,
    "lowtide-second": lowtide_second_epoch,
    "lowtide-sequential": lowtide_sequential,
}
