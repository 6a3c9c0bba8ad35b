"""Writes the data that the other examples read: features.npy and labels.npy, here 10 MB."""

from __future__ import annotations

import numpy as np


def write(rows: int = 40_000, columns: int = 64, classes: int = 4, rare: float = 0.25) -> None:
    """Writes one cloud of points per class; `rare` is the share of the last class."""
    rng = np.random.default_rng(0)
    shares = np.full(classes, (1 - rare) / (classes - 1))
    shares[-1] = rare
    labels = rng.choice(classes, rows, p=shares)
    centres = rng.normal(size=(classes, columns))
    features = np.lib.format.open_memmap("features.npy", "w+", "float32", (rows, columns))
    for first in range(0, rows, 10_000):  # never more than 10,000 rows in memory
        part = labels[first : first + 10_000]
        noise = rng.normal(scale=3, size=(len(part), columns))
        features[first : first + 10_000] = centres[part] + noise
    features.flush()
    np.save("labels.npy", labels)


if __name__ == "__main__":
    write()
