"""What an array knows about itself without reading its data."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from lowtide import _core

if TYPE_CHECKING:
    import numpy as np

    from lowtide._data.source import FileColumns


class ArrayFacts:
    """The properties of an Array, its counters and its `repr`."""

    __slots__ = ()

    if TYPE_CHECKING:
        _columns: FileColumns | None
        _core: _core.Array
        _dtype: np.dtype[Any]
        _key: str | None
        _paths: list[str]
        _shape: tuple[int, ...]
        _store: Any
        _where: list[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array, as for an ndarray."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of an element as stored, including its byte order."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes, without the header."""
        return self.size * self._dtype.itemsize

    @property
    def path(self) -> str:
        """Absolute path of the file, or of the first file if there are several."""
        return self._paths[0]

    @property
    def paths(self) -> list[str]:
        """Absolute paths of all files in row order, without empty files."""
        return list(self._paths)

    @property
    def format(self) -> str:
        """Format of the files, such as "npy", "safetensors" or "raw"."""
        return self._core.format

    @property
    def categories(self) -> Any:
        """Meaning of the codes of a categorical column in an `.h5ad`; None for other arrays.

        A code of -1 is a missing value.
        """
        if self._key is None or self.format != "hdf5":
            return None
        from lowtide._data import hdf5
        from lowtide._data.files import Files

        return hdf5.categories(os.fsencode(self._where[0]), Files(self._store), self._key)

    @property
    def order(self) -> str:
        """Memory layout of the file: "C" or "F". Results are always in C order."""
        return "F" if self._core.fortran_order else "C"

    @property
    def memory(self) -> int:
        """Memory budget in bytes."""
        return self._core.memory_bytes

    @property
    def engine(self) -> str:
        """Engine that currently serves reads: "pread", "uring", "pread+uring" or "memory".

        For objects on servers: "http", or with a `cache_dir` a name such as "http+cache+pread".
        """
        return str(self._core.stats()["engine"])

    @property
    def cache(self) -> str:
        """What happens to pages that reads bring into the page cache: "keep" or "drop"."""
        return str(self._core.stats()["cache"])

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._core.closed

    def stats(self) -> dict[str, Any]:
        """Reports the reads so far, the engine that serves them, and the memory held.

        Returns:
            A dict with these keys:

            - `bytes_asked`: bytes delivered to you.
            - `bytes_read`: bytes requested from the operating system, with gaps and alignment.
            - `reads`: requests to the operating system.
            - `merged`: requests saved because neighbours were fetched together.
            - `wait_ns`: nanoseconds that your threads waited for bytes.
            - `gap_bytes`: the `gap` currently in use.
            - `engine`, `engine_reason`: the engine in use, and why.
            - `cache`, `cache_reason`: "keep" or "drop", and why.
            - `layout`: "C", or "F: ..." with what gathering rows costs; empty for tokens.
            - `memory`: a dict of `limit`, `claims` (by name) and `held_by_you`, in bytes.
        """
        now = self._core.stats()
        if self._columns is not None:
            beside = self._columns.stats()
            for key in ("bytes_asked", "bytes_read", "reads", "merged", "wait_ns"):
                now[key] += beside[key]
        return now

    def __repr__(self) -> str:
        files = repr(self._paths[0])
        if len(self._paths) > 1:
            files += f" and {len(self._paths) - 1} more"
        if self._key is not None:
            files += f" key={self._key!r}"
        dtype = str(self._dtype)
        if self._core.extension not in ("", dtype):  # ml_dtypes is missing
            dtype += f" ({self._core.extension})"
        about = f"<lowtide.Array shape={self._shape} dtype={dtype} order={self.order} {files}"
        if self.closed:
            return about + " closed>"
        now = self.stats()
        return (
            f"{about} memory={_core.format_bytes(self.memory)} engine={now['engine']} "
            f"({now['engine_reason']}) cache={now['cache']} ({now['cache_reason']})>"
        )
