"""An epoch of batches, read ahead of whoever iterates."""

from __future__ import annotations

import atexit
import collections.abc
import contextlib
import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core
from lowtide._arguments import MAX, flag, integer, word
from lowtide._closing import Closing
from lowtide._index import check_rows
from lowtide._window import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt
    from typing_extensions import Self

_STATE_FORMAT = 1
_COPIED_SHARE = 16  # of `memory`: an order up to this size is copied, a larger one is borrowed
# Readers must be gone before the interpreter is: an iterator that is never freed ends here. A plain
# set, because its methods are atomic: a WeakSet cannot be listed while another thread adds to it.
_live: set[weakref.ref[_core.Batches | _core.Loader]] = set()


def remember(core: _core.Batches | _core.Loader) -> None:
    """Closes `core` before the interpreter ends, unless it is gone by then."""
    _live.add(weakref.ref(core, _live.discard))


def _living() -> list[_core.Batches | _core.Loader]:
    return [core for entry in _live.copy() if (core := entry()) is not None]


@atexit.register
def _close_all() -> None:
    # First: a daemon thread that is told that its reader was closed would die with a traceback,
    # and a traceback while the interpreter ends can end the process.
    _core.keep_threads_out()
    for readers in _living():
        readers.close()


def _forked() -> None:
    _core.forget_threads()
    for readers in _living():
        readers.forked()


os.register_at_fork(after_in_child=_forked)


