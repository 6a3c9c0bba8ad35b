"""One step of a loader: x, y, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._operators import NoOperators

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lowtide import _core

    AnyArray = npt.NDArray[Any]


class Copied:
    """Stands in for the lease of a batch that was pickled or copied."""

    __slots__ = ("_cu_seqlens", "_positions", "_samples", "epoch", "step")

    def __init__(
        self,
        step: int,
        epoch: int,
        samples: npt.NDArray[Any],
        positions: npt.NDArray[np.int32] | None,
        cu_seqlens: npt.NDArray[np.int32] | None,
    ) -> None:
        self.step = step
        self.epoch = epoch
        self._samples = samples
        self._positions = positions
        self._cu_seqlens = cu_seqlens

    @classmethod
    def of(cls, lease: _core.Batch | Copied) -> Copied:
        return cls(lease.step, lease.epoch, lease.samples(), lease.positions(), lease.cu_seqlens())

    def samples(self) -> npt.NDArray[Any]:
        return self._samples

    def positions(self) -> npt.NDArray[np.int32] | None:
        return self._positions

    def cu_seqlens(self) -> npt.NDArray[np.int32] | None:
        return self._cu_seqlens


class Batch(NoOperators):
    """The arrays of one step of a `Loader`: `x, y = batch`, or `batch.x` and `batch.y`.

    Both have the shape (batch_size, block_size). They are writable and borrowed from a pool: they
    stay valid and unchanged while the batch or any view of it lives, even after `Loader.close`.

    Attributes:
        x: Inputs: the first block_size tokens of each window.
        y: Targets: the last block_size tokens of each window, that is, x one token later.
    """

    __slots__ = ("_lease", "x", "y")

    x: AnyArray
    y: AnyArray

    def __init__(
        self, both: AnyArray | tuple[AnyArray, AnyArray], lease: _core.Batch | Copied
    ) -> None:
        """A `Loader` creates batches."""
        self.x = both[0]
        self.y = both[1]
        self._lease = lease

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, ((self.x, self.y), Copied.of(self._lease))

    @property
    def step(self) -> int:
        """Step of the batch in its epoch, from 0."""
        return self._lease.step

    @property
    def epoch(self) -> int:
        """Epoch of the batch, from 0."""
        return self._lease.epoch

    @property
    def samples(self) -> npt.NDArray[np.int64]:
        """Number of each window; with order="random", its first token. A new int64 array."""
        return self._lease.samples().astype(np.int64)

    @property
    def positions(self) -> npt.NDArray[np.int32] | None:
        """Position of each token of x in its document, an int32 array of the shape of x.

        Positions also restart from 0 at each window start. None unless the loader was created with
        documents="separate".
        """
        return self._lease.positions()

    @property
    def cu_seqlens(self) -> npt.NDArray[np.int32] | None:
        """Document starts in x.reshape(-1), from 0 to x.size, as an int32 array.

        None unless the loader was created with documents="separate".
        """
        return self._lease.cu_seqlens()

    def __iter__(self) -> Iterator[AnyArray]:
        return iter((self.x, self.y))

    def __getitem__(self, index: int) -> AnyArray:
        return (self.x, self.y)[index]

    def __len__(self) -> int:
        return 2

    def _instead(self) -> str:
        return "use the operators of its arrays, batch.x and batch.y"

    def __repr__(self) -> str:
        rows, block = self.x.shape
        return (
            f"<lowtide.Batch {rows} x {block} {self.x.dtype} epoch={self.epoch} step={self.step}>"
        )
