"""Lowtide reads on-disk arrays that are bigger than memory: in any order, in flat memory.

import lowtide as lt

a = lt.open("m.npy", memory="256MiB")
for idx, rows in a.batches(4096, order="shuffle", seed=0):
    ...
"""

from __future__ import annotations

from lowtide._array import Array, open
from lowtide._batches import Batches
from lowtide._core import FormatError

__version__ = "0.1.0"
FormatError.__module__ = "lowtide"

__all__ = ["Array", "Batches", "FormatError", "__version__", "open"]
