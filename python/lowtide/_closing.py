"""A base class for objects with files or threads behind them, which `close` ends."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class Closing:
    """A context manager that calls `close` when its block ends."""

    __slots__ = ()

    def close(self) -> None:
        """Closes the files or stops the threads; the end of a `with` block calls it."""
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


class Publishing(Closing):
    """A writer: `close` publishes, and an exception in its block abandons what was written."""

    __slots__ = ()

    def abandon(self) -> None:
        """Removes what was not published."""
        raise NotImplementedError

    def _target(self) -> str:
        """Path of the file that is being written."""
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abandon()
            return
        try:
            self.close()
        except BaseException:
            self.abandon()
            raise

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # of the subclass; none if its constructor failed
        if core is None or core.closed:
            return
        warnings.warn(
            f"unclosed writer of {self._target()!r}: what was not published is lost",
            ResourceWarning,
            source=self,
            stacklevel=2,
        )
        core.abandon()
