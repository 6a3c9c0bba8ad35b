"""Windows and batches as tensors in the buffers that the core lends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.utils.dlpack

from lowtide._arguments import MAX, integer, token_word
from lowtide._token_batch import Copied
from lowtide._tokens import Tokens, checked_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from lowtide import _core

# A tensor of a capsule: what torch.utils.dlpack.from_dlpack calls once it has looked for more.
from_dlpack: Callable[[object], torch.Tensor] = getattr(
    torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack
)
INTEGERS: dict[Any, Any] = {
    getattr(torch, name): name
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
    if hasattr(torch, name)  # the wide unsigned ones came with torch 2.3
}


def windows(
    tokens: Tokens,
    ix: torch.Tensor | npt.ArrayLike,
    block_size: int,
    dtype: torch.dtype | npt.DTypeLike = torch.int64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The windows that start at tokens `ix`, as (x, y): two tensors (len(ix), block_size).

    y is x one token later; both come from one read of block_size + 1 tokens a window. `ix` is a
    tensor, an array or a list. Raises as `Tokens.windows` does.
    """
    if not isinstance(tokens, Tokens):
        kind = type(tokens).__name__
        raise TypeError(f"tokens must be a lowtide.Tokens (lowtide.tokens opens it), not {kind}")
    word = INTEGERS.get(dtype) or token_word(dtype)
    block_size = integer(block_size, "block_size", 1, MAX)
    starts: Any = ix.tolist() if isinstance(ix, torch.Tensor) else ix
    try:  # starts as a training loop has them need no look at them
        return tokens._core.window_tensors(starts, block_size, word, from_dlpack)
    except TypeError:
        pass
    starts = checked_starts(ix.cpu().numpy() if isinstance(ix, torch.Tensor) else ix)
    return tokens._core.window_tensors(starts, block_size, word, from_dlpack)


class Batch(tuple[torch.Tensor, ...]):
    """One step of a `Loader`: `x, y = batch`.

    A tuple, so that what moves batches to devices (`Trainer`, `accelerate`, `DataLoader`) takes it
    apart and puts it together; what they make of it is (x, y) and has no step.
    """

    _lease: _core.TokenBatch | Copied | None = None  # what is known of it
    _pin = False

    def __reduce__(self) -> tuple[Any, ...]:
        told = None if self._lease is None else Copied.of(self._lease)
        return make_batch, (tuple(self), told, self._pin)

    @property
    def x(self) -> torch.Tensor:
        """The inputs, (batch_size, block_size)."""
        return self[0]

    @property
    def y(self) -> torch.Tensor:
        """The targets: x one token later."""
        return self[1]

    @property
    def step(self) -> int | None:
        """As `lowtide.Batch.step`; None for a tuple that was made of a batch."""
        return None if self._lease is None else self._lease.step

    @property
    def epoch(self) -> int | None:
        """As `lowtide.Batch.epoch`; None as `step`."""
        return None if self._lease is None else self._lease.epoch

    @property
    def samples(self) -> torch.Tensor | None:
        """As `lowtide.Batch.samples`; None as `step`."""
        if self._lease is None:
            return None
        return torch.from_numpy(self._lease.samples().astype(np.int64))

    @property
    def positions(self) -> torch.Tensor | None:
        """As `lowtide.Batch.positions`; None as `step`."""
        return None if self._lease is None else _tensor(self._lease.positions(), self._pin)

    @property
    def cu_seqlens(self) -> torch.Tensor | None:
        """As `lowtide.Batch.cu_seqlens`; None as `step`."""
        return None if self._lease is None else _tensor(self._lease.cu_seqlens(), self._pin)


def make_batch(
    pair: tuple[torch.Tensor, ...], lease: _core.TokenBatch | Copied | None, pin: bool
) -> Batch:
    """`pair` is (x, y), `lease` tells of it, `pin` is for what else it has."""
    batch = Batch(pair)
    batch._lease = lease
    batch._pin = pin
    return batch


def _tensor(lent: npt.NDArray[Any] | None, pin: bool) -> torch.Tensor | None:
    if lent is None:
        return None
    shared = torch.from_numpy(lent)
    return shared.pin_memory() if pin else shared
