"""One epoch of batches, read ahead of the consumer."""

from __future__ import annotations

import atexit
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
from lowtide._data.state import checked_old_state, checked_state, saved_state
from lowtide._index.indexing import check_rows
from lowtide._index.window import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt
    from typing_extensions import Self

_COPIED_SHARE = 16  # an order of up to 1/16 of `memory` is copied, a larger one is borrowed
# Reader threads must end before the interpreter does, so iterators that are never freed are
# closed at exit. A plain set, because its methods are atomic: a WeakSet cannot be listed while
# another thread adds to it.
_live: set[weakref.ref[_core.Batches | _core.Loader]] = set()


def remember(core: _core.Batches | _core.Loader) -> None:
    """Closes `core` before the interpreter ends, unless it is freed before."""
    _live.add(weakref.ref(core, _live.discard))


def _living() -> list[_core.Batches | _core.Loader]:
    return [core for entry in _live.copy() if (core := entry()) is not None]


@atexit.register
def _close_all() -> None:
    # This comes first. A daemon thread whose reader is closed would print a traceback, and a
    # traceback during interpreter shutdown can abort the process.
    _core.keep_threads_out()
    for readers in _living():
        readers.close()


os.register_at_fork(after_in_child=_core.forget_threads)


class Batches(Closing):
    """An iterator over the batches of one epoch as pairs (idx, rows).

    `idx` is a new int64 array with the row numbers in the order of `rows`.
    `rows` is borrowed from a pool. It is writable, and it stays valid and unchanged while any view
    of it lives, even after `close`; then its buffer is reused.

    `Array.batches` creates it. Use it from one thread at a time. It is a context manager that
    closes itself.
    """

    __slots__ = (
        "__weakref__", "_array", "_batch_size", "_beside_bytes", "_claim_rows", "_core",
        "_drop_last", "_dtype", "_epoch", "_order", "_rank", "_row_shape", "_rows", "_seed",
        "_size", "_steps", "_thaw", "_world_size",
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
        beside_bytes: int = 0,
    ) -> None:
        """Claims its memory; `Array.batches` documents the arguments.

        `beside_bytes`: bytes of the same budget that the caller holds meanwhile.
        """
        if not shape:
            raise TypeError("cannot iterate over batches of a 0-d array: it has no rows")
        self._batch_size = integer(batch_size, "batch_size", 1, MAX)
        self._world_size = integer(world_size, "world_size", 1, MAX)
        self._rank = integer(rank, "rank", 0, MAX)
        if self._rank >= self._world_size:
            raise ValueError(f"rank must be below world_size ({world_size}), not {rank}")
        self._seed = integer(seed, "seed", 0, 2**64 - 1)
        self._epoch = integer(epoch, "epoch", 0, 2**64 - 1)
        self._drop_last = flag(drop_last, "drop_last")
        self._beside_bytes = beside_bytes
        self._array = array
        self._dtype = dtype
        self._row_shape = shape[1:]
        self._order, self._rows = _parse_order(order, shape[0])
        self._size = shape[0] if self._rows is None else len(self._rows)
        self._thaw: Callable[[], object] = nothing
        self._claim_rows = False
        self._core = self._start() if self._rows is None else self._start_with_rows(order)
        self._steps = self._core.steps()

    def _start_with_rows(self, order: Any) -> _core.Batches:
        """Starts with the caller's rows: copied if they are few, else borrowed and frozen."""
        rows = self._rows
        assert rows is not None
        if not (isinstance(order, np.ndarray) and np.may_share_memory(rows, order)):
            self._claim_rows = True  # check_rows made a copy, which is ours
            return self._start()
        if rows.nbytes <= self._array.memory_bytes // _COPIED_SHARE:
            self._rows, self._claim_rows = rows.copy(), True
            try:
                return self._start()
            except ValueError:  # the copy does not fit; without it, the rest may or may not fit
                self._rows, self._claim_rows = rows, False
        core = self._start()
        self._thaw = weakref.finalize(self, freeze(order))
        return core

    def _start(self) -> _core.Batches:
        core = self._array.batches(
            self._batch_size,
            order=self._order,
            rows=self._rows,
            seed=self._seed,
            epoch=self._epoch,
            rank=self._rank,
            world_size=self._world_size,
            drop_last=self._drop_last,
            claim_rows=self._claim_rows,
            beside_bytes=self._beside_bytes,
        )
        remember(core)
        return core

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Returns the next batch as (idx, rows).

        Raises:
            StopIteration: The epoch is over, or the iterator is closed.
            OSError: A read failed; the next call tries it again.
            FormatError: A file has changed or is shorter than its header promises.
        """
        found = self._core.next()
        if found is None:
            raise StopIteration
        idx, lent = found
        shape = (len(idx), *self._row_shape)
        if not lent.size:
            return idx, empty(shape, self._dtype)
        return idx, lent.view(self._dtype).reshape(shape)

    def __len__(self) -> int:
        """Number of batches of this rank in the whole epoch."""
        return self._steps

    @property
    def position(self) -> int:
        """Number of batches of this rank delivered so far."""
        return self._core.position()

    def state_dict(self) -> dict[str, Any]:
        """Returns the current position as a small dict that JSON can hold.

        Batches that were read ahead but not delivered do not count. The dict also holds a
        fingerprint of the data and of an order of your own: a copy of the data can resume, other
        data is refused.
        """
        return saved_state(self._core)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from where `state` was taken, with any batch size and world size.

        Args:
            state: A dict that `state_dict` returned.

        Raises:
            ValueError: The data, the order or the seed differs, or `state` is damaged. The message
                names what is wrong.
            TypeError: `state` is not a dict.
        """
        told = checked_old_state(state, self._size) or checked_state(state)
        self._core.restore(**told)
        self._epoch = self._core.epoch()

    def close(self) -> None:
        """Stops reading and ends the iteration; batches already delivered stay valid."""
        self._core.close()
        self._thaw()

    def __repr__(self) -> str:
        ranks = f" rank={self._rank}/{self._world_size}" if self._world_size > 1 else ""
        order = self._order if self._rows is None else f"{len(self._rows)} given rows"
        return (
            f"<lowtide.Batches of {self._batch_size} rows, order={order!r} seed={self._seed} "
            f"epoch={self._epoch}{ranks}>"
        )


