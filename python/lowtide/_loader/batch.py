"""One step of a loader: its arrays, and where they come from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from lowtide._operators import NoOperators

if TYPE_CHECKING:
    from collections.abc import Callable

    from lowtide import _core

_FACTS = ("step", "epoch", "index", "sources", "positions", "cu_seqlens")


class Batch(NoOperators, tuple[Any, ...]):
    """The arrays or tensors of one step of a `Loader`: `xb, yb = batch`, in the source's structure.

    A single array gives a tuple of one: `(xb,) = batch`. Ragged data gives `values, offsets`. For
    a dict there are also `batch["x"]` and `batch.keys()`. Windows of tokens are `x, y = batch`, or
    `batch.x` and `batch.y`.

    The arrays are writable and borrowed from a pool: they stay valid and unchanged while the batch
    or any view of it lives, even after `Loader.close`. A pickle holds copies.

    It is a tuple, so that `Trainer`, `accelerate` and `DataLoader` can move it to a device. The
    tuple that they build from it holds the arrays only; its other attributes are None.
    """

    _lease: _core.Batch | None = None  # None for a copy, and for a tuple that others rebuilt
    _convert: Callable[[Any], Any] | None = None  # makes a tensor of an array; None: arrays

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
        """Number of each sample, int64: its row; in a mixture, its row within its own source.

        For windows, the number of the window; with order="random", its first token.
        """
        return self._fact("index")

    @property
    def samples(self) -> Any:
        """The same as `index`."""
        return self.index

    @cached_property
    def sources(self) -> Any:
        """Which source of a mixture each sample comes from, int64: its index in the list, from 0.

        None if the loader has only one source.
        """
        return self._fact("sources")

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
        facts = {name: getattr(self, name) for name in _FACTS}
        return _copied, (type(self), tuple(self), facts)

    def nested(self, column: int | str | None = None) -> Any:
        """Returns ragged samples as a jagged nested tensor, without a copy.

        Args:
            column: Which column, for a batch with several. None: the only one.

        Raises:
            TypeError: The column is not ragged, or the batch holds arrays (use
                `lowtide.torch.Loader`).
        """
        if self._convert is None:
            raise TypeError("nested() needs tensors: use lowtide.torch.Loader")
        from lowtide._torch.tensors import nested

        entry: Any = tuple(self)
        if column is not None:
            entry = self[column]  # type: ignore[index]  # a name, if the source is a dict
        return nested(entry)

    def _kind(self) -> str:
        return "lowtide.Batch"

    def _instead(self) -> str:
        return "use the operators of its arrays, as in batch[0]"

    def __repr__(self) -> str:
        told = ", ".join(_described(entry) for entry in self)
        return f"<lowtide.Batch {told} epoch={self.epoch} step={self.step}>"


class WindowBatch(Batch):
    """A batch of windows: `x, y = batch`, or `batch.x` and `batch.y`.

    Both have the shape (batch_size, block_size).
    """

    @property
    def x(self) -> Any:
        """Inputs: the first block_size tokens of each window."""
        return self[0]

    @property
    def y(self) -> Any:
        """Targets: the last block_size tokens of each window, that is, x one token later."""
        return self[1]

    def _instead(self) -> str:
        return "use the operators of its arrays, batch.x and batch.y"

    def __repr__(self) -> str:
        if len(self) != 2:
            return f"<lowtide.Batch of {len(self)} arrays>"
        rows, block = self.x.shape
        return (
            f"<lowtide.Batch {rows} x {block} {self.x.dtype} epoch={self.epoch} step={self.step}>"
        )


class NamedBatch(Batch):
    """A batch of a dict of columns: `batch["x"]`, `batch.keys()`."""

    _names: tuple[str, ...] = ()

    def keys(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return self._names

    def __getitem__(self, key: Any) -> Any:
        """Returns a column by its name or number."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        try:
            return super().__getitem__(self._names.index(key))
        except ValueError:
            known = ", ".join(map(repr, self._names))
            raise KeyError(f"{key!r}: the columns are {known}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {name: getattr(self, name) for name in _FACTS}
        return _copied_named, (self._names, tuple(self), facts)


def named_batch(names: tuple[str, ...]) -> type[NamedBatch]:
    """Returns the class of the batches whose columns have these names."""
    return type("NamedBatch", (NamedBatch,), {"_names": names, "__module__": __name__})


def _described(entry: Any) -> str:
    if isinstance(entry, (tuple, dict)):
        return f"{type(entry).__name__} of {len(entry)}"
    return f"{entry.dtype} {tuple(entry.shape)}"


def _copied_named(names: tuple[str, ...], arrays: tuple[Any, ...], facts: dict[str, Any]) -> Batch:
    return _fill(named_batch(names)(arrays), facts)


def _copied(kind: type[Batch], arrays: tuple[Any, ...], facts: dict[str, Any]) -> Batch:
    """Recreates a pickled batch. Its saved facts stand in for those of a lease."""
    return _fill(kind(arrays), facts)


def _fill(batch: Batch, facts: dict[str, Any]) -> Batch:
    batch.__dict__.update(facts)
    return batch
