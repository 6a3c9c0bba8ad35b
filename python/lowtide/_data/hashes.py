"""Compares files with the hashes that the index of their token folder lists."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from lowtide import _core
from lowtide._data.array import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIST = "index.json"
_ROWS = 1 << 20


def compare(name: bytes, memory_bytes: int) -> list[str]:
    """Compares the hashes of all files in a folder's index, after the core has checked it.

    Returns:
        A note for each kind of hash that Python lacks.

    Raises:
        FormatError: A file has another hash. The message names it.
    """
    path = os.fsdecode(name)
    listed = os.path.join(path, _LIST) if os.path.isdir(path) else path
    if os.path.basename(listed) != _LIST or not os.path.isfile(listed):
        return []
    with open(listed, encoding="utf-8") as file:
        found = json.load(file)
    unknown: dict[str, int] = {}
    for one, hashes in _files(found, os.path.dirname(listed)):
        known = {kind: told for kind, told in hashes.items() if _is_known(kind)}
        for kind in hashes.keys() - known.keys():
            unknown[kind] = unknown.get(kind, 0) + 1
        if known:
            _compare_one(one, known, listed, memory_bytes)
    return [
        f"{kind} of {count} files was not compared: Python's hashlib lacks it"
        for kind, count in sorted(unknown.items())
    ]


def _files(found: Any, folder: str) -> Iterator[tuple[str, dict[str, str]]]:
    shards = found.get("shards") if isinstance(found, dict) else None
    for shard in shards if isinstance(shards, list) else ():
        raw = shard.get("raw_data")
        if isinstance(raw, dict) and isinstance(raw.get("hashes"), dict):
            yield os.path.join(folder, raw["basename"]), raw["hashes"]


def _is_known(kind: str) -> bool:
    """Returns whether every Python has this hash, with one length."""
    return kind in hashlib.algorithms_guaranteed and not kind.startswith("shake")


def _compare_one(path: str, hashes: dict[str, str], listed: str, memory_bytes: int) -> None:
    sums = {kind: hashlib.new(kind, usedforsecurity=False) for kind in hashes}
    with Array(path, dtype="u1", memory=memory_bytes, cache="drop") as array:
        for some in array.iter_chunks(min(_ROWS, memory_bytes // 64)):
            for one in sums.values():
                one.update(some.data)
    for kind, told in hashes.items():
        digest = sums[kind].hexdigest()
        if digest != told:
            raise _core.FormatError(
                f"{path}: expected the {kind} {told}, as {listed} says, found {digest}"
            )
