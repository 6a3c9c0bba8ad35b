"""An np.memmap with a memory ceiling, for code that must keep a map."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments, _core
from lowtide._map.map import Map, address_of
from lowtide._map.rows import gather, row_numbers, scatter

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

_WORDS = {"readonly": "r", "copyonwrite": "c", "readwrite": "r+", "write": "w+"}
_CACHES = ("auto", "keep", "drop")
_NUMPY_1 = np.lib.NumpyVersion(np.__version__) < "2.0.0b1"
_MANY = 1 << 32  # NumPy itself touched an unknown number of places: forces a count of the pages


class memmap(np.memmap[Any, np.dtype[Any]]):
    """An `np.memmap` whose resident pages in this process stay close to `memory` bytes.

    It is a subclass of `np.memmap` and works wherever one does. The ceiling is soft: loops over
    slices stay within 1.25 x memory + 16 MiB. If other C code reads a whole view, a thread trims
    the map, and its pages can briefly exceed the ceiling. Whole rows selected by number or mask
    (`m[idx]`, `m[mask]`, `m.take(idx, axis=0)`) are read by Lowtide's engine into arrays that own
    their memory. Otherwise indexing works as in NumPy, and slices are views. Written data is never
    lost: a trim leaves it in the page cache, and `flush` sends it to the disk. A pickle holds the
    path and arguments, not the data.

    The promise is weaker than that of `lowtide.open`, which maps nothing. As with every map, if the
    file is truncated while it is mapped, touching the lost part kills the process (SIGBUS), and no
    exception can catch that.
    """

    __module__ = "lowtide"
    _mmap: Map | None

    def __new__(
        cls,
        filename: Any,
        dtype: npt.DTypeLike = np.uint8,
        mode: str = "r+",
        offset: int = 0,
        shape: Any = None,
        order: str = "C",
        memory: int | str | None = None,
        cache: str = "auto",
    ) -> Self:
        """Maps the file and sets its ceiling.

        Args:
            filename: Path or open file, as for `np.memmap`.
            dtype: Type of the elements, without Python objects. Default: uint8.
            mode: "r", "r+" (the default), "w+" or "c", as for `np.memmap`. A map in mode "c" is
                never trimmed, because a trim would lose what was written; it takes neither `memory`
                nor cache="drop".
            offset: Byte at which the data starts.
            shape: Shape of the array. Default: one axis to the end of the file.
            order: "C" or "F", the memory layout.
            memory: Most memory that mapped pages of this file may take in this process (RssFile),
                in bytes or as text such as "64MiB" or "1.5GiB". Less than 8 MiB counts as 8 MiB.
                Default: 256 MiB, or an eighth of the memory that this process may use if that is
                less.
            cache: "keep", or equally "auto", leaves the page cache alone. "drop" evicts the pages
                that the map brought into it.

        Raises:
            ValueError: `memory` or `cache` is invalid, or `dtype` contains Python objects; also
                whatever `np.memmap` raises it for.
            OSError: The file cannot be opened, as with `np.memmap`.
        """
        _arguments.require_local(filename)
        mode = _WORDS.get(mode, mode)
        memory_bytes = _checked(dtype, mode, memory, cache)
        if mode not in _WORDS.values() or (mode == "w+" and shape is None):
            np.memmap(filename, dtype, mode, offset, shape, order)  # type: ignore[call-overload]
            raise ValueError(f"mode {mode!r} with shape {shape!r}")
        opened: Any = nullcontext(filename)
        if not hasattr(filename, "read"):
            opened = open(os.fspath(filename), ("r" if mode == "c" else mode) + "b")
        with opened as file:
            # NumPy itself checks the arguments and makes the file large enough.
            plain: Any = np.memmap(file, dtype, mode, offset, shape, order)  # type: ignore[call-overload]
            skip = address_of(plain) - address_of(plain._mmap)
            start = int(offset) - skip
            over = Map(file.fileno(), len(plain._mmap), access=_access(mode), offset=start)
            self = np.ndarray.__new__(cls, plain.shape, plain.dtype, over, skip, plain.strides)
            is_path = isinstance(filename, os.PathLike)
            name: Any = filename.resolve() if is_path else plain.filename
            over.ceiling = None
            if mode != "c":
                over.watch(file, name, start, memory_bytes, cache == "drop")
        self._mmap = over
        self.filename, self.offset, self.mode = name, plain.offset, plain.mode
        return self

    @property
    def memory(self) -> int | None:
        """Ceiling in bytes; None in mode "c" and for results that are not maps, such as copies."""
        over = self._mmap
        return None if over is None or over.ceiling is None else over.memory

    @property
    def cache(self) -> str:
        """What happens to pages that the map brings into the page cache: "keep" or "drop"."""
        over = self._mmap
        return "drop" if over is not None and over.ceiling is not None and over.drops else "keep"

    def __getitem__(self, index: Any) -> Any:
        """Indexes as NumPy does; first releases pages if the result would exceed the ceiling."""
        over = self._mmap
        ceiling = None if over is None else over.ceiling
        if over is None or ceiling is None or not ceiling.limited:
            return self._as_numpy(np.ndarray.__getitem__(self, index))
        if isinstance(index, (list, np.ndarray)) and self.ndim:
            rows = row_numbers(index, self.shape[0])
            if rows is not None:
                return self._rows(over, ceiling, rows)
        found = np.ndarray.__getitem__(self, index)
        if not isinstance(found, np.ndarray):
            ceiling.touch_element(self, index)
        elif getattr(found, "_mmap", None) is None:
            ceiling.touch_anywhere(_MANY)
        else:
            ceiling.touch(found)
        return self._as_numpy(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        over = self._mmap
        ceiling = None if over is None else over.ceiling
        if ceiling is None or not ceiling.limited or not self.flags.writeable:
            np.ndarray.__setitem__(self, index, value)
            return
        plain = self.view(np.ndarray)
        if isinstance(index, (list, np.ndarray)) and self.ndim:
            rows = row_numbers(index, self.shape[0])
            if rows is not None:
                scatter(ceiling, plain, rows, value)
                return
        entries = index if isinstance(index, tuple) else (index,)
        if any(isinstance(entry, (list, np.ndarray)) for entry in entries):
            ceiling.touch_anywhere(_MANY)
        else:
            part = plain[index]
            if isinstance(part, np.ndarray):
                ceiling.touch(part)
            else:
                ceiling.touch_element(self, index)
        np.ndarray.__setitem__(self, index, value)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """Takes elements as `np.ndarray.take` does.

        Args:
            indices: Integers in any shape.
            axis: Axis to take from. With axis=0, whole rows are read as `m[indices]` reads them.
                None: the flattened array.
            out: Array for the result. Default: a new array.
            mode: "raise", "wrap" or "clip": what happens to indices out of range.

        Returns:
            An ndarray that owns its memory, or `out`.

        Raises:
            IndexError: An index is out of range and `mode` is "raise".
        """
        over = self._mmap
        if axis == 0 and out is None and mode == "raise" and over is not None and self.ndim:
            numbers = np.asarray(indices)
            if over.can_pass() and numbers.ndim and numbers.dtype.kind in "iu":
                return self[numbers]
        return self._as_numpy(np.ndarray.take(self, indices, axis, out, mode))

    def _rows(self, over: Map, ceiling: _core.Ceiling, rows: npt.NDArray[Any]) -> Any:
        plain = self.view(np.ndarray)
        found = over.read_rows(plain, rows)
        if found is None:
            found = gather(ceiling, plain, rows)
        return found if type(self) is memmap else found.view(type(self))

    def _as_numpy(self, found: Any) -> Any:
        """Returns a plain array for a result that is no longer a map, except in subclasses.

        np.memmap does the same.
        """
        if type(found) is memmap and found._mmap is None:
            return found.view(np.ndarray)
        return found

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        found = np.ndarray.__array_wrap__(self, array, context)
        if found is self or type(self) is not memmap:
            return found
        if return_scalar or (_NUMPY_1 and found.ndim == 0):
            return found[()]
        return found.view(np.ndarray)

    def __reduce__(self) -> Any:
        """Pickles by reference if there is a file to refer to, else by value as NumPy does."""
        over = self._mmap
        if over is None or over.ceiling is None or self.filename is None:
            return np.ndarray.__reduce__(self)
        mode = "r+" if self.mode == "w+" else self.mode  # unpickling must not create the file again
        place = over.start + address_of(self) - address_of(over)
        about = (self.filename, self.dtype, mode, place, self.shape, self.strides)
        return _reopen, (type(self), *about, over.memory, self.cache)


def _checked(dtype: npt.DTypeLike, mode: str, memory: int | str | None, cache: str) -> int:
    memory_bytes = _arguments.memory_bytes(memory)
    if _arguments.word(cache, "cache") not in _CACHES:
        raise ValueError(f"cache must be one of {', '.join(_CACHES)}, not {cache!r}")
    if mode == "c" and (memory is not None or cache == "drop"):
        raise ValueError(
            "mode 'c' takes neither memory nor cache 'drop': trimming a private map would lose "
            "what was written to it; use mode 'r' or 'r+'"
        )
    if np.dtype(dtype).hasobject:
        raise ValueError(
            f"dtype {np.dtype(dtype)} contains Python objects, which cannot be mapped from a file; "
            "use a plain dtype"
        )
    return memory_bytes or _core.default_memory_bytes()


def _access(mode: str) -> int:
    import mmap

    return {"r": mmap.ACCESS_READ, "c": mmap.ACCESS_COPY}.get(mode, mmap.ACCESS_WRITE)


def _reopen(
    cls: type[memmap],
    filename: Any,
    dtype: np.dtype[Any],
    mode: str,
    place: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    memory: int,
    cache: str,
) -> memmap:
    """Maps the same bytes of a pickled map again. Raises FormatError if the file has shrunk."""
    reaches = [stride * (extent - 1) for stride, extent in zip(strides, shape)]
    low = place + sum(reach for reach in reaches if reach < 0)
    end = place + sum(reach for reach in reaches if reach > 0) + dtype.itemsize
    if 0 in shape:
        low = end = place
    size = os.stat(filename).st_size
    if size < end:
        raise _core.FormatError(
            f"{filename}: was pickled with at least {end} bytes, but now has {size}: it was "
            "truncated"
        )
    for order in "CF":
        if 0 in shape or _strides(shape, dtype, order) == strides:
            return memmap.__new__(cls, filename, dtype, mode, place, shape, order, memory, cache)
    whole = memmap.__new__(cls, filename, np.uint8, mode, low, (end - low,), "C", memory, cache)
    found = np.ndarray.__new__(cls, shape, dtype, whole, place - low, strides)
    found._mmap = whole._mmap
    found.filename, found.offset, found.mode = whole.filename, whole.offset, whole.mode
    return found


def _strides(shape: tuple[int, ...], dtype: np.dtype[Any], order: str) -> tuple[int, ...]:
    """Returns the strides of a contiguous array."""
    step, found = dtype.itemsize, []
    for extent in shape[::-1] if order == "C" else shape:
        found.append(step)
        step *= extent
    return tuple(found[::-1] if order == "C" else found)
