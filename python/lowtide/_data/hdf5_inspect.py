"""What `lowtide.info` and `lowtide.check` say about an HDF5 file."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core
from lowtide._compute.blocks import blocks
from lowtide._data import hdf5, hdf5_table, sparse_inspect
from lowtide._data.array import Array
from lowtide._data.files import Files

if TYPE_CHECKING:
    from lowtide._data.subject import Subject


def info(subject: Subject) -> dict[str, Any]:
    """Returns the dict of `lowtide.info`, with paths as the core returns them."""
    name = subject.names[0]
    found = dict(_core.info([name], False, False, "|u1", None, None, None, None))
    arrays = _arrays(os.fsdecode(name))
    one = arrays[0] if len(arrays) == 1 else {}
    found.update(format="hdf5", arrays=arrays)
    for fact in ("dtype", "shape", "order"):
        found[fact] = one.get(fact)
    return found


def check(subject: Subject, count_nan: bool, memory_bytes: int) -> dict[str, Any]:
    """Returns the dict of `lowtide.check`, or raises FormatError for the first fault."""
    name, found = subject.names[0], info(subject)
    notes, tally, counted = [], [0, 0], False
    for about in found["arrays"]:
        if "error" in about:
            notes.append(f"not checked: {about['error']}")
            continue
        with Array(name, memory=memory_bytes, cache="drop", key=about["key"]) as array:
            counted = counted or array.dtype.kind in "fc"
            fault = _read_all(array, count_nan, tally)
        if fault:
            raise _core.FormatError(f"{os.fsdecode(name)}: {about['key']!r}: {fault}")
    sparse_inspect.check_groups(name, memory_bytes)
    if count_nan and not counted:
        raise ValueError("nan: expected an array of floating-point numbers, found none")
    found["notes"] = notes
    if count_nan:
        found["nan"], found["infinite"] = tally
    return found


def _arrays(name: str) -> list[dict[str, Any]]:
    about: list[dict[str, Any]] = []
    with hdf5.opened(os.fsencode(name), Files().open(os.fsencode(name))) as file:
        for key in hdf5.keys(file):
            try:
                table = hdf5_table.locate(file[key], f"{name}: {key!r}", name, None)
            except _core.FormatError as error:
                about.append({"key": key, "error": str(error)})
                continue
            element = file[key].dtype
            shape = (*table.shape, *element.shape)
            size = math.prod(shape) * element.base.itemsize
            about.append(
                {
                    "key": key,
                    "dtype": _dtype_name(element.base, table.descr),
                    "shape": shape,
                    "order": "C",
                    "bytes": size,
                }
            )
    return about


def _dtype_name(dtype: np.dtype[Any], descr: str) -> str:
    """Returns the name of a dtype as the core gives it: "float32", ">f4"."""
    if dtype.fields is not None:
        return descr
    return dtype.name if dtype.kind in "biufc" and dtype.isnative else dtype.str


def _read_all(array: Array, count_nan: bool, tally: list[int]) -> str:
    """Reads all elements. Returns the first fault, or "", and counts NaN and infinities."""
    done = 0
    for _, block in blocks(array) if array.nbytes else ():
        if array.dtype.kind == "b":
            raw = block.view(np.uint8).reshape(-1)
            wrong = np.flatnonzero(raw > 1)
            if len(wrong):
                return (
                    f"element {done + int(wrong[0])}: expected 0 or 1 for dtype bool, found "
                    f"{int(raw[wrong[0]])}"
                )
        elif count_nan and array.dtype.kind in "fc":
            tally[0] += int(np.isnan(block).sum())
            tally[1] += int(np.isinf(block).sum())
        done += block.size
    return ""
