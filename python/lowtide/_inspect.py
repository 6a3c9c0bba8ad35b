"""What a file is, whether all of it is as its header promises, and what this machine allows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _command, _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    # paths, expand, tokens, dtype, shape, offset_bytes, fortran_order, format
    Asked = tuple[
        list[bytes],
        bool,
        bool | None,
        str | None,
        list[int] | None,
        int | None,
        bool | None,
        str | None,
    ]


def info(
    path: Path | Sequence[Path],
    dtype: npt.DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    offset: int | None = None,
    order: str | None = None,
    format: str | None = None,
    tokens: bool | None = None,
) -> dict[str, Any]:
    """What a file is, as a dict that JSON can hold; headers are read, and Megatron's index once.

    path: as `lowtide.open` and `lowtide.tokens` take it: a file, a list, a glob, a folder.
    dtype, shape, offset, order: of an array without a header; must agree with one.
    format: "npy", "raw", "nanogpt", "llmc", "megatron" or "olmo"; found by the bytes if not given.
    tokens: True reads it as tokens, False as an array. If not given, NumPy's magic is an array;
        Megatron's and llm.c's, a folder, and headerless files that end in .bin or .npy are tokens.

    Keys: path, kind ("array", "tokens"), format, dtype, bytes (of all files), shards (files with
    data), cached (bytes in the page cache, None where that cannot be seen), files (path, bytes,
    cached of each). Arrays: shape, order. Tokens: tokens, documents (None where the format does
    not tell).

    Raises OSError, FormatError, ValueError and TypeError.
    """
    return _readable(_core.info(*_asked(path, tokens, dtype, shape, offset, order, format)))


def check(
    path: Path | Sequence[Path],
    dtype: npt.DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    offset: int | None = None,
    order: str | None = None,
    format: str | None = None,
    tokens: bool | None = None,
    vocab: int | None = None,
    eot: int | None = None,
    nan: bool = False,
    memory: int | str = "64MiB",
) -> dict[str, Any]:
    """Reads all of a file that can be wrong and raises at the first fault.

    Sizes against headers, indexes, every byte, truth values that are neither 0 nor 1, and what is
    asked for. The page cache is left as it was.

    path, dtype, shape, offset, order, format, tokens: as `lowtide.info` takes them.
    vocab: tokens must be from 0 to below this.
    eot: the token that every document ends with; without an index the last one of the file
        (llm.c: the first).
    nan: count NaN and infinities of an array of floating-point numbers.
    memory: what it may hold, in bytes or as "64MiB".

    Returns what `lowtide.info` does, with notes (what is odd and allowed), highest_token of tokens,
    nan and infinite where counted. Raises OSError, FormatError (path, byte, expected, found),
    ValueError and TypeError. Ctrl-C ends it.
    """
    asked = _asked(path, tokens, dtype, shape, offset, order, format)
    if vocab is not None:
        vocab = _arguments.integer(vocab, "vocab", 1, 2**64 - 1)
    if eot is not None:
        eot = _arguments.integer(eot, "eot", 0, 2**64 - 1)
    count = _arguments.flag(nan, "nan")
    budget = _arguments.memory_bytes(memory)
    return _readable(_core.check(*asked, vocab, eot, count, budget))


def doctor(path: Path | None = None, memory: int | str | None = None) -> dict[str, Any]:
    """Reports what this build contains, what the machine allows and what would make reads faster.

    path: a file or a folder, to report its file system, its device and how it will be read.
    memory: the budget that Lowtide would be given, in bytes or as "64MiB"; its default if None.

    Returns a dict that JSON can hold, as `lowtide doctor --json` prints it:
    path; conclusion (what will be used, and the one thing that would make it faster);
    build: version, compiler, target, io_uring (whether it was compiled in), vector_paths and
    vector_used ("avx2" or None), command and guard (paths of the command and of the library that
    `lowtide guard` preloads; None if this build has none), python, module (the compiled file),
    free_threaded (whether this Python can run without the GIL), gil (whether it runs with it);
    facts: a list of dicts with name, state ("good", "note", "bad", "unknown"), value, detail and
    advice.

    It changes nothing. Raises OSError if path does not exist, ValueError and TypeError.
    """
    if path is not None and not isinstance(path, (str, bytes, os.PathLike)):
        kind = type(path).__name__
        raise TypeError(f"path must be a str or an os.PathLike, not {kind}")
    name = None if path is None else _arguments.path_list(path)[0][0]
    budget = _arguments.memory_bytes(memory)
    folder = os.fsencode(_command.scripts_folder())
    found: dict[str, Any] = {"path": None if name is None else os.fsdecode(name)}
    found.update(_core.doctor(name, budget, folder))
    build = found["build"]
    for key in ("command", "guard"):
        if build[key] is not None:
            build[key] = os.path.normpath(os.fsdecode(build[key]))
    build["python"] = sys.version.split()[0]
    build["module"] = os.path.basename(_core.__file__)
    build["free_threaded"] = "t" in getattr(sys, "abiflags", "")
    build["gil"] = getattr(sys, "_is_gil_enabled", lambda: True)()
    return found


def _asked(
    path: Path | Sequence[Path],
    tokens: bool | None,
    dtype: npt.DTypeLike | None,
    shape: int | Sequence[int] | None,
    offset: int | None,
    order: str | None,
    format: str | None,
) -> Asked:
    """The first arguments of the core's info and check."""
    names, expand = _arguments.path_list(path)
    kind = None if tokens is None else _arguments.flag(tokens, "tokens")
    descr, _ = _arguments.descr(dtype)
    start = None if offset is None else _arguments.integer(offset, "offset", 0, _arguments.MAX)
    word = None if format is None else _arguments.word(format, "format")
    fortran = _arguments.is_fortran(order)
    return names, expand, kind, descr, _arguments.axes(shape), start, fortran, word


def _readable(found: dict[str, Any]) -> dict[str, Any]:
    """With names as text: bytes that are no UTF-8 as os.fsdecode has them."""
    found["path"] = os.fsdecode(found["path"])
    for file in found["files"]:
        file["path"] = os.fsdecode(file["path"])
    return found
