"""The matrix of Stack Overflow question 45132940: rows of 162 float32 in one raw file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from machine import file_system

COLUMNS = 162
ROW_BYTES = COLUMNS * 4
_BLOCK_ROWS = 65536


def scratch_folder() -> str:
    """A folder on a disk: memory file systems can be neither evicted nor read direct."""
    for folder in (tempfile.gettempdir(), "/var/tmp", os.getcwd()):
        if os.path.isdir(folder) and file_system(folder) not in ("tmpfs", "ramfs"):
            return folder
    return tempfile.gettempdir()


def write(path: str, rows: int, progress: Callable[[float], None] | None = None) -> None:
    """Writes the matrix with row numbers in the first column and noise in the others."""
    noise = np.random.default_rng(0).random((_BLOCK_ROWS, COLUMNS), dtype=np.float32)
    with open(path, "wb", buffering=0) as file:
        for first in range(0, rows, _BLOCK_ROWS):
            count = min(_BLOCK_ROWS, rows - first)
            noise[:count, 0] = np.arange(first, first + count)
            noise[:, 1] += 1.0  # no two blocks alike, for file systems that share equal blocks
            view = noise[:count].data.cast("B")
            while view:
                view = view[file.write(view) :]
            if progress:
                progress((first + count) / rows)
        os.fsync(file.fileno())


@contextmanager
def kept_or_removed(folder: str | None, rows: int, keep: bool) -> Iterator[str]:
    """The path of the matrix, written if it is not there; what this run wrote it removes again,
    unless it is to be kept."""
    made = ""
    if folder is None and keep:
        folder = os.path.join(scratch_folder(), "lowtide-bench")
    if folder is None:
        folder = made = tempfile.mkdtemp(prefix="lowtide-bench-", dir=scratch_folder())
    os.makedirs(folder, exist_ok=True)
    path = Path(folder) / f"rows-{rows}x{COLUMNS}.f32"
    ours = not path.exists() or path.stat().st_size != rows * ROW_BYTES
    try:
        if ours:
            free = shutil.disk_usage(folder).free
            if free < rows * ROW_BYTES * 1.05:
                raise SystemExit(f"rows: needs {rows * ROW_BYTES >> 20} MiB, free: {free >> 20}")
            unfinished = path.with_suffix(".part")
            write(str(unfinished), rows)
            unfinished.rename(path)
        yield str(path)
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)
        elif ours and not keep:
            path.unlink(missing_ok=True)
            path.with_suffix(".part").unlink(missing_ok=True)
