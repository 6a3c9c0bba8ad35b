"""The matrix of Stack Overflow question 45132940: rows of 162 float32 in one raw file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

import numpy as np
import scratch
from numpy.typing import NDArray

COLUMNS = 162
ROW_BYTES = COLUMNS * 4
_BLOCK_ROWS = 65536


def write(path: str, rows: int) -> None:
    """Writes the matrix with row numbers in the first column and noise in the others."""
    with open(path, "wb"):
        append(path, rows)


def append(path: str, rows: int) -> None:
    """Adds the same to an existing file."""
    with open(path, "ab", buffering=0) as file:
        for block in blocks(rows):
            view = block.data.cast("B")
            while view:
                view = view[file.write(view) :]
        os.fsync(file.fileno())


def blocks(rows: int) -> Iterator[NDArray[np.float32]]:
    """The matrix in consecutive parts; each is valid until the next one."""
    noise = np.random.default_rng(0).random((_BLOCK_ROWS, COLUMNS), dtype=np.float32)
    for first in range(0, rows, _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, rows - first)
        noise[:count, 0] = np.arange(first, first + count)
        noise[:, 1] += 1.0  # makes every block different; some file systems share equal ones
        yield noise[:count]


def kept_or_removed(folder: str | None, rows: int, keep: bool) -> AbstractContextManager[str]:
    """Provides the path of the matrix until the `with` block ends; see `scratch`."""
    name = f"rows-{rows}x{COLUMNS}.f32"
    return scratch.kept_or_removed(
        folder, name, rows * ROW_BYTES, lambda path: write(path, rows), keep
    )
