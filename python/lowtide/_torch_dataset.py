"""The windows of a token file as a map-style dataset."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.data

from lowtide._arguments import MAX, integer
from lowtide._tokens import Tokens
from lowtide._torch_tensors import windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._tokens import Path

_TARGETS = ("shifted", "none", "hf")


class Dataset(torch.utils.data.Dataset[Any]):
    """The windows of a token file by number, for a DataLoader: window k starts at k * block_size.

    There are (len(tokens) - 1) // block_size.

    tokens: a `lowtide.Tokens`, or what `lowtide.tokens` opens: a path, a list of paths, a glob.
    targets: "shifted" gives (x, y), "none" gives x, "hf" gives {"input_ids": x, "labels": x}, as
        models that shift by themselves want it.

    A DataLoader asks for a whole batch at once (`__getitems__`), which is one read of the engine.
    Pickles by reference. In DataLoader workers the memory of `tokens` is divided among them.
    `Loader` is the better way where nothing needs a map-style dataset: no workers, exact resume.
    """

    def __init__(
        self,
        tokens: Tokens | Path | Sequence[Path],
        block_size: int,
        targets: str = "shifted",
        dtype: torch.dtype | npt.DTypeLike = torch.int64,
    ) -> None:
        """Raises ValueError for unknown targets and for files shorter than one window.

        A path is opened as by `lowtide.tokens`, which says what that raises.
        """
        if targets not in _TARGETS:
            raise ValueError(f"targets must be one of {', '.join(_TARGETS)}, not {targets!r}")
        block_size = integer(block_size, "block_size", 1, MAX)
        tokens = _opened(tokens)
        if len(tokens) <= block_size:
            raise ValueError(
                f"block_size={block_size} needs at least {block_size + 1} tokens, and there are "
                f"{len(tokens)}"
            )
        self._tokens = tokens
        self._block_size = block_size
        self._targets = targets
        self._dtype = dtype
        self._count = (len(tokens) - 1) // block_size
        self._share: tuple[int, Tokens] | None = None

    def __len__(self) -> int:
        """Windows."""
        return self._count

    def __getitem__(self, index: int) -> Any:
        """Window `index`, from the end where negative. Raises IndexError."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The windows `indices`, in that order, by one read. They share one buffer."""
        starts = [self._start(index) for index in indices]
        if not starts:
            return []
        x, y = windows(self._source(), starts, self._block_size, self._dtype)
        if self._targets == "shifted":
            return list(zip(x, y))
        if self._targets == "none":
            return list(x)
        return [{"input_ids": row, "labels": row} for row in x]

    def _start(self, index: int) -> int:
        place = operator.index(index)
        if not -self._count <= place < self._count:
            raise IndexError(f"window {place} is out of range: there are {self._count}")
        return place % self._count * self._block_size

    def _source(self) -> Tokens:
        """The tokens to read from: in one of several workers its own, with its share of memory."""
        worker = torch.utils.data.get_worker_info()
        if worker is None or worker.num_workers == 1:
            return self._tokens
        if self._share is None or self._share[0] != os.getpid():
            memory = self._tokens.memory // worker.num_workers
            self._share = os.getpid(), self._tokens.reopen(memory=memory)
        return self._share[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_share": None}

    def __repr__(self) -> str:
        return (
            f"<lowtide.torch.Dataset of {self._count} windows of {self._block_size}, "
            f"targets={self._targets!r}, over {self._tokens!r}>"
        )


def _opened(tokens: Any) -> Tokens:
    if isinstance(tokens, Tokens):
        return tokens
    if not isinstance(tokens, (str, bytes, os.PathLike, list, tuple)):
        kind = type(tokens).__name__
        raise TypeError(f"tokens must be a lowtide.Tokens, a path or a list of paths, not {kind}")
    return Tokens(tokens)
