"""What has files or threads behind it, and a `close` that ends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class Closing:
    """A context manager that closes at its end."""

    __slots__ = ()

    def close(self) -> None:
        """What the end of a `with` calls."""
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
