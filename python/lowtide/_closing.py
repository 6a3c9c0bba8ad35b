"""A base class for objects with files or threads behind them, which `close` ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class Closing:
    """A context manager that calls `close` when its block ends."""

    __slots__ = ()

    def close(self) -> None:
        """Ends the files or threads; the end of a `with` block calls it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
