"""np.save of an array on disk, block by block."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._arguments import require_local
from lowtide._compute.blocks import blocks, is_array, load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from lowtide._data.array import Array


_SUFFIX = b".npy"  # which np.save appends


def save(file: Any, arr: Any, *args: Any, **kwargs: Any) -> None:
    """Writes what np.save writes, in the order of the files: "C" or "F".

    A path gets the new file when it is complete, by a rename; an error leaves an old file as it
    was. So an array may replace one of its own files: it still reads the old one.
    """
    if not is_array(arr):
        np.save(load(file), load(arr), *args, **kwargs)
        return
    try:
        header = _header(arr)
    except UnicodeError:  # names of fields that only version 3 can write
        np.save(file, np.asarray(arr), *args, **kwargs)
        return
    if hasattr(file, "write"):
        _write(file, header, arr)
        return
    require_local(file)
    path = os.fsencode(file)
    with _replaced(path if path.endswith(_SUFFIX) else path + _SUFFIX) as target:
        _write(target, header, arr)


def _header(array: Array) -> bytes:
    text = io.BytesIO()
    about = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": array.order == "F" and array.ndim > 1,
        "shape": array.shape,
    }
    try:
        np.lib.format.write_array_header_1_0(text, about)
    except ValueError:  # the header is too long for version 1, or not Latin-1
        text = io.BytesIO()
        np.lib.format.write_array_header_2_0(text, about)
    return text.getvalue()


def _write(target: Any, header: bytes, array: Array) -> None:
    target.write(header)
    if not array.nbytes:
        return
    for _, block in blocks(array):
        flat = (block.T if array.order == "F" else block).reshape(-1)
        target.write(flat.view(np.uint8).data)


@contextlib.contextmanager
def _replaced(path: bytes) -> Iterator[BinaryIO]:
    """Opens a file beside `path`, and renames it to `path` if no error occurs."""
    path = os.path.realpath(path)
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as target:  # a device or a pipe, or the error of a folder
            yield target
        return
    name = f".lowtide-{os.getpid()}-{threading.get_ident()}.part"
    part = os.path.join(os.path.dirname(path), os.fsencode(name))
    with open(part, "wb") as target:
        try:
            if mode is not None:
                os.fchmod(target.fileno(), stat.S_IMODE(mode))
            yield target
            target.flush()
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
