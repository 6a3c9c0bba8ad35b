"""np.memmap with a ceiling: for code that must keep a map, at the change of one name."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments, _core, _map_index
from lowtide._map import Map, address_of

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

_WORDS = {"readonly": "r", "copyonwrite": "c", "readwrite": "r+", "write": "w+"}
_CACHES = ("auto", "keep", "drop")
_NUMPY_1 = np.lib.NumpyVersion(np.__version__) < "2.0.0b1"
_MANY = 1 << 32  # places that NumPy touched by itself: the pages are counted


class memmap(np.memmap[Any, np.dtype[Any]]):
    """An np.memmap whose pages in this process stay near `memory` bytes.

    filename, dtype, mode, offset, shape, order: as np.memmap has them, with its defaults. All that
        takes an np.memmap takes this.
    memory: how much of the file may be entered in this process (RssFile), in bytes or as "64KiB",
        "256MiB", "1.5GiB". Default: 256 MiB, or an eighth of the memory that this process may use
        if that is less.
    cache: "keep" (as "auto") leaves the page cache as it is; "drop" empties it of what the map
        brought in and was not there before.

    The ceiling is soft. Loops over slices stay within 1.25 x memory + 16 MiB; a whole view that
    other C code reads is trimmed by a thread and may pass it for a moment. Whole rows chosen by
    numbers or by a mask (m[idx], m[mask], m.take(idx, axis=0)) are read by Lowtide's engine and are
    arrays of their own. What was written is never lost: a trim leaves it in the page cache, `flush`
    sends it to the disk. Mode "c" works as in NumPy and is never trimmed, since that would lose
    what was written: `memory` is a ValueError there. Pickles by reference.

    This is a weaker promise than that of `lowtide.open`, which maps nothing: a file that is
    truncated while it is mapped kills the process (SIGBUS) when the lost part is touched, as with
    every map, and no exception can catch that.

    Raises what np.memmap raises, and ValueError for a bad `memory` or `cache` and for a dtype with
    Python objects in it.
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
        """The ceiling in bytes; None for mode "c" and for what is no map (a copy, a sum)."""
        over = self._mmap
        return None if over is None or over.ceiling is None else over.memory

    @property
    def cache(self) -> str:
        """ "keep" or "drop": what becomes of the page cache that the map brings in."""
        over = self._mmap
        return "drop" if over is not None and over.ceiling is not None and over.drops else "keep"

    def __getitem__(self, index: Any) -> Any:
        """As NumPy indexes; what lies beyond the ceiling is given back first."""
        over = self._mmap
        ceiling = None if over is None else over.ceiling
        if over is None or ceiling is None or not ceiling.limited:
            return self._as_numpy(np.ndarray.__getitem__(self, index))
        if isinstance(index, (list, np.ndarray)) and self.ndim:
            rows = _map_index.row_numbers(index, self.shape[0])
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
            rows = _map_index.row_numbers(index, self.shape[0])
            if rows is not None:
                _map_index.scatter(ceiling, plain, rows, value)
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
        """As NumPy's; whole rows (axis=0) are read as m[indices] reads them."""
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
            found = _map_index.gather(ceiling, plain, rows)
        return found if type(self) is memmap else found.view(type(self))

    def _as_numpy(self, found: Any) -> Any:
        """What is no map any more is a plain array, except in subclasses, as NumPy has it."""
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
        """By reference where there is a file to refer to, else by value as NumPy does."""
        over = self._mmap
        if over is None or over.ceiling is None or self.filename is None:
            return np.ndarray.__reduce__(self)
        mode = "r+" if self.mode == "w+" else self.mode  # never made anew
        place = over.start + address_of(self) - address_of(over)
        about = (self.filename, self.dtype, mode, place, self.shape, self.strides)
        return _reopen, (type(self), *about, over.memory, self.cache)


def _checked(dtype: npt.DTypeLike, mode: str, memory: int | str | None, cache: str) -> int:
    memory_bytes = _arguments.memory_bytes(memory)
    if _arguments.word(cache, "cache") not in _CACHES:
        raise ValueError(f"cache must be one of {', '.join(_CACHES)}, not {cache!r}")
    if mode == "c" and (memory is not None or cache == "drop"):
        raise ValueError(
            "mode 'c' takes no memory= and no cache='drop': to trim a private map would lose what "
            "was written to it; use mode 'r' or 'r+'"
        )
    if np.dtype(dtype).hasobject:
        raise ValueError(f"dtype {np.dtype(dtype)}: Python objects cannot lie in a file")
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
    """A map from its pickle: the same bytes of the same file, which must still be there."""
    reaches = [stride * (extent - 1) for stride, extent in zip(strides, shape)]
    low = place + sum(reach for reach in reaches if reach < 0)
    end = place + sum(reach for reach in reaches if reach > 0) + dtype.itemsize
    if 0 in shape:
        low = end = place
    size = os.stat(filename).st_size
    if size < end:
        raise _core.FormatError(
            f"{filename}: was pickled with {end} bytes, and has now {size}: it was cut short"
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
    """The strides of a contiguous array."""
    step, found = dtype.itemsize, []
    for extent in shape[::-1] if order == "C" else shape:
        found.append(step)
        step *= extent
    return tuple(found[::-1] if order == "C" else found)
