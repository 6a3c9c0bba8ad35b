"""The documents of token files as a sequence; its index is read on demand."""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._operators import NoOperators

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lowtide._data.tokens import Tokens

    AnyArray = npt.NDArray[Any]

_CHUNK_OFFSETS = 1 << 16  # per call of the core


class Documents(NoOperators):
    """The documents of token files as a sequence of token arrays.

    `Tokens.documents` creates it. Indexing and iterating read documents from disk; each result is
    an array that owns its memory, with the dtype as stored.
    """

    __slots__ = ("_count", "_tokens")

    def __init__(self, tokens: Tokens, count: int) -> None:
        self._tokens = tokens
        self._count = count

    def __len__(self) -> int:
        """Number of documents."""
        return self._count

    def __getitem__(self, index: int) -> AnyArray:
        """Reads the tokens of one document into an array that owns its memory.

        Args:
            index: Number of the document. A negative one counts from the end.

        Raises:
            IndexError: There is no such document.
            TypeError: `index` is not an integer.
        """
        try:
            found = operator.index(index)
        except TypeError:
            kind = type(index).__name__
            raise TypeError(f"a document index must be an integer, not {kind}") from None
        place = found + self._count if found < 0 else found
        if not 0 <= place < self._count:
            raise IndexError(f"document {found} is out of range: there are {self._count}")
        first, last = self._read_offsets(place, 2).tolist()
        whole: AnyArray = self._tokens[first:last]
        return whole

    def __iter__(self) -> Iterator[AnyArray]:
        """Iterates over the documents in stream order."""
        for first in range(0, self._count, _CHUNK_OFFSETS):
            count = min(_CHUNK_OFFSETS, self._count - first)
            offsets = self._read_offsets(first, count + 1).tolist()
            for begin, end in itertools.pairwise(offsets):
                yield self._tokens[begin:end]

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """First token of each document, followed by the number of tokens; a new int64 array."""
        return self._read_offsets(0, self._count + 1)

    def _instead(self) -> str:
        return "its documents are on disk. Index it first, as in documents[i]"

    def _read_offsets(self, first: int, count: int) -> npt.NDArray[np.int64]:
        out = np.empty(count, np.int64)
        for begin in range(0, count, _CHUNK_OFFSETS):
            part = out[begin : begin + _CHUNK_OFFSETS]
            self._tokens._core.document_offsets(first + begin, part)
        return out

    def __repr__(self) -> str:
        return f"<lowtide.Documents {self._count} of {self._tokens!r}>"
