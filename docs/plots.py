"""Makes the pictures of docs/memory.md again: `python docs/plots.py`, with lowtide on PATH.

`python docs/plots.py RUN FILE` is one of the runs, which the pictures are profiles of.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, COLUMNS, CHUNK = 600_000, 162, 4096
STEP_S = 0.06


def memmap(path: str) -> None:
    """Two epochs of shuffled chunks through a map."""
    rows = np.memmap(path, "float32", "r", shape=(ROWS, COLUMNS))
    starts = np.arange(0, ROWS, CHUNK)
    for epoch in range(2):
        for start in np.random.default_rng(epoch).permutation(starts):
            rows[start : start + CHUNK].sum()
            time.sleep(STEP_S)


def leak(path: str) -> None:
    """The same rows, and a list that keeps something of each chunk."""
    kept = []
    rows = np.fromfile(path, "float32", CHUNK * COLUMNS)
    for _ in range(2 * ROWS // CHUNK):
        kept.append(rows * 2)
        time.sleep(STEP_S)


def lowtide(path: str) -> None:
    """Two epochs of shuffled rows in 32 MiB."""
    import lowtide as lt

    shape = (ROWS, COLUMNS)
    with lt.open(path, dtype="float32", shape=shape, memory="32MiB", cache="drop") as rows:
        for epoch in range(2):
            for _, batch in rows.batches(CHUNK, order="shuffle", seed=0, epoch=epoch):
                batch.sum()
                time.sleep(STEP_S)


RUNS = {"memmap": memmap, "leak": leak, "lowtide": lowtide}


def main() -> None:
    folder = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "m.f32")
        np.random.default_rng(0).random((ROWS, COLUMNS), dtype="float32").tofile(path)
        for run in RUNS:
            picture = folder / f"memory-{run}.svg"
            subprocess.run(["lowtide", "cache", "--evict", path], check=True)
            words = [sys.executable, __file__, run, path]
            profile = ["lowtide", "profile", "--interval", "0.25", "-o", picture]
            subprocess.run([*profile, "--", *words], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        RUNS[sys.argv[1]](sys.argv[2])
    else:
        main()
