"""Windows and batches whose tensors share the buffers that the NumPy face lends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    from typing_extensions import Self

    import lowtide

from_numpy = torch.from_numpy
_to_numpy = torch.Tensor.numpy  # the shorter way than np.asarray
INTEGERS: dict[Any, Any] = {
    getattr(torch, name): name
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
    if hasattr(torch, name)  # the wide unsigned ones came with torch 2.3
}


def windows(
    tokens: lowtide.Tokens,
    ix: torch.Tensor | npt.ArrayLike,
    block_size: int,
    dtype: torch.dtype | npt.DTypeLike = torch.int64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The windows that start at tokens `ix`, as (x, y): two tensors (len(ix), block_size).

    y is x one token later; both come from one read of block_size + 1 tokens a window. `ix` is a
    tensor, an array or a list. Raises as `Tokens.windows` does.
    """
    starts = _to_numpy(ix) if isinstance(ix, torch.Tensor) else np.asarray(ix)
    x, y = tokens.windows(starts, block_size, dtype=INTEGERS.get(dtype, dtype))
    return from_numpy(x), from_numpy(y)


class Batch(tuple[torch.Tensor, ...]):
    """One step of a `Loader`: `x, y = batch`.

    A tuple, so that what moves batches to devices (`Trainer`, `accelerate`, `DataLoader`) takes it
    apart and puts it together; what they make of it is (x, y) and has no step.
    """

    _lent: lowtide.Batch | None
    _pin: bool

    def __new__(
        cls, pair: Iterable[torch.Tensor], lent: lowtide.Batch | None = None, pin: bool = False
    ) -> Self:
        """`pair` is (x, y), `lent` the batch that they are of."""
        self = super().__new__(cls, pair)
        self._lent = lent
        self._pin = pin
        return self

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
        return None if self._lent is None else self._lent.step

    @property
    def epoch(self) -> int | None:
        """As `lowtide.Batch.epoch`; None as `step`."""
        return None if self._lent is None else self._lent.epoch

    @property
    def samples(self) -> torch.Tensor | None:
        """As `lowtide.Batch.samples`; None as `step`."""
        return None if self._lent is None else from_numpy(self._lent.samples)

    @property
    def positions(self) -> torch.Tensor | None:
        """As `lowtide.Batch.positions`; None as `step`."""
        return None if self._lent is None else _tensor(self._lent.positions, self._pin)

    @property
    def cu_seqlens(self) -> torch.Tensor | None:
        """As `lowtide.Batch.cu_seqlens`; None as `step`."""
        return None if self._lent is None else _tensor(self._lent.cu_seqlens, self._pin)


def _tensor(lent: npt.NDArray[Any] | None, pin: bool) -> torch.Tensor | None:
    if lent is None:
        return None
    shared = from_numpy(lent)
    return shared.pin_memory() if pin else shared
