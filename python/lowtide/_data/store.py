"""What signs requests for objects: a callable, or a store of obstore."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Signed = tuple[str, Mapping[str, str] | None, float | None]

_SIGNING = ("AzureStore", "GCSStore", "S3Store")
_VALID = datetime.timedelta(hours=1)


def signer(store: Any) -> Callable[[str], Signed] | None:
    """Returns what the core calls with an address; None for None. Raises TypeError."""
    if store is None:
        return None
    if callable(store):
        signs: Callable[[str], Signed] = store
        return signs
    kind = type(store).__name__
    if type(store).__module__.partition(".")[0] == "obstore":
        if kind not in _SIGNING:
            raise TypeError(f"store: obstore signs for {', '.join(_SIGNING)}, not for {kind}")
        return _ObstoreSigner(store)
    raise TypeError(
        "store must be a store of obstore or a callable that takes an address and returns "
        f"(url, headers, expires), not {kind}"
    )


def lister(store: Any) -> Callable[[str, bool], list[str]] | None:
    """Returns what the core calls to list objects; None if the store has no way to."""
    if store is None:
        return None
    if callable(store):
        listed = getattr(store, "list", None)
        return (lambda beginning, _: list(listed(beginning))) if callable(listed) else None
    return _ObstoreLister(store)


class _ObstoreLister:
    """Lists with obstore, whose beginnings are whole folders."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __call__(self, beginning: str, deep: bool) -> list[str]:
        import obstore

        scheme, _, rest = beginning.partition("://")
        bucket, _, key = rest.partition("/")
        folder = key.rpartition("/")[0]
        found: list[Any] = []
        if deep:
            for some in obstore.list(self._store, folder or None):
                found.extend(some)
        else:
            found.extend(obstore.list_with_delimiter(self._store, folder or None)["objects"])
        return [f"{scheme}://{bucket}/{one['path']}" for one in found]


class _ObstoreSigner:
    """Signs with obstore for an hour. The store knows its bucket, so it gets the key alone."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __call__(self, address: str) -> Signed:
        import obstore

        key = address.partition("://")[2].partition("/")[2]
        expires = time.time() + _VALID.total_seconds()
        return obstore.sign(self._store, "GET", key, _VALID), None, expires
