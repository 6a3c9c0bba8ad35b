"""Checks and converts the sizes, shapes, dtypes and paths that callers pass."""

from __future__ import annotations

import errno
import operator
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

MAX = 2**63 - 1  # largest number of bytes, tokens, rows or steps


def memory_bytes(memory: int | str | None, name: str = "memory") -> int:
    """Returns `memory` in bytes, 0 for None (the default). Raises ValueError, TypeError."""
    if memory is None:
        return 0
    if isinstance(memory, str):
        return _parsed(memory, name)
    if isinstance(memory, (bool, np.bool_, float, np.floating)):
        raise ValueError(f"{name} must be an int in bytes or a str such as '64MiB', not {memory!r}")
    try:
        size = operator.index(memory)
    except TypeError:
        kind = type(memory).__name__
        raise TypeError(
            f"{name} must be an int in bytes or a str such as '64MiB', not {kind}"
        ) from None
    if not 0 < size < 2**63:
        raise ValueError(f"{name} must be from 1 to 2**63 - 1 bytes, not {size}")
    return size


def gap_bytes(gap: int | str | None) -> int | None:
    """Returns `gap` in bytes; None adapts it to the disk. Raises ValueError, TypeError."""
    if gap is None:
        return None
    return _parsed(gap, "gap", 0) if isinstance(gap, str) else integer(gap, "gap", 0, MAX)


def _parsed(size: str, name: str, least: int = 1) -> int:
    try:
        return _core.parse_bytes(size, least)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def requests(count: int | None) -> int:
    """Returns the most requests in flight; None is the default. Raises ValueError, TypeError."""
    return 128 if count is None else integer(count, "requests", 1, 4096)


def told(value: Any) -> str:
    """Describes `value` for a message: its type, and the value itself if it is short."""
    kind = type(value).__name__
    short = isinstance(value, (bool, float, str, np.generic)) and len(repr(value)) <= 40
    return f"{kind} ({value!r})" if short else kind


def integer(value: Any, name: str, low: int, high: int) -> int:
    """Returns `value` as an int from `low` to `high`. Raises TypeError, ValueError."""
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not {told(value)}")
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {told(value)}") from None
    if not low <= found <= high:
        bound = f"at least {low}" if found < low else f"at most {high}"
        raise ValueError(f"{name} must be {bound}, not {found}")
    return found


def word(value: Any, name: str) -> str:
    """Returns `value` if it is a str, else raises TypeError. The core checks which words exist."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {told(value)}")
    return value


def flag(value: Any, name: str) -> bool:
    """Returns `value` if it is a bool. Raises TypeError."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a bool, not {told(value)}")
    return bool(value)


def axes(shape: int | Sequence[int] | None) -> list[int] | None:
    """Returns `shape` as a list of ints, each at least 0. Raises TypeError, ValueError."""
    if shape is None:
        return None
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)  # type: ignore[assignment]
    return [integer(extent, "an entry of shape", 0, MAX) for extent in shape]  # type: ignore[union-attr]


def is_fortran(order: str | None) -> bool | None:
    """Returns whether `order` is "F", or None if it is None. Raises ValueError, TypeError."""
    if order is None:
        return None
    if word(order, "order") not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', not {order!r}")
    return order == "F"


def path_list(path: Any) -> tuple[list[bytes], bool]:
    """Returns the names to open, and whether it is one name that may be a glob.

    Raises TypeError, ValueError.
    """
    if isinstance(path, (str, bytes, os.PathLike)):
        return [_encoded(path)], True
    if not isinstance(path, (list, tuple)):
        kind = type(path).__name__
        raise TypeError(f"path must be a str, an os.PathLike or a list of them, not {kind}")
    if not path:
        raise ValueError("path is an empty list: give at least one file")
    for place, one in enumerate(path):
        if not isinstance(one, (str, bytes, os.PathLike)):
            raise TypeError(f"path[{place}] must be a str or an os.PathLike, not {told(one)}")
    return [_encoded(one) for one in path], False


def _encoded(path: Any) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        shown = "an address" if _core.is_address(name) else repr(path)
        raise ValueError(f"a path cannot contain a null byte: {shown}")
    return name


def tier(folder: Any, most: int | str | None) -> tuple[bytes, int]:
    """Returns `cache_dir` as an absolute path, empty for None, and `cache_bytes` in bytes.

    Raises TypeError, ValueError.
    """
    most_bytes = memory_bytes(most, "cache_bytes")
    if folder is None:
        if most is not None:
            raise ValueError("cache_bytes needs cache_dir: name the folder that it bounds")
        return b"", 0
    if not isinstance(folder, (str, bytes, os.PathLike)):
        raise TypeError(f"cache_dir must be a str or an os.PathLike, not {told(folder)}")
    if not os.fspath(folder):
        raise ValueError("cache_dir is empty: name a folder")
    return os.fsencode(os.path.abspath(os.fsdecode(folder))), most_bytes


