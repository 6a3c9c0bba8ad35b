"""Releases the resident pages of any map, with or without a ceiling."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from lowtide import _arguments, _core


def release(array: np.ndarray[Any, Any], dump: bool = True) -> int:
    """Releases the resident pages of the whole map behind an array.

    The contents stay: pages are mapped again when they are touched, and written data remains in
    the page cache.

    Args:
        array: Any `np.memmap`, including `lowtide.memmap`, or a view of one.
        dump: False also excludes the map from core dumps (MADV_DONTDUMP), which frees nothing.

    Returns:
        Bytes that left the resident memory of this process.

    Raises:
        TypeError: There is no map behind `array`.
        ValueError: The map is closed, or it is private and writable or was written to (mode "c"),
            so that a release would lose the writes.
        OSError: The kernel refused, for example because pages are locked.
    """
    dump = _arguments.flag(dump, "dump")
    found: Any = array
    filename = None
    while isinstance(found, (np.ndarray, memoryview)):
        filename = getattr(found, "filename", None) or filename
        found = found.obj if isinstance(found, memoryview) else found.base
    if not isinstance(array, np.ndarray) or not isinstance(found, mmap.mmap):
        raise TypeError(
            f"release needs an np.memmap or a view of one, but there is no map behind this "
            f"{type(array).__name__}"
        )
    return _core.release(found, dump, os.fsencode(filename or ""))
