"""Checks a Loader state that a user hands back, before the core sees it."""

from __future__ import annotations

import collections.abc
from typing import Any

from lowtide._arguments import integer, word

_MOST = 2**64 - 1
_COUNTS = ("format", "block_size", "seed", "epoch", "position", "step", "base")
_KEYS = (*_COUNTS, "fingerprint", "order", "skipped")


def checked_state(state: Any) -> dict[str, Any]:
    """Converts `state` to the arguments of the core's restore. Raises TypeError, ValueError."""
    if not isinstance(state, collections.abc.Mapping):
        raise TypeError(f"state must be a dict from state_dict(), not {type(state).__name__}")
    missing = [key for key in _KEYS if key not in state]
    if missing:
        raise ValueError(f"state lacks {missing[0]!r}: it does not come from a lowtide.Loader")
    unknown = [key for key in state if key not in _KEYS]
    if unknown:
        raise ValueError(
            f"state has an unknown key {unknown[0]!r}: it does not come from a lowtide.Loader"
        )
    limits = {"format": 2**32 - 1}
    try:
        told: dict[str, Any] = {
            key: integer(state[key], f"{key} in state", 0, limits.get(key, _MOST))
            for key in _COUNTS
        }
        told["order"] = word(state["order"], "order in state")
        told["fingerprint"] = _parse_hex(state["fingerprint"])
        told["skipped"] = [_parse_skipped(entry) for entry in state["skipped"]]
    except TypeError as error:
        raise ValueError(str(error)) from None
    return told


def _parse_hex(text: Any) -> int:
    if not isinstance(text, str) or len(text) != 16 or set(text) - set("0123456789abcdef"):
        raise ValueError(f"fingerprint in state must be 16 hexadecimal digits, not {text!r}")
    return int(text, 16)


def _parse_skipped(entry: Any) -> tuple[int, ...]:
    if not isinstance(entry, (list, tuple)) or len(entry) != 3:
        raise ValueError(
            f"each entry of skipped in state must be [epoch, first, last], not {entry!r}"
        )
    return tuple(integer(value, "skipped in state", 0, _MOST) for value in entry)
