"""Token files as one on-disk stream, and windows of it for training."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _arguments, _core
from lowtide._closing import Closing
from lowtide._data.documents import Documents
from lowtide._data.source import CoreSource
from lowtide._data.store import local_options, remote_options
from lowtide._index import indexing
from lowtide._operators import NoOperators, NoTruth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    AnyArray = npt.NDArray[Any]

# Iterating over tokens reads chunks of about this size, if the budget allows.
_CHUNK_BYTES = 1 << 20
_MOST_TOKENS = 2**56  # no machine has memory for a larger batch
_MEMORY = 3  # index of `memory` in Tokens._asked


def tokens(
    path: Path | Sequence[Path],
    dtype: npt.DTypeLike | None = None,
    format: str | None = None,
    eot: int | None = None,
    memory: int | str | None = None,
    engine: str = "auto",
    cache: str = "auto",
    gap: int | str | None = None,
    requests: int | None = None,
    store: Any = None,
    cache_dir: Path | None = None,
    cache_bytes: int | str | None = None,
    key: str | None = None,
) -> Tokens:
    """Opens token files as one stream; reads only the headers, and every index once.

    Args:
        path: A file, a list of files, a folder (the files that its index.json lists, as MDS and
            LitData write it, or else all files of one known format in it), a glob, or the common
            prefix of a Megatron pair. A path that exists is never treated as a pattern.
            Instead of a path, the address of an object on a server: `http://`, `https://` or
            `s3://bucket/key`.
        dtype: Type of tokens without a header. Default: uint16. If the files have headers, it must
            match them. Required for MDS with the encoding "bytes".
        format: "nanogpt", "llmc", "megatron", "olmo", "datatrove", "mds", "litdata" or "npy".
            Default: detected from the bytes and the name.
        eot: Token between documents, for formats that do not store document boundaries. It ends a
            document; in llm.c files it begins one.
        memory: Most memory that Lowtide may hold, in bytes or as text such as "64KiB", "256MiB" or
            "1.5GiB". Default: 256 MiB, or an eighth of the memory that this process may use if
            that is less.
        engine: How bytes are read: "auto", "pread", "uring" or "memory". A named engine is never
            replaced by another one.
        cache: What happens to pages that reads bring into the page cache: "keep", "drop", or
            "auto", which keeps them if the data is under half of the available memory.
        gap: Largest distance between two disk reads that may share one request, in bytes or as
            text such as "4KiB". The bytes in between are read and discarded. None adapts it to the
            disk; 0 merges only reads that touch.
        requests: Most requests to servers that are in flight at a time. Default: 128.
        store: What signs requests for objects, as for `lowtide.open`.
        cache_dir: Folder on a local disk that keeps objects as they are read, in blocks of 1 MiB.
            Later epochs and other processes read them there. Only for addresses.
        cache_bytes: Most that all processes together keep in `cache_dir`, in bytes or as text
            such as "200GiB". Default: as much as leaves a tenth of the file system free.
        key: Column that contains the tokens, for MDS. Default: "tokens", or the only column that
            can contain them.

    Returns:
        The open stream. It reads from the files on demand.

    Raises:
        OSError: A file cannot be opened (FileNotFoundError if it is missing), or the named engine
            is not available.
        FormatError: The bytes contradict the format, the header or the arguments.
        ValueError: An argument is invalid, or `memory` is too small.
        TypeError: An argument has the wrong type.
    """
    return Tokens(
        path, dtype, format, eot, memory, engine, cache, gap, requests, store, cache_dir,
        cache_bytes, key,
    )  # fmt: skip


class Tokens(NoOperators, NoTruth, Closing):
    """The tokens of one or more files as a single stream, read within `memory` bytes.

    `lowtide.tokens` creates it and documents its arguments. It is indexed like a one-dimensional
    ndarray; results own their memory. There are no operators: `t == 3` raises TypeError; write
    `t[i:j] == 3`. Any thread may use it. It is a context manager that closes the files. A pickle
    holds the path and arguments, not the data; unpickling opens the files again.
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
        requests: int | None = None,
        store: Any = None,
        cache_dir: Path | None = None,
        cache_bytes: int | str | None = None,
        key: str | None = None,
    ) -> None:
        given, expand = _arguments.path_list(path)
        # A pickle may be opened by a process with another working directory.
        names = [os.fsencode(absolute(os.fsdecode(name), expand)) for name in given]
        descr, _ = _arguments.descr(dtype)
        if format is not None:
            format = _arguments.word(format, "format")
        if key is not None:
            key = _arguments.word(key, "key")
        if eot is not None:
            eot = _arguments.integer(eot, "eot", 0, 2**64 - 1)
        remote = remote_options(requests, store, cache_dir, cache_bytes)
        self._core = _core.Tokens.open(
            names,
            expand=expand,
            dtype=descr,
            format=format,
            eot=eot,
            key=key,
            **local_options(memory, engine, cache, gap),
            **remote,
        )
        self._dtype = _arguments.dtype_of(self._core.descr)
        self._source = CoreSource(self._core, self.shape, self._dtype, has_parts=False)
        # Keep what the caller named, not what it expanded to: a glob over ten thousand shards
        # pickles as one string.
        where = [os.fsdecode(name) for name in names]
        self._where: str | list[str] = where[0] if expand else where
        asked = None if dtype is None else np.dtype(dtype)
        self._asked = (
            asked, format, eot, memory, engine, cache, gap, requests, store,
            remote["cache_dir"] or None, cache_bytes, key,
        )  # fmt: skip

    def __len__(self) -> int:
        """Number of tokens."""
        return self._core.size

    @property
    def size(self) -> int:
        """Number of tokens."""
        return self._core.size

    @property
    def shape(self) -> tuple[int]:
        """Number of tokens as the shape of a one-dimensional ndarray."""
        return (self._core.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a token as stored."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Size of all tokens as stored, in bytes."""
        return self._core.size * self._dtype.itemsize

    @property
    def format(self) -> str:
        """Format of the files, one of the words that `lowtide.tokens` takes as `format`."""
        return self._core.format

    @property
    def paths(self) -> list[str]:
        """Absolute paths of all data files in stream order, without empty files."""
        return [os.fsdecode(name) for name in self._core.paths]

    @property
    def memory(self) -> int:
        """Memory budget in bytes."""
        return self._core.memory_bytes

    @property
    def documents(self) -> Documents | None:
        """Sequence of documents, or None if the format does not store their boundaries."""
        count = self._core.documents()
        return None if count is None else Documents(self, count)

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._core.closed

    def __getitem__(self, index: Any) -> Any:
        """Returns what NumPy returns for the same index, in memory of its own.

        Args:
            index: Any index that NumPy accepts for one axis: an integer, a slice, an integer array
                or a mask.

        Returns:
            An ndarray that owns its memory, or a scalar.

        Raises:
            IndexError: The index is invalid, as in NumPy.
            OSError: A read failed.
            FormatError: A file has changed or is shorter than expected.
            ValueError: The tokens are closed.
        """
        found = self._source.get_plain(index)
        if found is not None:
            return found
        if self._core.closed:
            where = self._where if isinstance(self._where, str) else self._where[0]
            raise ValueError(f"{where}: these tokens are closed")
        return indexing.get(self._source, index)

    def __iter__(self) -> Iterator[Any]:
        """Iterates over all tokens, reading in chunks."""
        size = max(1, min(_CHUNK_BYTES, self.memory // 16) // self._dtype.itemsize)
        for first in range(0, len(self), size):
            yield from self[first : first + size]

    def windows(
        self, starts: npt.ArrayLike, block_size: int, dtype: npt.DTypeLike = "int64"
    ) -> tuple[AnyArray, AnyArray]:
        """Reads the windows that start at the given tokens.

        Args:
            starts: First token of each window: a list or array of integers with one axis.
            block_size: Tokens of `x` per window. Each window reads block_size + 1 tokens.
            dtype: Integer type of `x` and `y`.

        Returns:
            `(x, y)`, two arrays of shape (len(starts), block_size). `x[i]` starts at token
            starts[i], `y[i]` one token later. Both are writable views of one borrowed buffer,
            which stays valid and unchanged while any view of it lives.

        Raises:
            IndexError: A window reaches outside the stream.
            ValueError: A token does not fit `dtype`, `starts` is empty or has several axes, or the
                tokens are closed.
            TypeError: `starts` is not of an integer type.
            MemoryError: There is no memory for `x` and `y`.
        """
        block_size = _arguments.integer(block_size, "block_size", 1, _arguments.MAX)
        word = _arguments.token_word(dtype)
        found = checked_starts(starts)
        try:
            x, y, _ = self._core.windows(found, block_size, word)
        except MemoryError:
            raise _too_large(len(found), block_size, word) from None
        return x, y

    def batch(
        self, batch_size: int, block_size: int, seed: int, dtype: npt.DTypeLike = "int64"
    ) -> tuple[AnyArray, AnyArray]:
        """Reads windows at random starts, which depend on `seed` only.

        Args:
            batch_size: Number of windows.
            block_size: Tokens of `x` per window.
            seed: Seed of the draw, 0 to 2**64 - 1. Equal seeds give equal batches.
            dtype: Integer type of `x` and `y`.

        Returns:
            `(x, y)`, borrowed as from `windows`.

        Raises:
            ValueError: There are fewer than block_size + 1 tokens, a token does not fit `dtype`, an
                argument is out of range, or the tokens are closed.
            TypeError: An argument has the wrong type.
            MemoryError: There is no memory for `x` and `y`.
        """
        batch_size = _arguments.integer(batch_size, "batch_size", 1, _arguments.MAX)
        block_size = _arguments.integer(block_size, "block_size", 1, _arguments.MAX)
        seed = _arguments.integer(seed, "seed", 0, 2**64 - 1)
        word = _arguments.token_word(dtype)
        if block_size < len(self) and batch_size * block_size > _MOST_TOKENS:
            raise _too_large(batch_size, block_size, word)
        try:
            x, y, _ = self._core.batch(batch_size, block_size, seed, word)
        except MemoryError:
            raise _too_large(batch_size, block_size, word) from None
        return x, y

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """Loads all tokens into new memory, for `np.asarray(t)`.

        Raises:
            ValueError: The tokens are larger than `memory`, or `copy` is False.
        """
        if copy is False:
            raise ValueError(
                "lowtide.Tokens are on disk: they cannot become an ndarray without a copy"
            )
        if self.nbytes > self.memory:
            raise ValueError(
                f"these tokens take {_core.format_bytes(self.nbytes)}, more than their memory of "
                f"{_core.format_bytes(self.memory)}, so they are not loaded implicitly: use t[:] "
                "to load them anyway, or t.windows(starts, block_size) or a lowtide.Loader to read "
                "them in parts"
            )
        whole: AnyArray = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _instead(self) -> str:
        return (
            f"its tokens are on disk ({_core.format_bytes(self.nbytes)}). Index them first, as in "
            "t[i:j] or t[:]"
        )

    def reopen(self, memory: int | str | None = None) -> Tokens:
        """Opens the same files again with a separate budget.

        Args:
            memory: Budget of the new object, as for `lowtide.tokens`. Default: the `memory` given
                when these tokens were opened.

        Returns:
            A new `Tokens`.

        Raises:
            FormatError: The number of tokens or their dtype has changed.
            OSError: A file cannot be opened.
        """
        asked = list(self._asked)
        if memory is not None:
            asked[_MEMORY] = memory
        return _reopen(self._where, tuple(asked), len(self), self._core.descr)

    def stats(self) -> dict[str, Any]:
        """Reports the reads so far, the engine and the memory held, as `Array.stats` does."""
        return self._core.stats()

    def close(self) -> None:
        """Closes the files. Later reads raise ValueError; running loaders can finish."""
        self._core.close()

    def __reduce__(self) -> tuple[Any, ...]:
        _arguments.check_picklable(self._where)
        return _reopen, (self._where, self._asked, len(self), self._core.descr)

    def __repr__(self) -> str:
        named = [self._where] if isinstance(self._where, str) else self._where
        if any(_core.has_secret(os.fsencode(name)) for name in named):
            named = self.paths
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        about = (
            f"<lowtide.Tokens {len(self)} tokens dtype={self._dtype} format={self.format} "
            f"{named[0]!r}{more}"
        )
        if self.closed:
            return about + " closed>"
        return f"{about} memory={_core.format_bytes(self.memory)}>"


def checked_starts(starts: Any) -> AnyArray:
    """Converts `starts` to a type that the core borrows. The core checks their range."""
    found = starts if isinstance(starts, np.ndarray) else np.asarray(starts)
    if found.ndim != 1:
        raise ValueError(f"starts must have one axis, not shape {found.shape}")
    if not len(found):
        raise ValueError("starts is empty: give at least one start")
    if found.dtype not in indexing.BORROWED:
        if found.dtype.kind == "O" and all(type(start) is int for start in found):
            raise IndexError("starts has an entry outside the range of a 64-bit integer")
        if found.dtype.kind not in "iu":
            raise TypeError(f"starts must be integers, not {found.dtype}")
        return found.astype(np.int64)
    return found


def _too_large(rows: int, block_size: int, word: str) -> MemoryError:
    size = 2 * rows * block_size * np.dtype(word).itemsize
    shown = _core.format_bytes(size) if size <= _arguments.MAX else "more than 8 EiB"
    return MemoryError(f"{rows} windows of {block_size} tokens need {shown} for x and y in {word}")


def absolute(path: str, may_be_glob: bool) -> str:
    """Makes `path` absolute; escapes the working directory if `path` is a pattern."""
    if not path or os.path.isabs(path) or _core.is_address(os.fsencode(path)):
        return path
    folder = os.getcwd()
    if may_be_glob and not os.path.lexists(path) and any(sign in path for sign in "*?["):
        folder = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in folder)
    return os.path.join(folder, path)


def _reopen(where: str | list[str], arguments: tuple[Any, ...], size: int, descr: str) -> Tokens:
    """Opens pickled Tokens again. Raises FormatError if their number or dtype has changed."""
    found = Tokens(where, *arguments)
    if len(found) != size or found._core.descr != descr:
        raise _core.FormatError(
            f"{found.paths[0]}: was pickled with {size} tokens, "
            f"dtype {descr}, but now has {len(found)} tokens, dtype {found._core.descr}"
        )
    return found
