"""Batches for training, across epochs, read ahead of the training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from lowtide._arguments import MAX, flag, integer, memory_bytes, word
from lowtide._closing import Closing
from lowtide._data.batches import nothing, remember
from lowtide._data.state import checked_state, saved_state
from lowtide._data.tokens import Tokens
from lowtide._loader.batch import Batch, WindowBatch
from lowtide._loader.columns import parse_source
from lowtide._loader.delivery import finisher
from lowtide._loader.options import check_kind, open_core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from lowtide import _core
    from lowtide._loader.columns import Lent


_MAX_SEED = 2**64 - 1


class When(NamedTuple):
    """Where a row or a token is trained on, as `Loader.when` reports it.

    Attributes:
        step: Step of the epoch, from 0.
        rank: Rank that gets it, from 0.
        row: Row of that rank's batch, from 0.
    """

    step: int
    rank: int
    row: int


class Loader(Closing):
    """Delivers samples in batches, epoch after epoch, and reads ahead of the training loop.

    Samples are windows of token files, or rows of one or several arrays, delivered together. A
    window is block_size + 1 tokens: `x` is the first block_size of them, `y` the last block_size.
    One `for` loop covers the rest of the current epoch, and the next loop covers the next epoch;
    `next` continues across epochs. Use a loader from one thread at a time. It is a context manager
    that closes itself. A pickle holds the paths, the arguments and the state.
    """

    __slots__ = (
        "__weakref__", "_columns", "_core", "_finish", "_options", "_source", "_steps", "_thaw",
    )  # fmt: skip

    _name: ClassVar[str] = "lowtide.Loader"
    _make: ClassVar[Any] = None  # makes a tensor of a DLPack capsule; None: batches hold arrays
    _wrap: ClassVar[Any] = None  # makes a tensor of an array; None: as above

    def __init__(
        self,
        source: Any,
        batch_size: int,
        block_size: int | None = None,
        order: str = "shuffle",
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        epochs: int | None = None,
        drop_last: bool = True,
        prefetch: int | None = None,
        dtype: npt.DTypeLike | None = None,
        memory: int | str | None = None,
        documents: str = "cross",
        rows: Any = None,
        weights: npt.ArrayLike | None = None,
        dense: bool = False,
        columns: npt.ArrayLike | None = None,
    ) -> None:
        """Claims its memory; reading ahead starts with the first batch, on threads of its own.

        Args:
            source: `Tokens`, which deliver windows; an `Array`; a tuple or a dict of arrays, whose
                rows are delivered together; `Ragged`, `Tokens.documents` or `Csr`; or a list of
                (source, weight), which is an exact mixture of samples by weight.
            batch_size: Samples per step and rank.
            block_size: Tokens of `x` per window. For windows only, and required there.
            order: "shuffle" and "sequential" deliver each sample once per epoch. "random" draws
                with replacement; windows then start anywhere.
            seed: Seed of the order, 0 to 2**64 - 1. It is hashed with the epoch.
            rank: This rank, from 0. Ranks share one global order and never overlap.
            world_size: Number of ranks.
            epochs: Number of epochs. None: no limit.
            drop_last: If True, every step is full and the rest of the epoch is left out. If False,
                the last batch of an epoch may be short; this needs world_size=1.
            prefetch: Most batches to read ahead. None: as many as pay off within the budget.
            dtype: Integer type of `x` and `y`; int64 by default. For dense rows of a sparse
                matrix: float16, float32 (the default) or float64. Arrays are delivered as stored.
            memory: Separate budget for this loader, in bytes or as text such as "256MiB". None:
                the loader shares the budget of its tokens or of its first array; a mixture gets a
                separate one, as large as the largest of its sources.
            documents: "cross" lets windows cross document boundaries unmarked. "separate" adds
                `Batch.positions` and `Batch.cu_seqlens`; the format must store documents, or
                `lowtide.tokens` must be given `eot`. For windows only.
            rows: A selection of the samples, such as a training set: integers, a bool mask, a slice
                or a range. Negative numbers count from the end; duplicates are allowed. An epoch
                delivers these rows, in the order that `order` gives. None: all.
            weights: One weight per sample (per entry of `rows`, if given), 0 or above: samples are
                drawn with replacement, by weight. None: no weighting.
            dense: If True, rows of a sparse matrix are delivered as dense ones; values that are
                stored for the same column are added. Required if there are other columns beside
                the matrix.
            columns: With dense=True: only these columns of the matrix, in this order, as integers
                (duplicates are allowed) or a bool mask. None: all.

        Raises:
            ValueError: An argument is invalid, columns differ in length, there are fewer samples
                than one step of all ranks needs, or the budget is too small.
            IndexError: A row or a column does not exist.
            TypeError: An argument has the wrong type.
        """
        sources, is_mixture = parse_source(source)
        first = sources[0][0]
        self._columns = None if isinstance(first, Tokens) else first
        epochs = None if epochs is None else integer(epochs, "epochs", 1, MAX)
        self._options: dict[str, Any] = {
            "batch_size": integer(batch_size, "batch_size", 1, MAX),
            "block_size": block_size,
            "order": word(order, "order"),
            "seed": integer(seed, "seed", 0, _MAX_SEED),
            "rank": integer(rank, "rank", 0, MAX),
            "world_size": integer(world_size, "world_size", 1, MAX),
            "epochs": epochs,
            "drop_last": flag(drop_last, "drop_last"),
            "prefetch": None if prefetch is None else integer(prefetch, "prefetch", 1, MAX),
            "dtype": dtype,
            "memory": memory_bytes(memory) or None,
            "documents": word(documents, "documents"),
            "rows": rows,
            "weights": weights,
            "dense": dense,
            "columns": columns,
        }
        if rank >= world_size:
            raise ValueError(f"rank must be below world_size ({world_size}), not {rank}")
        check_kind(self._options, sources)
        self._source = source
        self._thaw: Callable[[], object] = nothing
        self._finish = None if self._columns is None else finisher(self._columns, self._wrap)
        self._core = open_core(self, sources, is_mixture, self._options, self._type_word)
        self._steps = self._core.steps()
        remember(self._core)

    def _tune(self, options: _core.LoaderOptions, sources: list[tuple[Any, float]]) -> None:
        """Adjusts the options passed to the core; for subclasses."""

    @staticmethod
    def _type_word(lent: Lent) -> str:
        """Returns the name of a type that the core lends; "": lent as bytes."""
        return lent.dtype.str if lent.is_plain else ""

    def __iter__(self) -> Iterator[Batch]:
        """Iterates over the rest of the current epoch; yields nothing after the last epoch."""
        self._check_open()
        return self._rest(self._core.epoch())

    def _rest(self, epoch: int) -> Iterator[Batch]:
        while (found := self._core.next(self._make, epoch)) is not None:
            yield self._batch(found)

    def _batch(self, found: tuple[Any, ...]) -> Batch:
        if self._finish is not None:
            return self._finish(found)
        x, y, lease = found
        batch = WindowBatch((x, y))
        batch._lease = lease
        return batch

    def next(self) -> Batch:
        """Returns the next batch and continues across epochs.

        Returns:
            A borrowed batch; see `Batch`.

        Raises:
            StopIteration: The last epoch is over.
            OSError: A read failed; the next call tries it again.
            FormatError: A file has changed or is shorter than expected.
            ValueError: A token does not fit `dtype`, or the loader is closed.
        """
        found = self._core.next(self._make, None)
        if found is None:
            self._check_open()
            raise StopIteration
        return self._batch(found)

    def __len__(self) -> int:
        """Number of steps in one whole epoch."""
        return self._steps

    @property
    def epoch(self) -> int:
        """Epoch of the next batch, from 0."""
        return self._core.epoch()

    @property
    def step(self) -> int:
        """Step of the next batch in its epoch, from 0."""
        return self._core.step()

    @property
    def steps_left(self) -> int:
        """Number of steps left in the current epoch; 0 after the last epoch."""
        return self._core.steps_left()

    @property
    def batch_size(self) -> int:
        """Samples per step and rank."""
        return int(self._options["batch_size"])

    @property
    def block_size(self) -> int | None:
        """Tokens of `x` per window; None if samples are not windows."""
        size: int | None = self._options["block_size"]
        return size

    @property
    def rank(self) -> int:
        """This rank, from 0."""
        return int(self._options["rank"])

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return int(self._options["world_size"])

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._core.closed

    def seek(self, step: int, epoch: int | None = None) -> None:
        """Moves to a step of an epoch without replaying anything.

        Args:
            step: Step to deliver next, counted from the start of the epoch with the current batch
                size and world size. len(loader) is the start of the next epoch.
            epoch: Epoch to move to. None: the current one.

        Raises:
            IndexError: The epoch has no such step, or there is no such epoch.
        """
        self._core.seek(integer(step, "step", 0, MAX), _optional(epoch, "epoch"))

    def skip(self, steps: tuple[int, int], epoch: int | None = None) -> None:
        """Skips upcoming steps of an epoch, for example after a loss spike.

        Skips are saved in the state and stay in force: if you seek back or restore that state, the
        steps are skipped again.

        Args:
            steps: A pair (first, last); steps first to last - 1 are skipped.
            epoch: Epoch of these steps. None: the current one.

        Raises:
            ValueError: A step has already been delivered, the epoch has no such step, or there are
                more than 16 ranges in the current and later epochs.
            TypeError: `steps` is not a pair of integers.
        """
        if not isinstance(steps, (tuple, list)) or len(steps) != 2:
            raise TypeError(f"steps must be a pair (first, last), not {steps!r}")
        first = integer(steps[0], "steps[0]", 0, MAX)
        last = integer(steps[1], "steps[1]", 0, MAX)
        if last < first:
            raise ValueError(f"steps must be (first, last) with first <= last, not {first}, {last}")
        self._core.skip(first, last, _optional(epoch, "epoch"))

    def when(self, row: int, epoch: int | None = None, source: int = 0) -> When | None:
        """Finds the step, rank and row of the batch in which an epoch delivers a row.

        Args:
            row: Number of the row in its array, from 0. For windows: number of a token in its
                stream, to be found in `x`; for the last token of the last window, which is never
                in `x`, the place in `y` is reported.
            epoch: Epoch to search. None: the current one.
            source: Index of the source in a mixture.

        Returns:
            The place, or None if that epoch leaves it out.

        Raises:
            IndexError: There is no such row, token or source.
            ValueError: Samples are drawn with replacement.
        """
        found = self._core.when(
            integer(row, "row", 0, MAX),
            _optional(epoch, "epoch"),
            integer(source, "source", 0, MAX),
        )
        return None if found is None else When(*found)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the run as a small dict that JSON can hold.

        Batches that were read ahead but not delivered do not count. The dict also holds a
        fingerprint of the data: a copy of the data can resume, other data is refused.
        """
        return saved_state(self._core)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from where `state` was taken, with any batch size and world size.

        Args:
            state: A dict that `state_dict` returned.

        Raises:
            ValueError: The data, rows, weights, block_size, order or seed differs, or `state` is
                damaged. The message names what is wrong.
            TypeError: `state` is not a dict.
        """
        self._core.restore(**checked_state(state))

    def stats(self) -> dict[str, Any]:
        """Reports the reads so far, the engine and the memory held, as `Array.stats` does."""
        return self._core.stats()

    def close(self) -> None:
        """Stops reading; batches already delivered stay valid."""
        self._core.close()
        self._thaw()

    def _check_open(self) -> None:
        if self._core.closed:
            raise ValueError("this loader is closed")

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), self._source, self._options, self.state_dict())

    def __repr__(self) -> str:
        told = self._options
        samples = "rows" if self._columns is not None else f"x {told['block_size']} tokens"
        about = (
            f"<{self._name} {told['batch_size']} {samples} "
            f"order={told['order']!r} seed={told['seed']} rank={self.rank}/{self.world_size}"
        )
        if self.closed:
            return about + " closed>"
        return f"{about} epoch={self.epoch} step={self.step} of {len(self)}>"


def _optional(value: int | None, name: str) -> int | None:
    return None if value is None else integer(value, name, 0, _MAX_SEED)


def _remake(kind: type[Loader], source: Any, options: dict[str, Any], state: Any) -> Loader:
    """Recreates a pickled Loader at its position."""
    loader = kind(source, **options)
    loader.load_state_dict(state)
    return loader
