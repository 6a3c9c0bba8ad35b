"""What callers may write for a size, a shape, a dtype, a path: checked here, once, in words."""

from __future__ import annotations

import operator
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

MAX = 2**63 - 1  # of what counts bytes, tokens, rows and steps


def memory_bytes(memory: int | str | None) -> int:
    """`memory` in bytes, 0 for None (the default budget). Raises ValueError, TypeError."""
    if memory is None:
        return 0
    if isinstance(memory, str):
        return _core.parse_bytes(memory)
    if isinstance(memory, (bool, np.bool_, float, np.floating)):
        raise ValueError(f"memory must be whole bytes or a text such as '64MiB', not {memory!r}")
    try:
        size = operator.index(memory)
    except TypeError:
        kind = type(memory).__name__
        raise TypeError(f"memory must be an int or a text such as '64MiB', not {kind}") from None
    if not 0 < size < 2**63:
        raise ValueError(f"memory must be from 1 to 2**63 - 1 bytes, not {size}")
    return size


def gap_bytes(gap: int | str | None) -> int | None:
    """`gap` in bytes; None stays None (fitted to the disk). Raises ValueError, TypeError."""
    if gap is None:
        return None
    return _core.parse_bytes(gap) if isinstance(gap, str) else integer(gap, "gap", 0, MAX)


def told(value: Any) -> str:
    """The type of `value`, and the value itself where it is short: for messages."""
    kind = type(value).__name__
    short = isinstance(value, (bool, float, str, np.generic)) and len(repr(value)) <= 40
    return f"{kind} ({value!r})" if short else kind


def integer(value: Any, name: str, low: int, high: int) -> int:
    """`value` as an int from `low` to `high`. Raises TypeError (bool, float), ValueError."""
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
    """`value` if it is a str. Raises TypeError; what the words are is the core's to say."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {told(value)}")
    return value


def flag(value: Any, name: str) -> bool:
    """`value` if it is a bool. Raises TypeError."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a bool, not {told(value)}")
    return bool(value)


def axes(shape: int | Sequence[int] | None) -> list[int] | None:
    """`shape` as a list of ints, each at least 0. Raises TypeError, ValueError."""
    if shape is None:
        return None
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)  # type: ignore[assignment]
    return [integer(extent, "a shape entry", 0, MAX) for extent in shape]  # type: ignore[union-attr]


def is_fortran(order: str | None) -> bool | None:
    """Whether `order` is "F"; None where it was not given. Raises ValueError, TypeError."""
    if order is None:
        return None
    if word(order, "order") not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', not {order!r}")
    return order == "F"


def path_list(path: Any) -> tuple[list[bytes], bool]:
    """The names to open, and whether it was one name that may be a glob. Raises TypeError."""
    if isinstance(path, (str, bytes, os.PathLike)):
        return [_encoded(path)], True
    if not isinstance(path, (list, tuple)):
        kind = type(path).__name__
        raise TypeError(f"path must be a str, an os.PathLike or a list of them, not {kind}")
    if not path:
        raise ValueError("path is an empty list: name at least one file")
    for place, one in enumerate(path):
        if not isinstance(one, (str, bytes, os.PathLike)):
            raise TypeError(f"path[{place}] must be a str or an os.PathLike, not {told(one)}")
    return [_encoded(one) for one in path], False


def _encoded(path: Any) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"a path cannot contain a null byte: {path!r}")
    return name


def descr(dtype: npt.DTypeLike | None) -> tuple[str | None, np.dtype[Any] | None]:
    """`dtype` as the text that a .npy header has for it, and as NumPy's object.

    Raises TypeError for what NumPy does not know, ValueError for a type without a layout in files.
    """
    if dtype is None:
        return None, None
    found = numpy_dtype(dtype)
    if found.subdtype is not None:
        base, shape = found.subdtype
        return repr((_descr_of(base), shape)), base
    return repr(_descr_of(found)), found


def numpy_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """As np.dtype, with a TypeError that names the argument."""
    try:
        return np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype must be a NumPy dtype such as 'float32': {error}") from None


def _descr_of(dtype: np.dtype[Any]) -> Any:
    with warnings.catch_warnings():
        # A type from outside NumPy (bfloat16) is bytes to a file; the caller's own dtype is kept.
        warnings.simplefilter("ignore", UserWarning)
        found = np.lib.format.dtype_to_descr(dtype)
    if dtype.kind == "T":
        raise ValueError(f"dtype {dtype} has no fixed size in a file")
    return found


_TOKEN_WORDS: dict[Any, str] = {}
for _word in ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"):
    _TOKEN_WORDS[_word] = _TOKEN_WORDS[np.dtype(_word)] = _TOKEN_WORDS[np.dtype(_word).type] = _word


def token_word(dtype: npt.DTypeLike) -> str:
    """The core's word for the integer type that tokens are wanted in. Raises TypeError, ValueError.

    The usual spellings cost one look into a table: this runs for every batch.
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
    """The NumPy dtype that the core's descr names."""
    if text.startswith("'"):
        return np.dtype(text.strip("'"))
    from ast import literal_eval

    return np.dtype(np.lib.format.descr_to_dtype(literal_eval(text)))


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raises TypeError, ValueError unless `out` can take a result of this shape and type."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an ndarray, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, not {shape}")
    if out.dtype != dtype:
        raise ValueError(f"out has dtype {out.dtype.str}, not {dtype.str}")
    if not out.flags.writeable:
        raise ValueError("out is not writable")
    if not out.flags.c_contiguous:
        raise ValueError("out is not C-contiguous")
