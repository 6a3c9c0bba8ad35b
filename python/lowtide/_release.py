"""Giving back the pages of any map, with or without a ceiling."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from lowtide import _arguments, _core


def release(array: np.ndarray[Any, Any], dump: bool = True) -> int:
    """Gives back the pages of the whole map behind an array; returns the bytes that left.

    array: any np.memmap (this package's too), or a view of one. Its contents stay: they are entered
        again when touched, and what was written is in the page cache.
    dump: False also leaves the map out of core dumps (MADV_DONTDUMP), which frees nothing.

    Raises TypeError where there is no map behind it, ValueError for a private map that is writable
    or was written to (mode "c": the writes would be lost) and for a closed one, OSError where the
    kernel refuses (pages that are locked).
    """
    dump = _arguments.flag(dump, "dump")
    found: Any = array
    filename = None
    while isinstance(found, (np.ndarray, memoryview)):
        filename = getattr(found, "filename", None) or filename
        found = found.obj if isinstance(found, memoryview) else found.base
    if not isinstance(array, np.ndarray) or not isinstance(found, mmap.mmap):
        raise TypeError(
            f"release needs an np.memmap or a view of one: there is no map behind this "
            f"{type(array).__name__}"
        )
    return _core.release(found, dump, os.fsencode(filename or ""))
