"""Work on blocks by two threads: reading one block and reducing another both take a processor."""

from __future__ import annotations

import contextvars
import itertools
import os
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from lowtide._compute.blocks import BlockReader, Index

    T = TypeVar("T")
    Work = Callable[[npt.NDArray[Any], Index], T]

# Fewer blocks are not worth a thread.
_MIN_BLOCKS = 8
# So many blocks may wait for the other thread.
_AHEAD = 2


def results(reader: BlockReader, work: Work[T]) -> Iterator[tuple[Index, T]]:
    """Yields pairs (index, work(block, index)) in the order of the blocks.

    The caller's thread works on every second block, and a thread that lives as long as this
    iterator on the others. The results and their order do not depend on the threads. `work` must
    not keep the block.
    """
    indices = reader.indices()
    buffer = reader.buffer()
    if len(reader) < _MIN_BLOCKS or len(os.sched_getaffinity(0)) < 2:
        for index in indices:
            yield index, work(reader.read(index, buffer), index)
        return
    with _Helper(reader, work) as helper:
        waiting: list[tuple[Index, ...]] = []  # pairs: a block of this thread, one of the helper
        while True:
            while len(waiting) < _AHEAD and (pair := tuple(itertools.islice(indices, 2))):
                waiting.append(pair)
                helper.todo.put(pair[-1])
            if not waiting:
                return
            pair = waiting.pop(0)
            if len(pair) == 2:
                yield pair[0], work(reader.read(pair[0], buffer), pair[0])
            yield pair[-1], helper.next()


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