class Batches(Closing):
    """The batches of one epoch as (idx, rows), each row of the epoch exactly once.

    `idx` is an int64 array of its own: which rows, in the order of `rows`. `rows` is borrowed from
    a pool: writable, valid and unchanged for as long as any view of it lives, also after `close`.
    Made by `Array.batches`; one consumer at a time.
    """

    __slots__ = (
        "__weakref__", "_array", "_batch_size", "_claim_rows", "_core", "_drop_last", "_dtype",
        "_epoch", "_order", "_rank", "_row_bytes", "_row_shape", "_rows", "_seed", "_size",
        "_steps", "_thaw", "_world_size",
    )  # fmt: skip

    def __init__(
        self,
        array: _core.Array,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        batch_size: int,
        order: str | npt.NDArray[np.integer[Any]],
        seed: int,
        epoch: int,
        rank: int,
        world_size: int,
        drop_last: bool,
    ) -> None:
        """As `Array.batches`, which says what the arguments mean."""
        if not shape:
            raise TypeError("batches of a 0-d array: it has no rows")
        self._batch_size = integer(batch_size, "batch_size", 1, MAX)
        self._world_size = integer(world_size, "world_size", 1, MAX)
        self._rank = integer(rank, "rank", 0, MAX)
        if self._rank >= self._world_size:
            raise ValueError(f"rank must be below world_size ({world_size}), not {rank}")
        self._seed = integer(seed, "seed", 0, 2**64 - 1)
        self._epoch = integer(epoch, "epoch", 0, 2**64 - 1)
        self._drop_last = flag(drop_last, "drop_last")
        self._array = array
        self._dtype = dtype
        self._row_bytes = array.row_bytes
        self._row_shape = shape[1:]
        self._order, self._rows = _parse_order(order, shape[0])
        self._size = shape[0] if self._rows is None else len(self._rows)
        self._thaw: Callable[[], object] = _nothing
        self._claim_rows = False
        self._core = self._start() if self._rows is None else self._start_with_rows(order)
        self._steps = self._core.steps()

    def _start_with_rows(self, order: Any) -> _core.Batches:
        """Starts over the caller's rows: a copy of few, else the caller's array, frozen."""
        rows = self._rows
        assert rows is not None
        if not (isinstance(order, np.ndarray) and np.may_share_memory(rows, order)):
            self._claim_rows = True  # converted: a copy of ours
            return self._start()
        if rows.nbytes <= self._array.memory_bytes // _COPIED_SHARE:
            self._rows, self._claim_rows = rows.copy(), True
            try:
                return self._start()
            except ValueError:  # no room for it beside the rest, or no room for the rest either
                self._rows, self._claim_rows = rows, False
        core = self._start()
        self._thaw = weakref.finalize(self, _freeze(order))
        return core

    def _start(self) -> _core.Batches:
        core = self._array.batches(
            self._batch_size,
            self._order,
            self._rows,
            self._seed,
            self._epoch,
            self._rank,
            self._world_size,
            self._drop_last,
            self._claim_rows,
        )
        remember(core)
        return core

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        found = self._core.next(self._row_bytes)
        if found is None:
            raise StopIteration
        idx, lent = found
        shape = (len(idx), *self._row_shape)
        if not lent.size:
            return idx, empty(shape, self._dtype)
        return idx, lent.view(self._dtype).reshape(shape)

    def __len__(self) -> int:
        """Batches of this rank in the whole epoch."""
        return self._steps

    @property
    def position(self) -> int:
        """Batches of this rank delivered so far."""
        return self._core.position()

    def state_dict(self) -> dict[str, Any]:
        """Where the epoch stands, as JSON: what was read ahead and not delivered is not counted."""
        rows = self._core.position() * self._batch_size * self._world_size
        return {
            "format": _STATE_FORMAT,
            "epoch": self._epoch,
            "position": min(rows, self._size),
            "seed": self._seed,
            "order": self._order if self._rows is None else "rows",
            "size": self._size,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from where `state` was taken, with any batch size and world size that meets it.

        Raises ValueError that says what differs: another order, seed, number of rows, or a
        position that is not between two batches of all ranks.
        """
        if not isinstance(state, collections.abc.Mapping):
            kind = type(state).__name__
            raise TypeError(f"state must be a dict as state_dict() gives it, not {kind}")
        mine = self.state_dict()
        for key in ("format", "seed", "order", "size"):
            if state.get(key) != mine[key]:
                raise ValueError(f"state has {key} {state.get(key)!r}, not {mine[key]!r}")
        epoch = integer(state.get("epoch"), "epoch in state", 0, 2**64 - 1)
        position = integer(state.get("position"), "position in state", 0, self._size)
        step, rest = divmod(position, self._batch_size * self._world_size)
        if rest and position < self._size:
            raise ValueError(
                f"position {position} in state is not a multiple of batch_size * world_size "
                f"({self._batch_size * self._world_size})"
            )
        if epoch != self._epoch:
            self._core.close()
            self._epoch = epoch
            self._core = self._start()
        self._core.seek(len(self) if position == self._size else step)

    def close(self) -> None:
        """Ends the iteration and its readers; batches already delivered stay valid."""
        self._core.close()
        self._thaw()

    def __repr__(self) -> str:
        ranks = f" rank={self._rank}/{self._world_size}" if self._world_size > 1 else ""
        order = self._order if self._rows is None else f"{len(self._rows)} rows of yours"
        return (
            f"<lowtide.Batches of {self._batch_size} rows, order={order!r} seed={self._seed} "
            f"epoch={self._epoch}{ranks}>"
        )


# Arrays of callers that batches read from, by id, each with a mark of every user.
_frozen: dict[int, tuple[npt.NDArray[Any], set[object]]] = {}
_freezing = threading.RLock()  # a finalizer may come in the middle, on the same thread


def _nothing() -> None:
    """Nothing was frozen."""


def _freeze(order: npt.NDArray[Any]) -> Callable[[], None]:
    """Makes `order`, and what it is a view of, read-only until its last user calls the result.

    Other views of the same memory stay as they are: that their writes make no row that is not there
    is for the core to check.
    """
    mark = object()
    keys = []
    view: Any = order
    with _freezing:
        while isinstance(view, np.ndarray):
            if view.flags.writeable:
                view.flags.writeable = False
                _frozen[id(view)] = view, set()
            if id(view) in _frozen:
                _frozen[id(view)][1].add(mark)
                keys.append(id(view))
            view = view.base
    return functools.partial(_thaw, keys, mark)


def _thaw(keys: list[int], mark: object) -> None:
    with _freezing:
        for key in keys:
            _frozen[key][1].discard(mark)
        # A view becomes writable after what it is a view of, which another user may still read.
        waiting = [view for view, marks in _frozen.values() if not marks]
        for view in sorted(waiting, key=_depth):
            if view.base is None or id(view.base) not in _frozen:
                del _frozen[id(view)]
                with contextlib.suppress(ValueError):  # the caller made its owner read-only
                    view.flags.writeable = True


def _depth(view: Any) -> int:
    """How many arrays lie below a view."""
    return 1 + _depth(view.base) if isinstance(view.base, np.ndarray) else 0


def _parse_order(order: Any, length: int) -> tuple[str, npt.NDArray[Any] | None]:
    """The core's word, and the caller's own rows: borrowed where their type and layout allow."""
    if isinstance(order, str):
        return word(order, "order"), None
    if not isinstance(order, (np.ndarray, list, tuple, range)):
        kind = type(order).__name__
        raise TypeError(f"order must be 'shuffle', 'sequential' or an integer array, not {kind}")
    rows = np.asarray(order)
    if rows.ndim != 1:
        raise ValueError(f"order must have one axis, not shape {rows.shape}")
    return "sequential", check_rows(order, length)
