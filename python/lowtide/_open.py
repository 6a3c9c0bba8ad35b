"""Opening an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowtide import _arguments
from lowtide._array import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._array import Path


def open(
    path: Path | Sequence[Path],
    dtype: npt.DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    offset: int | None = None,
    order: str | None = None,
    memory: int | str | None = None,
    engine: str = "auto",
    cache: str = "auto",
    gap: int | str | None = None,
    mode: str = "r",
) -> Array:
    """Opens an array on disk; only headers are read.

    path: a .npy file, a file without a header (then `dtype` is needed, as with np.memmap), a list
        of files or a glob, joined along the first axis. A path that exists is never a pattern.
    dtype, shape, offset (bytes), order ("C" or "F"): what is in a file without a header; for a
        real .npy each must agree with the header if given.
    memory: what Lowtide may hold, in bytes or as "64KiB", "256MiB", "1.5GiB". Default: 256 MiB, or
        an eighth of the memory that this process may use if that is less.
    engine: "auto", "pread", "uring" or "memory". cache: "auto", "keep" or "drop".
    gap: the most bytes between two reads from the disk that may share one request, as a number or
        as "4KiB". None fits it to the disk; 0 shares only where reads touch. What lies between is
        read for nothing: docs/engines.md tells how much.
    mode: "r", for code that was written for np.memmap; an array is only read. To write into a file,
        use `lowtide.memmap`.

    Raises OSError (a missing file: FileNotFoundError; an engine asked for by name that is not
    there), FormatError (the bytes are not what was promised), ValueError (a bad argument; a budget
    too small for one row) and TypeError.
    """
    if _arguments.word(mode, "mode") not in ("r", "readonly"):
        raise ValueError(
            f"mode must be 'r', not {mode!r}: lowtide.open only reads. For other modes use "
            "lowtide.memmap(path, ..., mode=...), an np.memmap within a memory limit"
        )
    if isinstance(dtype, str) and dtype in ("r", "rb", "r+", "w", "w+"):
        raise TypeError(
            f"the second argument is dtype, and {dtype!r} is a mode: lowtide.open only reads, so "
            "leave it out"
        )
    return Array(path, dtype, shape, offset, order, memory, engine, cache, gap)