def whole_path(path: str) -> str:
    """Returns an absolute path; the address of an object is one already."""
    return path if _core.is_address(os.fsencode(path)) else os.path.abspath(path)


def require_local(path: Any) -> None:
    """Raises OSError for the address of an object, where only a local file will do."""
    if isinstance(path, (str, bytes, os.PathLike)) and _core.is_address(os.fsencode(path)):
        shown = os.fsdecode(_core.shown_address(os.fsencode(path)))
        why = "only a local file can be mapped or written, not an object on a server"
        raise OSError(errno.ENOTSUP, why, shown)


def check_picklable(paths: str | Sequence[str]) -> None:
    """Raises TypeError for an address with a secret, because a pickle must not contain one."""
    for path in [paths] if isinstance(paths, str) else paths:
        if _core.has_secret(os.fsencode(path)):
            raise TypeError(
                "cannot pickle an object whose address contains user:password or a query: open it "
                "again where it is needed"
            )


def descr(dtype: npt.DTypeLike | None) -> tuple[str | None, np.dtype[Any] | None]:
    """Returns `dtype` as the text of a .npy header, and as a NumPy dtype.

    Raises TypeError if NumPy does not know it, ValueError if it has no fixed layout in files.
    """
    if dtype is None:
        return None, None
    found = numpy_dtype(dtype)
    if found.subdtype is not None:
        base, shape = found.subdtype
        return repr((_descr_of(base), shape)), base
    return repr(_descr_of(found)), found


def numpy_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Calls np.dtype, with a TypeError that names the argument."""
    try:
        return np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype must be a NumPy dtype such as 'float32': {error}") from None


def _descr_of(dtype: np.dtype[Any]) -> Any:
    with warnings.catch_warnings():
        # In a file, a type from outside NumPy (bfloat16) is just bytes; Array keeps the caller's
        # dtype.
        warnings.simplefilter("ignore", UserWarning)
        found = np.lib.format.dtype_to_descr(dtype)
    if dtype.kind == "T":
        raise ValueError(f"dtype {dtype} has no fixed size in a file; use one such as 'U16'")
    return found


_TOKEN_WORDS: dict[Any, str] = {}
for _word in _core.token_types():
    _TOKEN_WORDS[_word] = _TOKEN_WORDS[np.dtype(_word)] = _TOKEN_WORDS[np.dtype(_word).type] = _word


def token_word(dtype: npt.DTypeLike) -> str:
    """Returns the core's word for an integer type. Raises TypeError, ValueError.

    This runs once per batch, so the usual spellings cost one table lookup.
    """
    try:
        found = _TOKEN_WORDS.get(dtype)
    except TypeError:
        found = None
    if found is None:
        wanted = numpy_dtype(dtype)
        found = _TOKEN_WORDS.get(wanted)
        if found is None:
            words = ", ".join(key for key in _TOKEN_WORDS if isinstance(key, str))
            raise ValueError(f"dtype of tokens must be one of {words}, not {wanted}")
    return found


def dtype_of(text: str) -> np.dtype[Any]:
    """Returns the NumPy dtype of a descr from the core."""
    if text.startswith("'"):
        return np.dtype(text.strip("'"))
    from ast import literal_eval

    return np.dtype(np.lib.format.descr_to_dtype(literal_eval(text)))


def stored_dtype(text: str, extension: str) -> np.dtype[Any]:
    """Returns the dtype of elements in a file.

    NumPy lacks types with an `extension` name such as "bfloat16", which ml_dtypes provides. Without
    ml_dtypes the elements are unsigned integers with the same bits.
    """
    found = dtype_of(text)
    if not extension:
        return found
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(f"u{found.itemsize}")
    kind = getattr(ml_dtypes, extension, None)  # an old version may lack it
    return np.dtype(f"u{found.itemsize}" if kind is None else kind)


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raises TypeError or ValueError unless `out` can hold a result of this shape and dtype."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an ndarray, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out must have shape {shape}, not {out.shape}")
    if out.dtype != dtype:
        raise ValueError(f"out must have dtype {dtype.str}, not {out.dtype.str}")
    if not out.flags.writeable:
        raise ValueError("out must be writable, but it is read-only")
    if not out.flags.c_contiguous:
        raise ValueError(f"out must be C-contiguous, but its strides are {out.strides}")
