"""h5py: a contiguous dataset, each batch by one sorted list of rows.

https://docs.h5py.org/en/stable/high/dataset.html#fancy-indexing
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np

from . import Data

NAME = "h5py"
PAGE = "https://docs.h5py.org/en/stable/high/dataset.html#fancy-indexing"
ENVIRONMENT = "stores"
PACKAGES = ("h5py",)
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}


def prepare(data: Data) -> None:
    with h5py.File(f"{data.folder}/x.h5", "w") as file:
        made = file.create_dataset("x", (data.samples, data.width), data.dtype)
        first = 0
        for block in data.blocks():
            made[first : first + len(block)] = block
            first += len(block)


def batches(data: Data) -> Iterator[Any]:
    with h5py.File(f"{data.folder}/x.h5") as file:
        stored = file["x"]
        for numbers in data.order():
            if not data.shuffled:
                yield stored[numbers[0] : numbers[-1] + 1].astype(data.out_dtype, copy=False)
                continue
            places = np.argsort(numbers)  # h5py wants increasing indices
            out = np.empty((len(numbers), data.width), data.out_dtype)
            out[places] = stored[numbers[places]]
            yield out
