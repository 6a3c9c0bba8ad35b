"""Rows of an array that another process writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _core
from lowtide._writer.writer import Writer

if TYPE_CHECKING:
    import numpy as np


class Part:
    """Some rows of an array that is being created, for another process to write.

    `Writer.part` makes it. It can be pickled, so it can be an argument of a task, and it holds
    neither a file nor memory until it is opened. The writer that made it publishes the array when
    every part is closed.

    ```python
    def work(part):
        with part.open() as w:
            w[part.start : part.stop] = rows_of(part.start, part.stop)
    ```
    """

    __slots__ = ("_dtype", "_path", "_start", "_stop", "_ticket")

    def __init__(
        self, ticket: bytes, path: str, dtype: np.dtype[Any], start: int, stop: int
    ) -> None:
        self._ticket = ticket
        self._path = path
        self._dtype = dtype
        self._start = start
        self._stop = stop

    @property
    def start(self) -> int:
        """Number of the first row in the whole array."""
        return self._start

    @property
    def stop(self) -> int:
        """Number of the row after the last one."""
        return self._stop

    def __len__(self) -> int:
        """Number of rows."""
        return self._stop - self._start

    def open(self, memory: int | str | None = None) -> Writer:
        """Opens the part in this process, and returns a writer for its rows.

        Rows have the numbers of the whole array, and `append` begins at the first row of the part.
        `close`, or the end of a `with` block, makes the rows durable and reports the part as done.
        After an exception or a crash, the part can be opened and written again.

        Args:
            memory: Most memory that this writer may hold, as for `lowtide.create`. Default: as much
                as the writer of the array.

        Returns:
            The writer. It writes rows `start` to `stop` only, and cannot commit.

        Raises:
            OSError: Another process has this part open (`EBUSY`), or the array is already published
                or abandoned (`ESTALE`).
            ValueError: `memory` is too small.
        """
        core = _core.ArrayWriter.open_part(self._ticket, _arguments.memory_bytes(memory))
        return Writer(core, self._path, self._dtype, fortran=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, (self._ticket, self._path, self._dtype, self._start, self._stop)

    def __repr__(self) -> str:
        return f"<lowtide.Part of {self._path!r}: rows {self._start}:{self._stop}>"
