"""The sources of a loader, with their weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lowtide._tokens import Tokens


def weighted_sources(tokens: Any) -> tuple[list[tuple[Tokens, float]], bool]:
    """Returns the sources with their weights, and whether the caller gave weights."""
    if isinstance(tokens, Tokens):
        return [(tokens, 1.0)], False
    if not isinstance(tokens, (list, tuple)):
        kind = type(tokens).__name__
        raise TypeError(
            f"tokens must be a lowtide.Tokens (open it with lowtide.tokens) or a list of (Tokens, "
            f"weight), not {kind}"
        )
    if not tokens:
        raise ValueError("tokens is an empty list: give at least one (Tokens, weight)")
    return [_weighted(entry, place) for place, entry in enumerate(tokens)], True


def _weighted(entry: Any, place: int) -> tuple[Tokens, float]:
    if not isinstance(entry, (list, tuple)) or len(entry) != 2 or not isinstance(entry[0], Tokens):
        raise TypeError(f"entry {place} of tokens must be (Tokens, weight), not {entry!r}")
    weight = entry[1]
    if isinstance(weight, (bool, np.bool_, str, bytes)) or not hasattr(weight, "__float__"):
        kind = type(weight).__name__
        raise TypeError(f"the weight of entry {place} must be a number, not {kind}")
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"the weight of entry {place} must be finite and above 0, not {weight}")
    return entry[0], float(weight)
