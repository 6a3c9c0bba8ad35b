"""The files of the benchmark `columns`: labels beside the matrix, and documents of tokens."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scratch
from numpy.typing import NDArray

LEAST_TOKENS, MOST_TOKENS = 10, 4000
MEAN_TOKENS = (LEAST_TOKENS + MOST_TOKENS) // 2
_WRITTEN = 1 << 20


def labels(folder: str | None, rows: int, keep: bool) -> AbstractContextManager[str]:
    """Provides a file of int64 in which the label of a row is its number; see `scratch`."""

    def write(path: str) -> None:
        with open(path, "wb") as file:
            for first in range(0, rows, _WRITTEN):
                last = min(rows, first + _WRITTEN)
                file.write(np.arange(first, last, dtype=np.int64).data.cast("B"))
            file.flush()
            os.fsync(file.fileno())

    return scratch.kept_or_removed(folder, f"labels-{rows}.i64", rows * 8, write, keep)


def offsets(documents: int) -> NDArray[np.int64]:
    """Returns where each document begins, and the end of the last: the same in every process."""
    drawn = np.random.default_rng(0).integers(LEAST_TOKENS, MOST_TOKENS + 1, documents)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(drawn)])


def tokens(folder: str | None, documents: int, keep: bool) -> AbstractContextManager[str]:
    """Provides a file with the uint16 tokens of all documents; see `scratch`."""
    count = int(offsets(documents)[-1])

    def write(path: str) -> None:
        noise: NDArray[Any] = np.random.default_rng(1).integers(0, 1 << 15, _WRITTEN, np.uint16)
        with open(path, "wb") as file:
            for number, first in enumerate(range(0, count, _WRITTEN)):
                part = noise[: min(_WRITTEN, count - first)]
                file.write((part ^ np.uint16(number & 0x7FFF)).data.cast("B"))
            file.flush()
            os.fsync(file.fileno())

    return scratch.kept_or_removed(folder, f"documents-{documents}.u16", count * 2, write, keep)
