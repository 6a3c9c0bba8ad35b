"""Windows and batches as tensors that share the buffers of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.utils.dlpack

from lowtide import _core
from lowtide._arguments import MAX, integer, token_word
from lowtide._token_batch import Copied
from lowtide._tokens import Tokens, checked_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

# Makes a tensor from a capsule. torch.utils.dlpack.from_dlpack calls it after further checks.
from_dlpack: Callable[[object], torch.Tensor] = getattr(
    torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack
)
INTEGERS: dict[Any, Any] = {
    getattr(torch, name): name
    for name in _core.token_types()
    if hasattr(torch, name)  # torch 2.3 added the wide unsigned types
}


def windows(
    tokens: Tokens,
    ix: torch.Tensor | npt.ArrayLike,
    block_size: int,
    dtype: torch.dtype | npt.DTypeLike = torch.int64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Reads the windows that start at the given tokens, as tensors.

    Args:
        tokens: The open token files.
        ix: First token of each window: a tensor, an array or a list of integers with one axis.
        block_size: Tokens of `x` per window. Each window reads block_size + 1 tokens.
        dtype: Integer type of `x` and `y`: a torch or NumPy type, or its name.

    Returns:
        `(x, y)`, two tensors of shape (len(ix), block_size); `y` is `x` one token later. They
        borrow one buffer without a copy and stay valid and unchanged while either of them lives.

    Raises:
        IndexError: A window reaches outside the stream.
        ValueError: A token does not fit `dtype`, `ix` is empty or has several axes, or `tokens` is
            closed.
        TypeError: An argument has the wrong type.
    """
    if not isinstance(tokens, Tokens):
        kind = type(tokens).__name__
        raise TypeError(
            f"tokens must be a lowtide.Tokens (open it with lowtide.tokens), not {kind}"
        )
    word = INTEGERS.get(dtype) or token_word(dtype)
    block_size = integer(block_size, "block_size", 1, MAX)
    starts: Any = ix.tolist() if isinstance(ix, torch.Tensor) else ix
    try:  # a list of ints, as a training loop has it, needs no conversion
        return tokens._core.window_tensors(starts, block_size, word, from_dlpack)
    except TypeError:
        pass
    starts = checked_starts(ix.cpu().numpy() if isinstance(ix, torch.Tensor) else ix)
    return tokens._core.window_tensors(starts, block_size, word, from_dlpack)


class Batch(tuple[torch.Tensor, ...]):
    """The tensors of one step of a `lowtide.torch.Loader`: `x, y = batch`.

    The tensors are writable and borrowed: they stay valid and unchanged while any of them lives,
    even after `Loader.close`. With pin_memory=True they are copies in pinned memory.

    It is a tuple, so that `Trainer`, `accelerate` and `DataLoader` can move it to a device. The
    tuple that they build from it holds (x, y) only; its other attributes are None.
    """

    _lease: _core.Batch | Copied | None = None  # None for a tuple that others rebuilt
    _pin = False

    def __reduce__(self) -> tuple[Any, ...]:
        told = None if self._lease is None else Copied.of(self._lease)
        return make_batch, (tuple(self), told, self._pin)

    @property
    def x(self) -> torch.Tensor:
        """Inputs, of shape (batch_size, block_size)."""
        return self[0]

    @property
    def y(self) -> torch.Tensor:
        """Targets: x one token later."""
        return self[1]

    @property
    def step(self) -> int | None:
        """Step of the batch in its epoch, from 0; None for a rebuilt tuple."""
        return None if self._lease is None else self._lease.step

    @property
    def epoch(self) -> int | None:
        """Epoch of the batch, from 0; None for a rebuilt tuple."""
        return None if self._lease is None else self._lease.epoch

    @property
    def samples(self) -> torch.Tensor | None:
        """Number of each window; with order="random", its first token. A new int64 tensor."""
        if self._lease is None:
            return None
        return torch.from_numpy(self._lease.samples().astype(np.int64))

    @property
    def positions(self) -> torch.Tensor | None:
        """Position of each token in its document, as `lowtide.Batch.positions`."""
        return None if self._lease is None else _tensor(self._lease.positions(), self._pin)

    @property
    def cu_seqlens(self) -> torch.Tensor | None:
        """Document starts in x.reshape(-1), as `lowtide.Batch.cu_seqlens`."""
        return None if self._lease is None else _tensor(self._lease.cu_seqlens(), self._pin)


def make_batch(
    pair: tuple[torch.Tensor, ...], lease: _core.Batch | Copied | None, pin: bool
) -> Batch:
    """Makes a Batch from `pair`, which is (x, y); `pin` applies to its other tensors."""
    batch = Batch(pair)
    batch._lease = lease
    batch._pin = pin
    return batch


def _tensor(lent: npt.NDArray[Any] | None, pin: bool) -> torch.Tensor | None:
    if lent is None:
        return None
    shared = torch.from_numpy(lent)
    return shared.pin_memory() if pin else shared
