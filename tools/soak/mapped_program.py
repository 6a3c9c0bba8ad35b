"""What guard runs: maps PATH, reads it in random slices for a second, compares with reads."""

from __future__ import annotations

import sys
import time

import numpy as np


def main() -> None:
    path, seed = sys.argv[1], int(sys.argv[2])
    rng = np.random.default_rng(seed)
    view = np.memmap(path, np.uint8, "r")
    checked = wrong = 0
    due = time.monotonic() + 1
    with open(path, "rb") as file:
        while time.monotonic() < due:
            first = int(rng.integers(len(view)))
            file.seek(first)
            expected = np.frombuffer(file.read(1 << 18), np.uint8)
            found = view[first : first + len(expected)]
            wrong += int(np.count_nonzero(found != expected))
            checked += len(expected)
    print(checked, wrong)


main()
