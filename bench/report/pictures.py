"""The pictures of the docs, drawn from results."""

from __future__ import annotations

from pathlib import Path

from values import Result


def drawn(results: dict[str, Result]) -> dict[Path, str]:
    """The text of each picture by its path, relative to the root."""
    return {}
