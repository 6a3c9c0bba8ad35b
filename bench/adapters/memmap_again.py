"""np.memmap made anew for every batch, as nanoGPT does so that its memory does not grow.

https://github.com/karpathy/nanoGPT/blob/master/train.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import Data
from .memmap import taken

NAME = "np.memmap, new per batch"
PAGE = "https://github.com/karpathy/nanoGPT/blob/master/train.py"
ENVIRONMENT = "own"
PACKAGES = ("numpy",)
SCENARIOS = {"rows": "", "tokens": "", "scan": ""}


def batches(data: Data) -> Iterator[Any]:
    for numbers in data.order():
        yield taken(data.view(), data, numbers)
