"""np.memmap whose pages are released after every batch by madvise(MADV_DONTNEED).

https://docs.python.org/3/library/mmap.html#mmap.mmap.madvise
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

from . import Data
from .memmap import taken

NAME = "np.memmap, MADV_DONTNEED"
PAGE = "https://docs.python.org/3/library/mmap.html#mmap.mmap.madvise"
ENVIRONMENT = "own"
PACKAGES = ("numpy",)
SCENARIOS = {"rows": "", "tokens": "", "scan": ""}


def batches(data: Data) -> Iterator[Any]:
    view = data.view()
    for numbers in data.order():
        yield taken(view, data, numbers)
        view.base._mmap.madvise(mmap.MADV_DONTNEED)
