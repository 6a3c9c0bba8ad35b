"""One step of a loader: x and y, and what is known of them."""

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
    """What a lease tells of its batch, for a batch that was pickled or copied."""

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
    def of(cls, lease: _core.TokenBatch | Copied) -> Copied:
        return cls(lease.step, lease.epoch, lease.samples(), lease.positions(), lease.cu_seqlens())

    def samples(self) -> npt.NDArray[Any]:
        return self._samples

    def positions(self) -> npt.NDArray[np.int32] | None:
        return self._positions

    def cu_seqlens(self) -> npt.NDArray[np.int32] | None:
        return self._cu_seqlens


class Batch(NoOperators):
    """x and y of one step; `x, y = batch` and `batch[0]` work too.

    Both are (batch_size, block_size), writable and borrowed: valid and unchanged for as long as the
    batch or any view of it lives, also after `Loader.close`.
    """

    __slots__ = ("_lease", "x", "y")

    x: AnyArray
    y: AnyArray

    def __init__(
        self, both: AnyArray | tuple[AnyArray, AnyArray], lease: _core.TokenBatch | Copied
    ) -> None:
        """Made by a Loader."""
        self.x = both[0]
        self.y = both[1]
        self._lease = lease

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, ((self.x, self.y), Copied.of(self._lease))

    @property
    def step(self) -> int:
        """Which step of its epoch this is, from 0."""
        return self._lease.step

    @property
    def epoch(self) -> int:
        """Which epoch this is, from 0."""
        return self._lease.epoch

    @property
    def samples(self) -> npt.NDArray[np.int64]:
        """The number of each window; in random order the first token of each."""
        return self._lease.samples().astype(np.int64)

    @property
    def positions(self) -> npt.NDArray[np.int32] | None:
        """Of each token of x its place in its document, from 0 at each window start too.

        None unless the loader has documents="separate".
        """
        return self._lease.positions()

    @property
    def cu_seqlens(self) -> npt.NDArray[np.int32] | None:
        """Where documents start in x, all rows in a row: from 0 to x.size. None as `positions`."""
        return self._lease.cu_seqlens()

    def __iter__(self) -> Iterator[AnyArray]:
        return iter((self.x, self.y))

    def __getitem__(self, index: int) -> AnyArray:
        return (self.x, self.y)[index]

    def __len__(self) -> int:
        return 2

    def _instead(self) -> str:
        return "use those of its arrays, batch.x and batch.y"

    def __repr__(self) -> str:
        rows, block = self.x.shape
        return (
            f"<lowtide.Batch {rows} x {block} {self.x.dtype} epoch={self.epoch} step={self.step}>"
        )
