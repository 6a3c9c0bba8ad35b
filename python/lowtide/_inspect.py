"""Describes files and this machine, and checks that files match what their headers promise."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _command, _core

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from lowtide._data.subject import Subject

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
    """Describes a file; reads only the headers, and a Megatron index once.

    Args:
        path: A file, a list of files, a glob or a folder, as for `lowtide.open` and
            `lowtide.tokens`.
        dtype: Type of the elements in a file without a header. If there is a header, `dtype`,
            `shape`, `offset` and `order` must match it.
        shape: Shape of an array without a header.
        offset: Byte at which the data of an array without a header starts. Default: 0.
        order: "C" or "F", the memory layout of an array without a header. Default: "C".
        format: A word such as "npy", "safetensors", "raw", "nanogpt" or "megatron". Default:
            detected from the bytes and the name.
        tokens: True reads the file as tokens, False as an array. None: files in an array format
            are arrays. Megatron and llm.c files, files without a header whose names end in .bin or
            .npy, and folders are tokens, except folders of arrays that could not be tokens.

    Returns:
        A dict that JSON can hold, with these keys:

        - `path`, `kind` ("array", "tokens" or "sparse"), `format`, `dtype`.
        - `bytes`: size of all files. `shards`: number of files with data.
        - `cached`: bytes in the page cache, None if the kernel does not report them.
        - `files`: a list of dicts with `path`, `bytes` and `cached`.
        - Arrays: `shape` and `order`; these and `dtype` are None in a file of several arrays.
        - HDF5, zarr groups, Arrow files, safetensors and npz: `arrays`, a list of dicts with `key`,
            `dtype`, `shape`, `order` and `bytes`, or with `key` and `error` for an array that
            Lowtide cannot read. HDF5 needs h5py, and Arrow files need pyarrow.
        - Folders of BioNeMo-SCDL, whose `kind` is "sparse": `shape`, and `nnz`, the number of
            stored values.
        - Tokens: the numbers `tokens` and `documents`; the latter is None if the format does not
            record documents.

    Raises:
        OSError: A file cannot be opened or read.
        FormatError: The bytes contradict the header or the arguments.
        ValueError: An argument is invalid.
        TypeError: An argument has the wrong type.
    """
    asked = _asked(path, tokens, dtype, shape, offset, order, format)
    return _told(asked, lambda: _core.info(*asked), lambda module, one: module.info(one))


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
    """Reads a whole file, checks everything in it that can be wrong, and raises at the first fault.

    It compares sizes with headers, checks indexes, reads every byte, and checks that booleans are
    0 or 1. If a file contains several arrays, it checks all of them. For sparse matrices it checks
    that rows are in order and that every column exists. For MDS folders it compares the hashes in
    the index, if Python's hashlib supports them. It leaves the page cache as it was. Ctrl-C stops
    it.

    Args:
        path: A file, a list of files, a glob or a folder, as for `lowtide.info`.
        dtype: As for `lowtide.info`.
        shape: As for `lowtide.info`.
        offset: As for `lowtide.info`.
        order: As for `lowtide.info`.
        format: As for `lowtide.info`.
        tokens: As for `lowtide.info`.
        vocab: Every token must be from 0 to vocab - 1. None: not checked.
        eot: Token that every document must end with. In files without a document index, the last
            token of each file must be `eot`; in llm.c files, the first. None: not checked.
        nan: If True, counts NaN and infinities in an array of floating-point numbers.
        memory: Most memory to hold, in bytes or as text such as "64MiB".

    Returns:
        The dict of `lowtide.info` with `notes` (a list of findings that are not faults), for tokens
        `highest_token`, and with `nan=True` the counts `nan` and `infinite`.

    Raises:
        OSError: A file cannot be opened or read.
        FormatError: A fault was found. The message names the path, the byte, what was expected
            and what was found.
        ValueError: An argument is invalid.
        TypeError: An argument has the wrong type.
    """
    asked = _asked(path, tokens, dtype, shape, offset, order, format)
    if vocab is not None:
        vocab = _arguments.integer(vocab, "vocab", 1, 2**64 - 1)
    if eot is not None:
        eot = _arguments.integer(eot, "eot", 0, 2**64 - 1)
    count = _arguments.flag(nan, "nan")
    budget = _arguments.memory_bytes(memory)

    def core() -> dict[str, Any]:
        from lowtide._data import hashes

        found: dict[str, Any] = _core.check(*asked, vocab, eot, count, budget)
        if found["kind"] == "tokens" and len(asked[0]) == 1:
            found["notes"] += hashes.compare(asked[0][0], budget)
        return found

    if vocab is not None or eot is not None:  # only tokens have them
        return _readable(core())
    return _told(asked, core, lambda module, one: module.check(one, count, budget))


def doctor(path: Path | None = None, memory: int | str | None = None) -> dict[str, Any]:
    """Reports what this build contains, what the machine allows and what would make reads faster.

    It changes nothing.

    Args:
        path: A file or a folder. If given, the report adds its file system, its device and how it
            will be read.
        memory: Budget that Lowtide would be given, in bytes or as text such as "64MiB". None: its
            default.

    Returns:
        A dict that JSON can hold, as `lowtide doctor --json` prints it:

            - path.
            - conclusion: what will be used, and the one change that would make it faster.
            - build: version, compiler, target, io_uring and http (whether they were compiled in),
              why_no_http (empty: objects on servers can be read here), vector_paths
              and vector_used ("avx512", "avx2" or None), command and guard (paths of the command
              and of the library that `lowtide guard` preloads; None if this build has none),
              python, module (the compiled file), free_threaded (whether this Python can run
              without the GIL) and gil (whether it runs with it).
            - facts: a list of dicts with name, state ("good", "note", "bad" or "unknown"), value,
              detail and advice.

    Raises:
        OSError: `path` does not exist.
        ValueError: `memory` is not a size.
        TypeError: An argument has the wrong type.
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
    """Returns the leading arguments of the core's info and check."""
    names, expand = _arguments.path_list(path)
    kind = None if tokens is None else _arguments.flag(tokens, "tokens")
    descr, _ = _arguments.descr(dtype)
    start = None if offset is None else _arguments.integer(offset, "offset", 0, _arguments.MAX)
    word = None if format is None else _arguments.word(format, "format")
    fortran = _arguments.is_fortran(order)
    return names, expand, kind, descr, _arguments.axes(shape), start, fortran, word


def _told(
    asked: Asked,
    core: Callable[[], dict[str, Any]],
    other: Callable[[Any, Subject], dict[str, Any]],
) -> dict[str, Any]:
    """Returns the result of the core, or of `other` for a file that the core cannot read."""
    from lowtide._data import subject

    names, _, tokens, dtype, shape, offset, fortran, word = asked
    described = (dtype, offset, fortran) != (None, None, None)
    plain = not tokens and not described
    if plain and word in (None, "scdl"):
        # The core would take its files for tokens.
        found = subject.find_scdl(names, shape)
        if found is not None:
            return _readable(other(*found))
    try:
        return _readable(core())
    except (ValueError, IsADirectoryError):
        found = subject.find(names, word) if plain and shape is None else None
        if found is None:
            raise
    return _readable(other(*found))


def _readable(found: dict[str, Any]) -> dict[str, Any]:
    """Decodes file names with os.fsdecode, which keeps bytes that are not UTF-8."""
    found["path"] = os.fsdecode(found["path"])
    for file in found["files"]:
        file["path"] = os.fsdecode(file["path"])
    return found
