"""Creating an array on disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _core
from lowtide._writer.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._data.array import Path


def create(
    path: Path,
    dtype: npt.DTypeLike | None = None,
    shape: int | Sequence[int | None] | None = None,
    memory: int | str | None = None,
    order: str = "C",
    append: bool = False,
) -> Writer:
    """Creates a `.npy` file that may be bigger than memory, and returns its writer.

    ```python
    with lt.create("out.npy", dtype="float32", shape=(1000, 162)) as w:
        w[10:20] = rows
    ```

    The file is written under a hidden name in the same folder and gets its own name when it is
    complete and durable, at the end of the block. An old file is replaced at that moment. After an
    exception in the block, a crash or a full disk, the old file is still there, if there was one.

    Args:
        path: Name of the file; it ends with `.npy`.
        dtype: Type of the elements.
        shape: Shape of the array. If its first entry is None, the array grows with `append`.
            Default: the array grows with `append`, and the first rows set the other axes.
        memory: Most memory that Lowtide may hold, in bytes or as text such as "64MiB", including
            pages that are not on the disk yet. Default: as for `lowtide.open`.
        order: "C" or "F", the memory layout of the file. "F" needs a shape without None, and is
            slow if you write rows in small blocks.
        append: Adds rows to an existing file, in place; `dtype` and `shape` may then be omitted,
            and must match the file if given. The first entry of `shape` is the final length of the
            array. If there is no file, it is created.

    Returns:
        The writer.

    Raises:
        OSError: The file cannot be created there, or another writer has it open.
        FormatError: Rows cannot be added to the existing file.
        ValueError: An argument is invalid or contradicts the existing file, or `memory` is too
            small.
        TypeError: An argument has the wrong type.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be a str or an os.PathLike, not {type(path).__name__}")
    (name,), _ = _arguments.path_list(path)
    text, given = _arguments.descr(dtype)
    rows, row_shape = _axes(shape)
    fortran = bool(_arguments.is_fortran(order))
    core = _core.ArrayWriter.create(
        name,
        dtype=text,
        rows=rows,
        row_shape=row_shape,
        fortran_order=fortran,
        append=_arguments.flag(append, "append"),
        memory_bytes=_arguments.memory_bytes(memory),
    )
    return Writer(core, os.path.abspath(os.fsdecode(name)), given, fortran)


def _axes(shape: Any) -> tuple[int | None, list[int] | None]:
    """Returns the number of rows and the shape of a row, each None if it is not known."""
    if shape is None:
        return None, None
    axes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if not axes:
        raise ValueError("shape must have at least one entry, not ()")
    if any(extent is None for extent in axes[1:]):
        raise ValueError(f"only the first entry of shape may be None, not {tuple(axes)}")
    known = _arguments.axes([extent for extent in axes if extent is not None]) or []
    return (None, known) if axes[0] is None else (known[0], known[1:])
