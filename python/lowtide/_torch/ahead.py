"""Batches that are copied to a device ahead of the training loop."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lowtide import _core
    from lowtide._torch.device import Copier, Event

_AHEAD = 2  # batches on the device or on their way there, beside the one that is in use


class _Arrived:
    """Answers a batch on the device in place of its lease, which has been returned."""

    __slots__ = ("_index", "_offsets", "_places", "_sources", "epoch", "step")

    def __init__(self, lease: Any, offsets: list[torch.Tensor], places: list[torch.Tensor]) -> None:
        self.step: int = lease.step
        self.epoch: int = lease.epoch
        self._index = lease.index()
        self._sources = lease.sources()
        self._offsets = offsets
        self._places = places  # positions and cu_seqlens, or nothing

    def index(self) -> Any:
        return self._index

    def sources(self) -> Any:
        return self._sources

    def offsets(self, table: int) -> torch.Tensor:
        return self._offsets[table]

    def positions(self) -> torch.Tensor | None:
        return self._places[0] if self._places else None

    def cu_seqlens(self) -> torch.Tensor | None:
        return self._places[1] if self._places else None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the core was before a batch."""

    epoch: int
    step: int
    steps_left: int
    state: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Flight:
    """A batch that is not delivered yet, or the error that comes in its place."""

    place: _Place
    error: Exception | None = None
    found: tuple[Any, ...] = ()
    copies: Sequence[torch.Tensor] = ()
    event: Any = None


class Ahead:
    """The core of a loader, whose batches are copied to a device before they are asked for.

    It stands in for `_core.Loader`. Batches in flight do not count as delivered: all members behave
    as if the core were at the first of them. A batch of the core is kept until the event behind its
    copy has passed. One thread at a time.
    """

    def __init__(self, core: _core.Loader, copier: Copier, widen: torch.dtype | None) -> None:
        self._core = core
        self._copier = copier
        self._widen = widen  # of the first two tensors of a batch; None: nothing is converted
        self._line: deque[_Flight] = deque()
        self._sources: deque[tuple[Any, Event]] = deque()
        # Without it, an Ahead that is forgotten would return memory from which the device copies.
        weakref.finalize(self, _settle, self._sources)

    def next(self, make: Any, epoch: int | None) -> tuple[Any, ...] | None:
        """As in the core, with tensors on the device."""
        while self._sources and self._sources[0][1].query():
            self._sources.popleft()
        if self._core.closed:
            return None
        if not self._line:
            self._fetch(lambda: self._core.next(make, epoch))
        if not self._line or (epoch is not None and self._line[0].place.epoch != epoch):
            return None
        error = self._line[0].error
        if error is not None:
            self._line.popleft()
            raise error
        while len(self._line) <= _AHEAD and self._fetch(lambda: self._core.next_ready(make)):
            pass
        flight = self._line.popleft()
        self._copier.hand_over(flight.copies, flight.event)
        return flight.found

    def _fetch(self, take: Callable[[], tuple[Any, ...] | None]) -> bool:
        """Starts the copy of the next batch. False: no batch is ready yet, or none is left."""
        core = self._core
        if self._line and self._line[-1].error is not None:
            return False
        place = _Place(core.epoch(), core.step(), core.steps_left(), core.state())
        try:
            taken = take()
        except Exception as error:
            if not self._line:
                raise
            self._line.append(_Flight(place, error))  # heard of after the batches before it
            return False
        if taken is None:
            return False
        try:
            self._line.append(self._copied(place, taken))
        except BaseException as error:  # such as no memory on the device: it is tried again
            self._move_core(place)
            if not self._line or not isinstance(error, Exception):
                raise
            return False
        return True

    def _copied(self, place: _Place, taken: tuple[Any, ...]) -> _Flight:
        """Starts the copy of a batch of the core."""
        lease = taken[-1]
        offsets: list[Any] = []
        while (table := lease.offsets(len(offsets))).size:
            offsets.append(table)
        places = [one for one in (lease.positions(), lease.cu_seqlens()) if one is not None]
        tensors = [*taken[:-1], *map(torch.from_numpy, offsets + places)]
        dtypes = [tensor.dtype for tensor in tensors]
        if self._widen is not None:
            dtypes[:2] = self._widen, self._widen
        copies, event = self._copier.copy(tensors, dtypes)
        self._sources.append(((tensors, lease), event))
        first = len(taken) - 1
        last = first + len(offsets)
        arrived = _Arrived(lease, copies[first:last], copies[last:])
        return _Flight(place, None, (*copies[:first], arrived), copies, event)

    def epoch(self) -> int:
        """As in the core."""
        return self._line[0].place.epoch if self._line else self._core.epoch()

    def step(self) -> int:
        """As in the core."""
        return self._line[0].place.step if self._line else self._core.step()

    def steps_left(self) -> int:
        """As in the core."""
        return self._line[0].place.steps_left if self._line else self._core.steps_left()

    def state(self) -> dict[str, Any]:
        """As in the core."""
        return dict(self._line[0].place.state) if self._line else self._core.state()

    def when(self, row: int, epoch: int | None, source: int) -> tuple[int, int, int] | None:
        """As in the core."""
        return self._core.when(row, self.epoch() if epoch is None else epoch, source)

    def seek(self, step: int, epoch: int | None) -> None:
        """As in the core."""
        self._go_back()
        self._core.seek(step, epoch)

    def skip(self, first: int, last: int, epoch: int | None) -> None:
        """As in the core."""
        self._go_back()
        self._core.skip(first, last, epoch)

    def restore(self, **state: Any) -> None:
        """As in the core."""
        self._go_back()
        self._core.restore(**state)

    def close(self) -> None:
        """As in the core. Waits for the copies that are under way."""
        self._core.close()
        self._line.clear()
        _settle(self._sources)

    def _go_back(self) -> None:
        """Moves the core to the first batch that is not delivered."""
        if self._line:
            self._move_core(self._line[0].place)
            self._line.clear()

    def _move_core(self, place: _Place) -> None:
        skipped = [tuple(entry) for entry in place.state["skipped"]]
        self._core.restore(**{**place.state, "skipped": skipped})

    def __getattr__(self, name: str) -> Any:
        """Everything else is delegated to the core."""
        return getattr(self._core, name)


def _settle(sources: deque[tuple[Any, Event]]) -> None:
    while sources:
        # A device that reports an error copies nothing any more.
        with contextlib.suppress(RuntimeError):
            sources[0][1].synchronize()
        sources.popleft()
