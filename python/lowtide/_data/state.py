"""A saved position as a dict: what users keep, and what they hand back."""

from __future__ import annotations

import collections.abc
from typing import TYPE_CHECKING, Any

from lowtide._arguments import integer, word

if TYPE_CHECKING:
    from lowtide import _core

_MOST = 2**64 - 1
_COUNTS = ("format", "block_size", "seed", "epoch", "position", "step", "base")
_KEYS = (*_COUNTS, "fingerprint", "order", "skipped")
_OLD_KEYS = ("format", "epoch", "position", "seed", "order", "size")  # of batches, version 0.1.0


def saved_state(core: _core.Loader | _core.Batches) -> dict[str, Any]:
    """Returns the state of `core` as a dict that JSON can hold."""
    state = core.state()
    state["fingerprint"] = f"{state['fingerprint']:016x}"
    return state


def checked_state(state: Any) -> dict[str, Any]:
    """Converts `state` to the arguments of the core's restore. Raises TypeError, ValueError."""
    if not isinstance(state, collections.abc.Mapping):
        raise TypeError(f"state must be a dict from state_dict(), not {type(state).__name__}")
    missing = [key for key in _KEYS if key not in state]
    if missing:
        raise ValueError(f"state lacks {missing[0]!r}: it does not come from state_dict()")
    unknown = [key for key in state if key not in _KEYS]
    if unknown:
        raise ValueError(
            f"state has an unknown key {unknown[0]!r}: it does not come from state_dict()"
        )
    try:
        told = _checked_counts(state, _COUNTS)
        told["order"] = word(state["order"], "order in state")
        told["fingerprint"] = _parse_hex(state["fingerprint"])
        told["skipped"] = [_parse_skipped(entry) for entry in state["skipped"]]
    except TypeError as error:
        raise ValueError(str(error)) from None
    return told


def checked_old_state(state: Any, size: int) -> dict[str, Any] | None:
    """Does the same for a state that version 0.1.0 saved for batches; None for any other.

    It has no fingerprint, so only the number of rows can be compared.
    """
    if not isinstance(state, collections.abc.Mapping) or "size" not in state:
        return None
    missing = [key for key in _OLD_KEYS if key not in state]
    if missing:
        raise ValueError(f"state lacks {missing[0]!r}: it does not come from state_dict()")
    if state["size"] != size:
        raise ValueError(f"state has size {state['size']!r}, but these batches have {size}")
    told = _checked_counts(state, ("format", "seed", "epoch", "position"))
    told["order"] = word(state["order"], "order in state")
    return {**told, "fingerprint": None, "block_size": 0, "step": 0, "base": 0, "skipped": []}


def _checked_counts(state: Any, names: tuple[str, ...]) -> dict[str, Any]:
    limits = {"format": 2**32 - 1}
    return {
        name: integer(state[name], f"{name} in state", 0, limits.get(name, _MOST)) for name in names
    }


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
