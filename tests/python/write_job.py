"""One write job in a fresh process, for the memory proofs of lt.create.

Told by JSON on the command line. Prints by how much its resident memory grew at most.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

import lowtide as lt
import numpy as np
from processes import read_status, reset_resident_peak

COLUMNS = 162
BLOCK = 1024


def write(told: dict[str, Any]) -> None:
    rows = told["bytes"] // (COLUMNS * 4) // BLOCK * BLOCK
    block = np.ones((BLOCK, COLUMNS), "f4")
    shape = (None if told["how"] == "append" else rows, COLUMNS)
    with lt.create(told["path"], dtype="f4", shape=shape, memory=told["memory"]) as w:
        order = np.random.default_rng(0).permutation(rows if told["how"] == "scattered" else 0)
        for first in range(0, rows, BLOCK):
            if told["how"] == "append":
                w.append(block)
            elif told["how"] == "slices":
                w[first : first + BLOCK] = block
            elif told["how"] == "converted":
                w[first : first + BLOCK] = block.astype("f2")
            else:
                w[order[first : first + BLOCK]] = block


def main() -> None:
    told = json.loads(sys.argv[1])
    write({**told, "path": told["path"] + ".first.npy", "bytes": 8 << 20})  # imports, arenas
    reset = reset_resident_peak()
    before = read_status()
    write(told)
    after = read_status()
    growth = after["resident_peak"] - before["anon"] - before["file"] if reset else None
    print(json.dumps({"growth": growth}))


main()
