"""One shuffle in a fresh process, for the memory proof of lt.jobs.

Told by JSON on the command line. Prints by how much its resident memory grew at most.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

import lowtide as lt
import numpy as np
from processes import read_status, reset_resident_peak


def main() -> None:
    told = json.loads(sys.argv[1])
    small = Path(told["folder"], "small.npy")
    np.save(small, np.zeros((40_000, 50), "f4"))
    lt.shuffle(small, small.with_name("first.npy"), memory="4MiB")  # imports, arenas
    reset = reset_resident_peak()
    before = read_status()
    print("begin", flush=True)
    lt.shuffle(told["source"], told["out"], seed=1, memory=told["memory"])
    after = read_status()
    growth = after["resident_peak"] - before["anon"] - before["file"] if reset else None
    print(json.dumps({"growth": growth}))


main()
