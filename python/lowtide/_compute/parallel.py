"""Work on blocks by several threads, which read some blocks while others are worked on."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
import time
from collections import deque
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from lowtide._compute.blocks import BlockReader, Index

    T = TypeVar("T")
    AnyArray = npt.NDArray[Any]
    Work = Callable[[AnyArray, Index], T]

# Fewer blocks are not worth a thread.
_MIN_BLOCKS = 8
# So many blocks may wait for each other thread.
_AHEAD = 2
# Cached blocks are best read and worked on by two threads. If reading takes many times as long as
# the work, it waits for a disk, and more threads keep more reads in flight.
_MOST_HELPERS = 3
_WAITS = 8


def results(reader: BlockReader, work: Work[T]) -> Iterator[tuple[Index, T]]:
    """Yields pairs (index, work(block, index)) in the order of the blocks.

    The caller's thread and others, which live as long as this iterator, take blocks in turn. The
    results and their order do not depend on the threads. `work` must not keep the block.
    """
    indices = reader.indices()
    buffer = reader.buffer()
    if len(reader) < _MIN_BLOCKS:
        for index in indices:
            yield index, work(reader.read(index, buffer), index)
        return
    with ExitStack() as stack:
        helpers: list[_Helper] = []
        groups: deque[tuple[Index, ...]] = deque()  # a block of this thread, and one of each helper
        pace = _Pace()
        while True:
            wanted = len(helpers) < _MOST_HELPERS and pace.waits()
            if wanted or (not helpers and len(os.sched_getaffinity(0)) > 1):
                helpers.append(stack.enter_context(_Helper(reader, work)))
                pace = _Pace()
            while len(groups) < _AHEAD and (group := tuple(islice(indices, 1 + len(helpers)))):
                groups.append(group)
                for helper, index in zip(helpers, group[1:]):
                    helper.todo.put(index)
            if not groups:
                return
            own, *others = groups.popleft()
            yield own, pace.run(reader, own, buffer, work)
            for helper, index in zip(helpers, others):
                yield index, helper.next()


class _Pace:
    """How long a thread reads, and how long it works."""

    def __init__(self) -> None:
        self._blocks = 0
        self._read_s = self._work_s = 0.0

    def run(self, reader: BlockReader, index: Index, buffer: AnyArray, work: Work[T]) -> T:
        """Returns what `work` returns for this block."""
        begin_s = time.perf_counter()
        block = reader.read(index, buffer)
        read_s = time.perf_counter()
        found = work(block, index)
        self._work_s += time.perf_counter() - read_s
        self._read_s += read_s - begin_s
        self._blocks += 1
        return found

    def waits(self) -> bool:
        """Returns whether the thread mostly waits for reads."""
        return self._blocks >= _MIN_BLOCKS and self._read_s > _WAITS * self._work_s


class _Helper:
    """A thread that works on the blocks in `todo`."""

    def __init__(self, reader: BlockReader, work: Work[Any]) -> None:
        self.todo: queue.SimpleQueue[Index | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._stopped = False
        self._errors = np.geterr()  # NumPy before 2 keeps them per thread, later ones per context
        run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=run, args=(self._run, reader, work), name="lowtide-reduce"
        )

    def _run(self, reader: BlockReader, work: Work[Any]) -> None:
        try:
            buffer = reader.buffer()
            with np.errstate(**self._errors):
                while (index := self.todo.get()) is not None and not self._stopped:
                    self._done.put((work(reader.read(index, buffer), index), None))
        except BaseException as error:  # the caller's thread raises it
            self._done.put((None, error))

    def next(self) -> Any:
        """Returns the next result, or raises what the work raised."""
        found, error = self._done.get()
        if error is not None:
            raise error
        return found

    def __enter__(self) -> _Helper:
        self._thread.start()
        return self

    def __exit__(self, *why: object) -> None:
        self._stopped = True
        self.todo.put(None)
        self._thread.join()
