"""Array.map: a function over the rows of an array, from one file to another, in flat memory."""

from __future__ import annotations

import contextvars
import os
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments
from lowtide._closing import Closing
from lowtide._data.batches import Batches
from lowtide._progress import Standing, shown
from lowtide._writer.create import create

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import numpy.typing as npt

    from lowtide._data.array import Array, Path
    from lowtide._writer.writer import Writer

    AnyArray = npt.NDArray[Any]
    Function = Callable[[AnyArray], npt.ArrayLike]
    Placed = tuple[int, AnyArray]  # the number of the first row, and the rows
    Stream = Generator[Placed, None, None]

# The writer has a quarter of `memory`, at most what makes it faster; if that does not fit beside
# the chunks, the least that it needs.
_WRITER_SHARE = 4
_LEAST_WRITER_BYTES = 320 << 10
_MOST_WRITER_BYTES = 48 << 20
_MOST_WORKERS = 1 << 10


def map_rows(
    array: Array,
    function: Function,
    path: Path,
    rows: int,
    workers: int,
    progress: bool | Callable[[int, int], object] | None,
) -> None:
    """Implements `Array.map`, which documents the arguments."""
    array._check_open()
    if not array.shape:
        raise TypeError("cannot map a 0-d array: it has no rows")
    if not callable(function):
        raise TypeError(f"fn must be callable, not {type(function).__name__}")
    rows = _arguments.integer(rows, "rows", 1, _arguments.MAX)
    workers = _arguments.integer(workers, "workers", 1, _MOST_WORKERS)
    report = shown(progress, "map", tasks=False)
    _check_target(array, path)
    size = array.shape[0]
    step = min(rows, max(size, 1))
    writer_bytes = min(max(array.memory // _WRITER_SHARE, _LEAST_WRITER_BYTES), _MOST_WRITER_BYTES)
    # The first chunk decides the dtype and the shape, and what a result needs.
    first = _result(function(array[:step]), 0, min(step, size))
    calls = _Calls(function, first)
    # One more chunk than there are workers waits for them, and one more result is being written.
    held = workers + 1 if workers > 1 else 1
    beside = held * step * array._core.row_bytes + (held + 1) * first.nbytes
    try:
        reading = _chunks(array, step, beside + writer_bytes)
    except ValueError:  # it does not fit with a fast writer; the message is about the least one
        writer_bytes = _LEAST_WRITER_BYTES
        reading = _chunks(array, step, beside + writer_bytes)
    with reading:  # what it claims is held until all is written
        shape = (size, *first.shape[1:])
        with (
            create(path, first.dtype, shape, writer_bytes) as writer,
            _Behind(writer) as behind,
            closing(report),
            closing(calls.results(_read(reading, step), workers)) as results,
        ):
            done = len(first)
            behind.write(0, first)
            del first
            row_bytes = array._core.row_bytes
            report.show(Standing(done, size, "rows", unit_bytes=row_bytes))
            for place, found in results:
                behind.write(place, found)
                done += len(found)
                report.show(Standing(done, size, "rows", unit_bytes=row_bytes))
            behind.wait()


def _check_target(array: Array, path: Any) -> None:
    """Raises ValueError if a file of the array would be replaced."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be a str or an os.PathLike, not {type(path).__name__}")
    for own in array.paths:
        try:
            same = os.path.samefile(own, os.fsdecode(path))
        except OSError:  # one of them does not exist
            continue
        if same:
            raise ValueError(
                f"{os.fsdecode(path)} is a file of this array, and an error in fn would destroy "
                "it: write to another path, and rename the new file once you have checked it"
            )


def _chunks(array: Array, rows: int, beside_bytes: int) -> Batches:
    """Claims its memory at once, and returns the chunks after the first one, read ahead."""
    batches = Batches(
        array._core, array.shape, array.dtype, rows, "sequential", 0, 0, 0, 1, False,
        beside_bytes=beside_bytes,
    )  # fmt: skip
    if len(batches):
        batches._core.seek(1)
    return batches


def _read(batches: Batches, rows: int) -> Stream:
    for number, (_, chunk) in enumerate(batches, 1):
        yield number * rows, chunk


def _result(result: Any, first: int, count: int) -> AnyArray:
    """Returns what fn returned for `count` rows as an ndarray. Raises ValueError, TypeError."""
    found = np.asarray(result)
    if found.dtype.hasobject:
        kind = f"dtype {found.dtype}" if found.ndim else type(result).__name__
        raise TypeError(f"fn must return an array of numbers, one row per input row, not {kind}")
    if not found.ndim or len(found) != count:
        raise ValueError(
            f"fn must return one row per input row: for rows {first}:{first + count} it returned "
            f"shape {found.shape}, not ({count}, ...)"
        )
    return found


class _Calls:
    """The calls of fn, and the dtype and shape that each result must have."""

    def __init__(self, function: Function, first: AnyArray) -> None:
        self._function = function
        self._dtype = first.dtype
        self._row = first.shape[1:]
        self._errors = np.geterr()  # NumPy before 2 keeps them per thread, later ones per context

    def results(self, chunks: Stream, workers: int) -> Stream:
        """Yields each result with the number of its first row, in the order of completion."""
        if workers == 1:  # on the caller's thread, where torch.no_grad() and the like still hold
            for first, chunk in chunks:
                yield self._call(first, chunk)
            return
        pool = ThreadPoolExecutor(workers, "lowtide-map")
        running: set[Future[Placed]] = set()
        try:
            for first, chunk in chunks:
                context = contextvars.copy_context()
                running.add(pool.submit(context.run, self._call_there, first, chunk))
                del chunk
                if len(running) > workers:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    while done:
                        yield done.pop().result()
            for one in as_completed(running):
                yield one.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _call_there(self, first: int, chunk: AnyArray) -> Placed:
        with np.errstate(**self._errors):
            return self._call(first, chunk)

    def _call(self, first: int, chunk: AnyArray) -> Placed:
        found = _result(self._function(chunk), first, len(chunk))
        where = f"for rows {first}:{first + len(chunk)} fn returned"
        if found.dtype != self._dtype:
            raise TypeError(f"{where} dtype {found.dtype}, but before {self._dtype}")
        if found.shape[1:] != self._row:
            raise ValueError(f"{where} rows of shape {found.shape[1:]}, but before {self._row}")
        return first, found


class _Behind(Closing):
    """Writes rows on a thread of its own, while the next ones are made."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._pool = ThreadPoolExecutor(1, "lowtide-map-write")
        self._last: Future[None] | None = None

    def write(self, first: int, rows: AnyArray) -> None:
        """Writes rows once the previous ones are written. Raises what the writer raised."""
        self.wait()
        self._last = self._pool.submit(self._put, first, rows)

    def _put(self, first: int, rows: AnyArray) -> None:
        self._writer[first : first + len(rows)] = rows

    def wait(self) -> None:
        """Returns when the writer has taken the rows. Raises what the writer raised."""
        if self._last is not None:
            self._last.result()
            self._last = None

    def close(self) -> None:
        """Waits for the rows that are being written; their error no longer matters."""
        self._pool.shutdown(cancel_futures=True)
