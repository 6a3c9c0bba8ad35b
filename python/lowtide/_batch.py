"""One step of a loader: its arrays, and where they come from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from lowtide._operators import NoOperators

if TYPE_CHECKING:
    from collections.abc import Callable

    from lowtide import _core

_FACTS = ("step", "epoch", "index", "positions", "cu_seqlens")


class Batch(NoOperators, tuple[Any, ...]):
    """The arrays or tensors of one step of a `Loader`: `x, y = batch`, or `batch.x` and `batch.y`.

    Both have the shape (batch_size, block_size). They are writable and borrowed from a pool: they
    stay valid and unchanged while the batch or any view of it lives, even after `Loader.close`. A
    pickle holds copies. With pin_memory=True they are copies in pinned memory.

    It is a tuple, so that `Trainer`, `accelerate` and `DataLoader` can move it to a device. The
    tuple that they build from it holds (x, y) only; its other attributes are None.
    """

    _lease: _core.Batch | None = None  # None for a copy, and for a tuple that others rebuilt
    _convert: Callable[[Any], Any] | None = None  # makes a tensor of an array; None: arrays

    @property
    def x(self) -> Any:
        """Inputs: the first block_size tokens of each window."""
        return self[0]

    @property
    def y(self) -> Any:
        """Targets: the last block_size tokens of each window, that is, x one token later."""
        return self[1]

    @cached_property
    def step(self) -> int:
        """Step of the batch in its epoch, from 0; None for a rebuilt tuple."""
        step: int = self._fact("step")
        return step

    @cached_property
    def epoch(self) -> int:
        """Epoch of the batch, from 0; None for a rebuilt tuple."""
        epoch: int = self._fact("epoch")
        return epoch

    @cached_property
    def index(self) -> Any:
        """Number of each window, int64; with order="random", its first token."""
        return self._fact("index")

    @property
    def samples(self) -> Any:
        """The same as `index`."""
        return self.index

    @cached_property
    def positions(self) -> Any:
        """Position of each token of x in its document, int32, of the shape of x.

        Positions also restart from 0 at each window start. None unless the loader was created with
        documents="separate".
        """
        return self._fact("positions")

    @cached_property
    def cu_seqlens(self) -> Any:
        """Document starts in x.reshape(-1), from 0 to the number of tokens in x, int32.

        None unless the loader was created with documents="separate".
        """
        return self._fact("cu_seqlens")

    def _fact(self, name: str) -> Any:
        """Asks the lease."""
        if self._lease is None:
            return None
        fact = getattr(self._lease, name)
        if not callable(fact):
            return fact
        array = fact()
        return array if array is None or self._convert is None else self._convert(array)

    def __add__(self, other: Any) -> Any:
        """Appends to a plain tuple of the arrays."""
        return tuple(self) + other

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (tuple(self), {name: getattr(self, name) for name in _FACTS})

    def _instead(self) -> str:
        return "use the operators of its arrays, batch.x and batch.y"

    def __repr__(self) -> str:
        if len(self) != 2:
            return f"<lowtide.Batch of {len(self)} arrays>"
        rows, block = self.x.shape
        return (
            f"<lowtide.Batch {rows} x {block} {self.x.dtype} epoch={self.epoch} step={self.step}>"
        )


def _copied(arrays: tuple[Any, ...], facts: dict[str, Any]) -> Batch:
    """Creates a pickled batch again. Its facts stand in for those of a lease."""
    batch = Batch(arrays)
    batch.__dict__.update(facts)
    return batch
