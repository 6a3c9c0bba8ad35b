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
    """The windows of token files as a map-style dataset for a DataLoader.

    Window k starts at token k * block_size; there are (len(tokens) - 1) // block_size windows. A
    DataLoader requests a whole batch at once (`__getitems__`), which is one call of the engine.
    DataLoader workers divide the memory budget of `tokens` among themselves. A pickle holds the
    path and arguments, not the data.

    If nothing requires a map-style dataset, prefer `Loader`: it needs no workers and resumes
    exactly.
    """

    def __init__(
        self,
        tokens: Tokens | Path | Sequence[Path],
        block_size: int,
        targets: str = "shifted",
        dtype: torch.dtype | npt.DTypeLike = torch.int64,
    ) -> None:
        """Opens the files if `tokens` is a path.

        Args:
            tokens: A `lowtide.Tokens`, or whatever `lowtide.tokens` opens: a path, a list of
                paths, a folder or a glob.
            block_size: Tokens of `x` per window.
            targets: "shifted" returns `(x, y)` per window, "none" returns `x`, and "hf" returns
                `{"input_ids": x, "labels": x}` for models that shift the labels themselves.
            dtype: Integer type of the tensors: a torch or NumPy type, or its name.

        Raises:
            ValueError: `targets` is unknown, or there are fewer than block_size + 1 tokens.
            TypeError: An argument has the wrong type.
            OSError: A file cannot be opened.
            FormatError: The bytes of a file contradict its format.
        """
        if targets not in _TARGETS:
            raise ValueError(f"targets must be one of {', '.join(_TARGETS)}, not {targets!r}")
        block_size = integer(block_size, "block_size", 1, MAX)
        tokens = _opened(tokens)
        if len(tokens) <= block_size:
            raise ValueError(
                f"block_size={block_size} needs at least {block_size + 1} tokens, but there are "
                f"{len(tokens)}"
            )
        self._tokens = tokens
        self._block_size = block_size
        self._targets = targets
        self._dtype = dtype
        self._count = (len(tokens) - 1) // block_size
        self._share: Tokens | None = None  # of one worker

    def __len__(self) -> int:
        """Number of windows."""
        return self._count

    def __getitem__(self, index: int) -> Any:
        """Reads one window.

        Args:
            index: Number of the window. A negative one counts from the end.

        Returns:
            The window in the structure that `targets` selects; its tensors borrow one buffer.

        Raises:
            IndexError: There is no such window.
        """
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Reads several windows in the given order with one call of the engine.

        Args:
            indices: Numbers of the windows. Negative ones count from the end.

        Returns:
            One entry per window. All of them borrow one buffer.

        Raises:
            IndexError: There is no such window.
        """
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
        """Returns the tokens to read from: each of several workers opens its own share."""
        worker = torch.utils.data.get_worker_info()
        if worker is None or worker.num_workers == 1:
            return self._tokens
        if self._share is None:
            memory = self._tokens.memory // worker.num_workers
            self._share = self._tokens.reopen(memory=memory)
        return self._share

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
