"""Batches of windows for training, on and on over epochs, read ahead of whoever trains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowtide import _core
from lowtide._arguments import MAX, flag, integer, memory_bytes, token_word, word
from lowtide._batches import remember
from lowtide._closing import Closing
from lowtide._loader_state import checked_state
from lowtide._token_batch import Batch
from lowtide._tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

_MAX_SEED = 2**64 - 1


class When(NamedTuple):
    """Where a token is trained on: the step of its epoch, the rank, the row of the batch."""

    step: int
    rank: int
    row: int


class Loader(Closing):
    """Windows of token files in batches, epoch after epoch, read ahead on threads of its own.

    A window is block_size + 1 tokens: x the first block_size of them, y the last. One `for` is the
    rest of the current epoch, the next `for` the next epoch; `next` goes on over epochs. One
    consumer at a time. Pickles by reference, with its state.
    """

    __slots__ = ("__weakref__", "_core", "_options", "_steps", "_tokens")

    def __init__(
        self,
        tokens: Tokens | Sequence[tuple[Tokens, float]],
        batch_size: int,
        block_size: int,
        order: str = "shuffle",
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        epochs: int | None = None,
        drop_last: bool = True,
        prefetch: int | None = None,
        dtype: npt.DTypeLike = "int64",
        memory: int | str | None = None,
        documents: str = "cross",
    ) -> None:
        """Starts reading ahead.

        tokens: one Tokens, or a list of (Tokens, weight): an exact mixture of windows by weight.
        batch_size: windows of one rank in a step. block_size: tokens of x in a window.
        order: "shuffle" and "sequential" give each window once an epoch; "random" draws starts
            anywhere, with replacement. seed: 0 .. 2**64 - 1, hashed with the epoch.
        rank, world_size: this rank gets its part of each step of all ranks.
        epochs: how many there are; None: no end. drop_last=False, with one rank only: the last
            batch of an epoch is short. prefetch: batches ahead, at most.
        dtype: of x and y. memory: a budget of its own; None: that of the tokens.
        documents: "separate" adds Batch.positions and Batch.cu_seqlens.

        Raises ValueError (a bad argument; fewer windows than one step of all ranks needs; a budget
        too small) and TypeError.
        """
        sources, is_mixture = _sources(tokens)
        epochs = None if epochs is None else integer(epochs, "epochs", 1, MAX)
        self._options: dict[str, Any] = {
            "batch_size": integer(batch_size, "batch_size", 1, MAX),
            "block_size": integer(block_size, "block_size", 1, MAX),
            "order": word(order, "order"),
            "seed": integer(seed, "seed", 0, _MAX_SEED),
            "rank": integer(rank, "rank", 0, MAX),
            "world_size": integer(world_size, "world_size", 1, MAX),
            "epochs": epochs,
            "drop_last": flag(drop_last, "drop_last"),
            "prefetch": None if prefetch is None else integer(prefetch, "prefetch", 1, MAX),
            "dtype": token_word(dtype),
            "memory": memory_bytes(memory) or None,
            "documents": word(documents, "documents"),
        }
        if rank >= world_size:
            raise ValueError(f"rank must be below world_size ({world_size}), not {rank}")
        if documents not in ("cross", "separate"):
            raise ValueError(f"documents must be 'cross' or 'separate', not {documents!r}")
        self._tokens: Tokens | list[tuple[Tokens, float]] = sources if is_mixture else sources[0][0]
        self._core = self._start(sources, is_mixture)
        self._steps = self._core.steps()
        remember(self._core)

    def _start(self, sources: list[tuple[Tokens, float]], is_mixture: bool) -> _core.Loader:
        told = dict(self._options)
        memory, documents = told.pop("memory"), told.pop("documents")
        return _core.Loader.open(
            sources=[(source._core, weight) for source, weight in sources],
            mixture=is_mixture,
            memory_bytes=memory or 0,
            separate_documents=documents == "separate",
            **told,
        )

    def __iter__(self) -> Iterator[Batch]:
        """The rest of the current epoch; nothing after the last one."""
        self._check_open()
        return _rest(self._core, self._core.epoch())

    def next(self) -> Batch:
        """The next batch, on and on over epochs. Raises StopIteration after the last epoch."""
        found = self._core.next()
        if found is None:
            self._check_open()
            raise StopIteration
        return Batch(*found)

    def __len__(self) -> int:
        """Steps of one whole epoch."""
        return self._steps

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, from 0."""
        return self._core.epoch()

    @property
    def step(self) -> int:
        """The step of the next batch in its epoch, from 0."""
        return self._core.step()

    @property
    def steps_left(self) -> int:
        """Steps left of the current epoch; 0 after the last epoch."""
        return self._core.steps_left()

    @property
    def batch_size(self) -> int:
        """Windows of this rank in a step."""
        return int(self._options["batch_size"])

    @property
    def block_size(self) -> int:
        """Tokens of x in a window."""
        return int(self._options["block_size"])

    @property
    def rank(self) -> int:
        """Which of the ranks this is."""
        return int(self._options["rank"])

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return int(self._options["world_size"])

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._core.closed

    def seek(self, step: int, epoch: int | None = None) -> None:
        """Goes to a step of an epoch, of the current one if not given; nothing is replayed.

        Steps are counted from the start of the epoch under the present sizes. Raises IndexError.
        """
        self._core.seek(integer(step, "step", 0, MAX), _optional(epoch, "epoch"))

    def skip(self, steps: tuple[int, int], epoch: int | None = None) -> None:
        """Leaves out steps first .. last - 1 of an epoch, which must still be ahead.

        `steps` is (first, last). Part of the state, also once they are behind: `seek` passes them
        again. Raises ValueError (also for more than 16 ranges in this epoch and those to come).
        """
        if not isinstance(steps, (tuple, list)) or len(steps) != 2:
            raise TypeError(f"steps must be a pair (first, last), not {steps!r}")
        first = integer(steps[0], "the first of steps", 0, MAX)
        last = integer(steps[1], "the last of steps", 0, MAX)
        if last < first:
            raise ValueError(f"steps must not end before they begin: {first}, {last}")
        self._core.skip(first, last, _optional(epoch, "epoch"))

    def when(self, token_offset: int, epoch: int | None = None, source: int = 0) -> When | None:
        """The step, rank and row at which an epoch has a token in x; None where it leaves it out.

        The last token of the last window is only a target. `epoch`: the current one if not given;
        `source`: which one of a mixture. Raises IndexError for a token that is not there,
        ValueError in random order.
        """
        token = integer(token_offset, "token_offset", 0, MAX)
        found = self._core.when(token, _optional(epoch, "epoch"), integer(source, "source", 0, MAX))
        return None if found is None else When(*found)

    def state_dict(self) -> dict[str, Any]:
        """Where the run is, as JSON: what was read ahead and not delivered is not counted."""
        state = self._core.state()
        state["fingerprint"] = f"{state['fingerprint']:016x}"
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from where `state` was taken, under any batch size and world size.

        Raises ValueError that says what differs: other data, block_size, order or seed; or what is
        wrong with `state`.
        """
        self._core.restore(**checked_state(state))

    def stats(self) -> dict[str, Any]:
        """Where the bytes came from so far, what serves them and why, and what memory is held.

        The keys are those of `Array.stats`.
        """
        return self._core.stats()

    def close(self) -> None:
        """Ends the readers; batches already delivered stay valid."""
        self._core.close()

    def _check_open(self) -> None:
        if self._core.closed:
            raise ValueError("this loader is closed")

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), self._tokens, self._options, self.state_dict())

    def __repr__(self) -> str:
        told = self._options
        about = (
            f"<lowtide.Loader {told['batch_size']} x {told['block_size']} tokens "
            f"order={told['order']!r} seed={told['seed']} rank={self.rank}/{self.world_size}"
        )
        if self.closed:
            return about + " closed>"
        return f"{about} epoch={self.epoch} step={self.step} of {len(self)}>"


def _rest(core: _core.Loader, epoch: int) -> Iterator[Batch]:
    while (found := core.next(epoch)) is not None:
        yield Batch(*found)


def _optional(value: int | None, name: str) -> int | None:
    return None if value is None else integer(value, name, 0, _MAX_SEED)


def _sources(tokens: Any) -> tuple[list[tuple[Tokens, float]], bool]:
    """The sources with their weights, and whether the caller gave weights."""
    if isinstance(tokens, Tokens):
        return [(tokens, 1.0)], False
    if not isinstance(tokens, (list, tuple)):
        kind = type(tokens).__name__
        raise TypeError(
            f"tokens must be a lowtide.Tokens (lowtide.tokens opens it) or a list of (Tokens, "
            f"weight), not {kind}"
        )
    if not tokens:
        raise ValueError("tokens is an empty list: name at least one (Tokens, weight)")
    return [_weighted(entry, place) for place, entry in enumerate(tokens)], True


def _weighted(entry: Any, place: int) -> tuple[Tokens, float]:
    if not isinstance(entry, (list, tuple)) or len(entry) != 2 or not isinstance(entry[0], Tokens):
        raise TypeError(f"entry {place} of tokens must be (Tokens, weight), not {entry!r}")
    weight = entry[1]
    if isinstance(weight, (bool, np.bool_, str, bytes)) or not hasattr(weight, "__float__"):
        kind = type(weight).__name__
        raise TypeError(f"the weight of entry {place} must be a number, not {kind}")
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"the weight of entry {place} must be finite and above 0, not {weight}")
    return entry[0], float(weight)


def _remake(kind: type[Loader], tokens: Any, options: dict[str, Any], state: Any) -> Loader:
    """A Loader from its pickle, where it was."""
    loader = kind(tokens, **options)
    loader.load_state_dict(state)
    return loader
