"""Writes token files document by document."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from lowtide import _arguments, _core
from lowtide._closing import Publishing

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class TokenWriter(Publishing):
    """Writes a token file, one document per `append`, within `memory` bytes.

    The files are written under temporary names beside `path`. `close` makes them durable and
    renames them, the index last, so that `path` holds the old file or the whole new one. As a
    context manager it closes at the end of the block; an exception abandons what was written, and
    so does a writer that is lost without `close`, with a ResourceWarning. No token is added
    between documents.

    Any thread may append: documents stay whole, in the order in which the calls got the writer's
    lock. A writer cannot be pickled, and the child of a fork cannot use it.

    Args:
        path: The data file. An index is written beside it: Megatron's ends in .idx,
            datatrove's in .ds.index.
        format: "nanogpt", "llmc", "megatron", "olmo" or "datatrove".
        dtype: Integer type of the tokens in the file.
        append: Continues an existing file of the same format and dtype, or begins one. Its tokens
            are copied into the new file first, so that the old one stays whole until `close`.
        memory: Most memory that the writer may hold, in bytes or as text such as "1MiB". Default:
            256 MiB, or an eighth of the memory that this process may use if that is less.

    Raises:
        OSError: The folder does not exist or is not writable, or another writer has this path.
        ValueError: The format cannot store `dtype`, an argument is invalid, or `memory` is too
            small.
        FormatError: The file to continue has another format or dtype, or several sequences per
            document.
        TypeError: An argument has the wrong type.
    """

    __slots__ = ("__weakref__", "_core", "_dtype")

    def __init__(
        self,
        path: Path,
        format: str,
        dtype: npt.DTypeLike,
        append: bool = False,
        memory: int | str | None = None,
    ) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"path must be a str or an os.PathLike, not {_arguments.told(path)}")
        (name,), _ = _arguments.path_list(path)
        word = _arguments.word(format, "format")
        self._dtype = np.dtype(_arguments.token_word(dtype))
        self._core = _core.TokenWriter.create(
            name,
            format=word,
            dtype=self._dtype.name,
            append=_arguments.flag(append, "append"),
            memory_bytes=_arguments.memory_bytes(memory),
        )

    def append(self, tokens: npt.ArrayLike) -> None:
        """Writes one document, which may be empty. Waits while the disk is behind.

        Args:
            tokens: The ids: a list or an array of integers with one axis.

        Raises:
            ValueError: An id does not fit the dtype (the message names document and id), the format
                cannot count so many tokens, or the writer is closed. Nothing of this document is
                written, and the writer remains usable.
            TypeError: The ids are not integers.
            OSError: The disk failed. The writer has failed as well: nothing will be published.
        """
        self.extend((tokens,))

    def extend(self, documents: Iterable[npt.ArrayLike]) -> None:
        """Appends every document of an iterable.

        It requests the next document only when the previous one is written, so that a generator
        never runs ahead of the disk. If a document fails, those before it stay written.

        Args:
            documents: Documents as `append` takes them, for example a generator or `t.documents`.

        Raises:
            ValueError, TypeError, OSError: As `append`.
        """
        if isinstance(documents, (str, bytes)):
            raise TypeError(
                f"documents must be an iterable of documents, not {_arguments.told(documents)}"
            )
        write, checked, ndarray = self._core.append, self._checked, np.ndarray
        for document in documents:
            if type(document) is ndarray:  # most arrays need nothing else
                try:
                    write(document)
                    continue
                except TypeError:
                    pass
            write(checked(document))

    def _checked(self, tokens: Any) -> npt.NDArray[Any]:
        """Returns the ids as a contiguous array of integers. Raises TypeError, ValueError."""
        ids = tokens if type(tokens) is np.ndarray else self._array(tokens)
        if ids.dtype.kind not in "iu":
            raise TypeError(f"{self._next()}: tokens must be integers, not {ids.dtype}")
        if ids.ndim != 1:
            raise ValueError(f"{self._next()}: tokens must have one axis, not shape {ids.shape}")
        if not ids.dtype.isnative:
            ids = ids.astype(ids.dtype.newbyteorder("="))
        return ids if ids.flags.c_contiguous else np.ascontiguousarray(ids)

    def _array(self, tokens: Any) -> npt.NDArray[Any]:
        if isinstance(tokens, (str, bytes)):
            raise TypeError(
                f"{self._next()}: tokens must be integers, not {_arguments.told(tokens)}"
            )
        try:
            ids = np.asarray(tokens)
        except ValueError as error:  # lists of different lengths
            raise ValueError(f"{self._next()}: tokens must have one axis: {error}") from None
        if ids.dtype.kind in "iu" or not isinstance(tokens, (list, tuple)):
            return ids
        if not tokens:
            return np.empty(0, self._dtype)
        # Integers beyond 64 bits, or of 64 bits with both signs, have no common type in NumPy.
        if all(type(token) is int for token in tokens):
            limits = np.iinfo(self._dtype)
            for place, token in enumerate(tokens):
                if not limits.min <= token <= limits.max:
                    raise ValueError(
                        f"{self._next()}: id {token} at token {place} does not fit {self._dtype}"
                    )
            return np.array(tokens, self._dtype)
        return ids

    def _next(self) -> str:
        return f"document {self._core.documents}"

    @property
    def tokens(self) -> int:
        """Number of tokens so far, including those of a file that is continued."""
        return self._core.tokens

    @property
    def documents(self) -> int:
        """Number of documents so far; a continued file counts if its format records them."""
        return self._core.documents

    @property
    def paths(self) -> list[str]:
        """Absolute final paths: the data file, then its index if the format has one."""
        return [os.fsdecode(name) for name in self._core.paths]

    @property
    def format(self) -> str:
        """Format of the file."""
        return self._core.format

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a token in the file."""
        return self._dtype

    @property
    def memory(self) -> int:
        """Memory budget in bytes."""
        return self._core.memory_bytes

    @property
    def closed(self) -> bool:
        """Whether the files are published or abandoned."""
        return self._core.closed

    def stats(self) -> dict[str, Any]:
        """Reports tokens, documents and the memory held, as `limit` and `claims` by name."""
        return {
            "tokens": self.tokens,
            "documents": self.documents,
            "memory": {"limit": self.memory, "claims": self._core.memory_claims()},
        }

    def close(self) -> None:
        """Publishes the files; a second call does nothing.

        Raises:
            OSError: The disk failed. Nothing new has a final name.
        """
        self._core.close()

    def abandon(self) -> None:
        """Removes what was written; an old file stays as it was. Does nothing after `close`."""
        self._core.abandon()

    def _target(self) -> str:
        return self.paths[0]

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a lowtide.TokenWriter cannot be pickled: its files belong to this process. Give every "
            "process a writer with a path of its own; lt.tokens reads the files as one stream"
        )

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return (
            f"<lowtide.TokenWriter {self.paths[0]!r}: {self.format}, {self._dtype}, "
            f"{self.tokens} tokens in {self.documents} documents{state}>"
        )
