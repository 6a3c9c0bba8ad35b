"""How bytes are read: the options that arrays and tokens share, and what signs requests."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Any

from lowtide import _arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Signed = tuple[str, Mapping[str, str] | None, float | None]

_SIGNING = ("AzureStore", "GCSStore", "S3Store")
_VALID = datetime.timedelta(hours=1)


def local_options(
    memory: int | str | None, engine: str, cache: str, gap: int | str | None
) -> dict[str, Any]:
    """Returns the options of reading as the core takes them. Raises ValueError, TypeError."""
    return {
        "memory_bytes": _arguments.memory_bytes(memory),
        "engine": _arguments.word(engine, "engine"),
        "cache": _arguments.word(cache, "cache"),
        "gap_bytes": _arguments.gap_bytes(gap),
    }


def remote_options(
    requests: int | None, store: Any, cache_dir: Any, cache_bytes: int | str | None
) -> dict[str, Any]:
    """Returns the options for objects on servers in the same way."""
    kept, most_kept = _arguments.tier(cache_dir, cache_bytes)
    return {
        "requests": _arguments.requests(requests),
        "store": signer(store),
        "lister": lister(store),
        "cache_dir": kept,
        "cache_bytes": most_kept,
    }


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
