"""What signs requests for objects: a callable, or a store of obstore."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Signed = tuple[str, Mapping[str, str] | None, float | None]

_VALID = datetime.timedelta(hours=1)


def signer(store: Any) -> Callable[[str], Signed] | None:
    """Returns what the core calls with an address; None for None. Raises TypeError."""
    if store is None:
        return None
    if callable(store):
        signs: Callable[[str], Signed] = store
        return signs
    if type(store).__module__.partition(".")[0] == "obstore":
        return _ObstoreSigner(store)
    kind = type(store).__name__
    raise TypeError(
        "store must be a store of obstore or a callable that takes an address and returns "
        f"(url, headers, expires), not {kind}"
    )


class _ObstoreSigner:
    """Signs with obstore for an hour. The store knows its bucket, so it gets the key alone."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __call__(self, address: str) -> Signed:
        import obstore  # type: ignore[import-not-found]

        key = address.partition("://")[2].partition("/")[2]
        expires = time.time() + _VALID.total_seconds()
        return obstore.sign(self._store, "GET", key, _VALID), None, expires
