"""Token files as one stream on disk, and windows of it for training."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments, _core, _index
from lowtide._closing import Closing
from lowtide._documents import Documents
from lowtide._operators import NoTruth
from lowtide._source import TokenSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    AnyArray = npt.NDArray[Any]

# An iteration over tokens reads about this at once, if the budget allows.
_CHUNK_BYTES = 1 << 20
_MOST_TOKENS = 2**56  # of one batch: more are no size that memory has
_MEMORY = 3  # its place among what was asked for when opening


def tokens(
    path: Path | Sequence[Path],
    dtype: npt.DTypeLike | None = None,
    format: str | None = None,
    eot: int | None = None,
    memory: int | str | None = None,
    engine: str = "auto",
    cache: str = "auto",
    gap: int | str | None = None,
) -> Tokens:
    """Opens token files as one stream; only headers are read, and Megatron's index once.

    path: a file, a list of files, a folder (all files of one known format in it), a glob, or the
        prefix of a Megatron pair. A path that exists is never a pattern.
    dtype: of tokens without a header, uint16 if not given; must agree with a header.
    format: "nanogpt", "llmc", "megatron", "olmo" or "npy"; found by the bytes if not given.
    eot: the token between documents, for formats that do not write where documents are.
    memory: what Lowtide may hold, in bytes or as "64KiB", "256MiB", "1.5GiB". Default: 256 MiB, or
        an eighth of the memory that this process may use if that is less.
    engine: "auto", "pread", "uring" or "memory". cache: "auto", "keep" or "drop".
    gap: the most bytes between two reads from the disk that may share one request, as a number or
        as "4KiB". None fits it to the disk; 0 shares only where reads touch. What lies between is
        read for nothing: docs/engines.md tells how much.

    Raises OSError (a missing file: FileNotFoundError; an engine asked for by name that is not
    there), FormatError (the bytes are not what was promised), ValueError and TypeError.
    """
    return Tokens(path, dtype, format, eot, memory, engine, cache, gap)


class Tokens(NoTruth, Closing):
    """Tokens in files, one behind the other, read within `memory` bytes.

    Indexed as a one-dimensional ndarray; results are ndarrays of their own. There are no operators:
    `t == 3` raises TypeError, `t[i:j] == 3` does not. Any thread may use it. Made by
    `lowtide.tokens`, which says what the arguments mean. Pickles by reference.
    """

    __slots__ = ("__weakref__", "_asked", "_core", "_dtype", "_source", "_where")

    def __init__(
        self,
        path: Path | Sequence[Path],
        dtype: npt.DTypeLike | None = None,
        format: str | None = None,
        eot: int | None = None,
        memory: int | str | None = None,
        engine: str = "auto",
        cache: str = "auto",
        gap: int | str | None = None,
    ) -> None:
        given, expand = _arguments.path_list(path)
        # A pickle is opened in another process, which may stand in another folder.
        names = [os.fsencode(_absolute(os.fsdecode(name), expand)) for name in given]
        descr, _ = _arguments.descr(dtype)
        if format is not None:
            format = _arguments.word(format, "format")
        if eot is not None:
            eot = _arguments.integer(eot, "eot", 0, 2**64 - 1)
        budget = _arguments.memory_bytes(memory)
        engine, cache = _arguments.word(engine, "engine"), _arguments.word(cache, "cache")
        most = _arguments.gap_bytes(gap)
        self._core = _core.Tokens.open(
            names, expand, descr, format, eot, budget, engine, cache, most
        )
        self._dtype = _arguments.dtype_of(self._core.descr)
        self._source = TokenSource(self._core, self._dtype)
        # What was named, not what was found: ten thousand shards of a glob travel as one text.
        where = [os.fsdecode(name) for name in names]
        self._where: str | list[str] = where[0] if expand else where
        asked = None if dtype is None else np.dtype(dtype)
        self._asked = (asked, format, eot, memory, engine, cache, gap)

    def __len__(self) -> int:
        return self._core.size

    @property
    def size(self) -> int:
        """The number of tokens."""
        return self._core.size

    @property
    def shape(self) -> tuple[int]:
        """The number of tokens, as an ndarray says it."""
        return (self._core.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a token as stored."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """The bytes of all tokens as stored."""
        return self._core.size * self._dtype.itemsize

    @property
    def format(self) -> str:
        """ "nanogpt", "llmc", "megatron", "olmo" or "npy"."""
        return self._core.format

    @property
    def paths(self) -> list[str]:
        """The absolute paths of all data files in the order of the stream, empty ones left out."""
        return [os.fsdecode(name) for name in self._core.paths]

    @property
    def memory(self) -> int:
        """The budget in force, in bytes."""
        return self._core.memory_bytes

    @property
    def documents(self) -> Documents | None:
        """The documents as a sequence; None where the format does not write where they are."""
        count = self._core.documents()
        return None if count is None else Documents(self, count)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._core.closed

    def __getitem__(self, index: Any) -> Any:
        """What NumPy gives for the same index: an ndarray of its own, or a scalar.

        Raises IndexError as NumPy does, OSError, FormatError, and ValueError after `close`.
        """
        if self._core.closed:
            where = self._where if isinstance(self._where, str) else self._where[0]
            raise ValueError(f"{where}: these tokens are closed")
        return _index.get(self._source, index)

    def __iter__(self) -> Iterator[Any]:
        """Each token, read ahead in chunks."""
        size = max(1, min(_CHUNK_BYTES, self.memory // 16) // self._dtype.itemsize)
        for first in range(0, len(self), size):
            yield from self[first : first + size]

    def windows(
        self, starts: npt.ArrayLike, block_size: int, dtype: npt.DTypeLike = "int64"
    ) -> tuple[AnyArray, AnyArray]:
        """(x, y) of the windows that start at your own places, each (len(starts), block_size).

        x[i] is the tokens from starts[i] on and y[i] those from starts[i] + 1 on, in `dtype`. Both
        are writable and borrowed: valid and unchanged for as long as any view of them lives.

        Raises IndexError for a window that is not all inside, ValueError for a token that does not
        fit `dtype`, TypeError for starts that are not integers.
        """
        block_size = _arguments.integer(block_size, "block_size", 1, _arguments.MAX)
        word = _arguments.token_word(dtype)
        found = checked_starts(starts)
        try:
            both, _ = self._core.windows(found, block_size, word)
        except MemoryError:
            raise _too_large(len(found), block_size, word) from None
        return both[0], both[1]

    def batch(
        self, batch_size: int, block_size: int, seed: int, dtype: npt.DTypeLike = "int64"
    ) -> tuple[AnyArray, AnyArray]:
        """(x, y) of windows at random places: a pure function of `seed` (0 .. 2**64 - 1).

        Otherwise as `windows`. Raises ValueError where no window of this size is there.
        """
        batch_size = _arguments.integer(batch_size, "batch_size", 1, _arguments.MAX)
        block_size = _arguments.integer(block_size, "block_size", 1, _arguments.MAX)
        seed = _arguments.integer(seed, "seed", 0, 2**64 - 1)
        word = _arguments.token_word(dtype)
        if block_size < len(self) and batch_size * block_size > _MOST_TOKENS:
            raise _too_large(batch_size, block_size, word)
        try:
            both, _ = self._core.batch(batch_size, block_size, seed, word)
        except MemoryError:
            raise _too_large(batch_size, block_size, word) from None
        return both[0], both[1]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """All tokens in memory of their own if they are within `memory`, else ValueError."""
        if copy is False:
            raise ValueError(
                "lowtide.Tokens are on disk: they cannot become an ndarray without a copy"
            )
        if self.nbytes > self.memory:
            raise ValueError(
                f"these tokens have {_core.format_bytes(self.nbytes)}, more than their memory="
                f"{_core.format_bytes(self.memory)}, and will not be loaded whole by accident: "
                "use t[:] to load them nevertheless, t.windows(starts, block_size) or a "
                "lowtide.Loader to go through them"
            )
        whole: AnyArray = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _instead(self) -> str:
        return (
            f"its tokens are on disk ({_core.format_bytes(self.nbytes)}). Index them first, as in "
            "t[i:j] or t[:]"
        )

    def reopen(self, memory: int | str | None = None) -> Tokens:
        """The same files opened again, with a budget of their own: `memory`, or the same again.

        Raises FormatError where the files have changed.
        """
        asked = list(self._asked)
        if memory is not None:
            asked[_MEMORY] = memory
        return _reopen(self._where, tuple(asked), len(self), self._core.descr)

    def stats(self) -> dict[str, Any]:
        """Where the bytes came from so far, what serves them and why, and what memory is held.

        The keys are those of `Array.stats`.
        """
        return self._core.stats()

    def close(self) -> None:
        """Closes the files; loaders under way go on, further reads raise ValueError."""
        self._core.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._where, self._asked, len(self), self._core.descr)

    def __repr__(self) -> str:
        named = [self._where] if isinstance(self._where, str) else self._where
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        about = (
            f"<lowtide.Tokens {len(self)} tokens dtype={self._dtype} format={self.format} "
            f"{named[0]!r}{more}"
        )
        if self.closed:
            return about + " closed>"
        return f"{about} memory={_core.format_bytes(self.memory)}>"


def checked_starts(starts: Any) -> AnyArray:
    """`starts` as the core borrows them. Whether each window is inside is the core's to say."""
    found = starts if isinstance(starts, np.ndarray) else np.asarray(starts)
    if found.ndim != 1:
        raise ValueError(f"starts must have one axis, not shape {found.shape}")
    if not len(found):
        raise ValueError("starts is empty: name at least one window")
    if found.dtype not in _index.BORROWED:
        if found.dtype.kind == "O" and all(type(start) is int for start in found):
            raise IndexError("starts has an entry that no file is long enough for")
        if found.dtype.kind not in "iu":
            raise TypeError(f"starts must be integers, not {found.dtype}")
        return found.astype(np.int64)
    return found


def _too_large(rows: int, block_size: int, word: str) -> MemoryError:
    size = 2 * rows * block_size * np.dtype(word).itemsize
    shown = _core.format_bytes(size) if size <= _arguments.MAX else "more than 8 EiB"
    return MemoryError(f"{rows} windows of {block_size} tokens need {shown} for x and y in {word}")


def _absolute(path: str, may_be_glob: bool) -> str:
    """`path` from anywhere; the present folder is no part of a pattern."""
    if not path or os.path.isabs(path):
        return path
    folder = os.getcwd()
    if may_be_glob and not os.path.lexists(path) and any(sign in path for sign in "*?["):
        folder = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in folder)
    return os.path.join(folder, path)


def _reopen(where: str | list[str], arguments: tuple[Any, ...], size: int, descr: str) -> Tokens:
    """Tokens from their pickle: the same files, which must still hold what they held."""
    found = Tokens(where, *arguments)
    if len(found) != size or found._core.descr != descr:
        raise _core.FormatError(
            f"{where if isinstance(where, str) else where[0]}: was pickled with {size} tokens, "
            f"dtype {descr}, and has now {len(found)} tokens, dtype {found._core.descr}"
        )
    return found