# Callers' arrays that iterators currently read from, by id, each with one mark per iterator.
_frozen: dict[int, tuple[npt.NDArray[Any], set[object]]] = {}
_freezing = threading.RLock()  # a finalizer may run on the thread that already holds it


def nothing() -> None:
    """Used where nothing was frozen."""


def freeze(order: npt.NDArray[Any]) -> Callable[[], None]:
    """Makes `order` and the arrays it views read-only until its last user calls the result.

    Other views of the same memory stay writable. The core checks every entry when it reads it, so
    a write through such a view cannot select a row that does not exist.
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
        # NumPy makes a view writable only if its base is, and another iterator may still hold the
        # base. So bases come first.
        waiting = [view for view, marks in _frozen.values() if not marks]
        for view in sorted(waiting, key=_depth):
            if view.base is None or id(view.base) not in _frozen:
                del _frozen[id(view)]
                with contextlib.suppress(ValueError):  # the caller made its owner read-only
                    view.flags.writeable = True


def _depth(view: Any) -> int:
    """Counts the arrays below a view."""
    return 1 + _depth(view.base) if isinstance(view.base, np.ndarray) else 0


def _parse_order(order: Any, length: int) -> tuple[str, npt.NDArray[Any] | None]:
    """Returns the core's word for the order, and the caller's rows, borrowed if possible."""
    if isinstance(order, str):
        return word(order, "order"), None
    if not isinstance(order, (np.ndarray, list, tuple, range)):
        kind = type(order).__name__
        raise TypeError(f"order must be 'shuffle', 'sequential' or an integer array, not {kind}")
    rows = np.asarray(order)
    if rows.ndim != 1:
        raise ValueError(f"order must have one axis, not shape {rows.shape}")
    return "sequential", check_rows(order, length)
