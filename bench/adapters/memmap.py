"""np.memmap, one map for the whole epoch.

https://numpy.org/doc/stable/reference/generated/numpy.memmap.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import Data

NAME = "np.memmap, kept"
PAGE = "https://numpy.org/doc/stable/reference/generated/numpy.memmap.html"
ENVIRONMENT = "own"
PACKAGES = ("numpy",)
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}


def batches(data: Data) -> Iterator[Any]:
    view = data.view()
    for numbers in data.order():
        yield taken(view, data, numbers)


def taken(view: Any, data: Data, numbers: Any) -> Any:
    """The samples with these numbers; those in file order are a slice, which is faster."""
    found = view[numbers] if data.shuffled else view[numbers[0] : numbers[-1] + 1].copy()
    return found.astype(data.out_dtype, copy=False)
