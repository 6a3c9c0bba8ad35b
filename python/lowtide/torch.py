"""Token windows as PyTorch tensors: `lowtide.Tokens` and `lowtide.Loader`, their words and rules.

    x, y = lt.torch.windows(tokens, ix, 1024)  # your own starts
    loader = lt.torch.Loader(tokens, batch_size=12, block_size=1024, seed=1337)
    for x, y in loader: ...

Nothing is decided here. Tensors share the buffers that the NumPy face lends: no copy, writable,
valid and unchanged for as long as anybody holds them.
"""

from __future__ import annotations

import operator
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed
import torch.utils.data

import lowtide
from lowtide._closing import Closing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

__all__ = ["Batch", "Dataset", "Loader", "windows"]

_from_numpy = torch.from_numpy
_to_numpy = torch.Tensor.numpy  # the shorter way than np.asarray
_INTEGERS: dict[Any, Any] = {
    getattr(torch, name): name
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
    if hasattr(torch, name)  # the wide unsigned ones came with torch 2.3
}
_TARGETS = ("shifted", "none", "hf")


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
    x, y = tokens.windows(starts, block_size, dtype=_INTEGERS.get(dtype, dtype))
    return _from_numpy(x), _from_numpy(y)


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
        return None if self._lent is None else _from_numpy(self._lent.samples)

    @property
    def positions(self) -> torch.Tensor | None:
        """As `lowtide.Batch.positions`; None as `step`."""
        return None if self._lent is None else _tensor(self._lent.positions, self._pin)

    @property
    def cu_seqlens(self) -> torch.Tensor | None:
        """As `lowtide.Batch.cu_seqlens`; None as `step`."""
        return None if self._lent is None else _tensor(self._lent.cu_seqlens, self._pin)


class Loader(Closing, torch.utils.data.IterableDataset[Batch]):
    """`lowtide.Loader` with tensors: the same arguments, batches, state and errors.

    rank, world_size: of torch.distributed where that is initialised, else RANK and WORLD_SIZE of
        the environment, else 0 and 1. `repr` shows them.
    dtype: a torch or NumPy integer type, or its name.
    pin_memory: tensors in pinned memory, copied there from the lease. Torch's allocator keeps their
        memory until copies to a device that are under way (`non_blocking=True`) are over. It is
        beside `memory`. Without an accelerator: a warning, and plain tensors.

    The threads that read ahead are inside: it needs no DataLoader. In one (`batch_size=None`, for
    code that insists) it wants num_workers=0; StatefulDataLoader finds its state.
    """

    def __init__(
        self,
        tokens: lowtide.Tokens | Sequence[tuple[lowtide.Tokens, float]],
        batch_size: int,
        block_size: int,
        order: str = "shuffle",
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        epochs: int | None = None,
        drop_last: bool = True,
        prefetch: int | None = None,
        dtype: torch.dtype | npt.DTypeLike = torch.int64,
        memory: int | str | None = None,
        documents: str = "cross",
        pin_memory: bool = False,
    ) -> None:
        """As `lowtide.Loader`, and `pin_memory`."""
        rank, world_size = _ranks(rank, world_size)
        self._loader = lowtide.Loader(
            tokens, batch_size, block_size, order, seed, rank, world_size, epochs, drop_last,
            prefetch, _INTEGERS.get(dtype, dtype), memory, documents,
        )  # fmt: skip
        self._pin = bool(pin_memory) and _can_pin()

    @property
    def rank(self) -> int:
        """This rank, from 0."""
        return self._loader.rank

    @property
    def world_size(self) -> int:
        """How many ranks share the order."""
        return self._loader.world_size

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, from 0."""
        return self._loader.epoch

    @property
    def step(self) -> int:
        """The step of the next batch in its epoch, from 0."""
        return self._loader.step

    @property
    def steps_left(self) -> int:
        """Steps left of the present epoch; 0 after the last."""
        return self._loader.steps_left

    def __iter__(self) -> Iterator[Batch]:
        """The rest of the present epoch; the next `for` goes on with the next."""
        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ValueError(
                f"a lowtide.torch.Loader in {worker.num_workers} DataLoader workers would deliver "
                "every batch as often: use it without a DataLoader, or with num_workers=0 (it "
                "reads ahead on threads of its own)"
            )
        for batch in self._loader:
            yield self._tensors(batch)

    def __len__(self) -> int:
        """Steps of one epoch."""
        return len(self._loader)

    def next(self) -> Batch:
        """The next batch, on and on across epochs. Raises StopIteration after the last."""
        return self._tensors(self._loader.next())

    def _tensors(self, batch: lowtide.Batch) -> Batch:
        x, y = _from_numpy(batch.x), _from_numpy(batch.y)
        if self._pin:
            x, y = x.pin_memory(), y.pin_memory()
        return Batch((x, y), batch, self._pin)

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, as JSON; batches read ahead and not delivered are not counted."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state` under any batch size and world size. Raises ValueError."""
        self._loader.load_state_dict(state)

    def seek(self, step: int, epoch: int | None = None) -> None:
        """Goes to a step of an epoch, of the present one if not given."""
        self._loader.seek(step, epoch)

    def skip(self, steps: tuple[int, int], epoch: int | None = None) -> None:
        """Leaves out steps first .. last - 1 of an epoch, of the present one if not given."""
        self._loader.skip(steps, epoch)

    def when(
        self, token_offset: int, epoch: int | None = None, source: int = 0
    ) -> lowtide.When | None:
        """The step, rank and row at which an epoch has a token in x, or None."""
        return self._loader.when(token_offset, epoch, source)

    def stats(self) -> dict[str, Any]:
        """As `lowtide.Loader.stats`."""
        return self._loader.stats()

    def close(self) -> None:
        """Ends the readers; tensors already delivered stay valid."""
        self._loader.close()

    def __repr__(self) -> str:
        pinned = ", pin_memory" if self._pin else ""
        return f"<lowtide.torch.Loader over {self._loader!r}{pinned}>"


class Dataset(torch.utils.data.Dataset[Any]):
    """The windows of a token file by number, for a DataLoader: window k starts at k * block_size.

    There are (len(tokens) - 1) // block_size. targets: "shifted" gives (x, y), "none" gives x, "hf"
    gives {"input_ids": x, "labels": x}, as models that shift by themselves want it.

    A DataLoader asks for a whole batch at once (`__getitems__`), which is one read of the engine.
    Pickles by reference. In DataLoader workers the memory of `tokens` is divided among them.
    `Loader` is the better way where nothing needs a map-style dataset: no workers, exact resume.
    """

    def __init__(
        self,
        tokens: lowtide.Tokens,
        block_size: int,
        targets: str = "shifted",
        dtype: torch.dtype | npt.DTypeLike = torch.int64,
    ) -> None:
        """Raises ValueError for unknown targets and for a file shorter than one window."""
        if targets not in _TARGETS:
            raise ValueError(f"targets must be one of {', '.join(_TARGETS)}, not {targets!r}")
        block_size = operator.index(block_size)
        if block_size < 1:
            raise ValueError(f"block_size must be at least 1, not {block_size}")
        if len(tokens) <= block_size:
            raise ValueError(
                f"block_size {block_size} needs {block_size + 1} tokens, there are {len(tokens)}"
            )
        self._tokens = tokens
        self._block_size = block_size
        self._targets = targets
        self._dtype = dtype
        self._count = (len(tokens) - 1) // block_size
        self._share: tuple[int, lowtide.Tokens] | None = None

    def __len__(self) -> int:
        """Windows."""
        return self._count

    def __getitem__(self, index: int) -> Any:
        """Window `index`, from the end where negative. Raises IndexError."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The windows `indices`, in that order, by one read. They share one buffer."""
        starts = [self._start(index) for index in indices]
        if not starts:
            return []
        x, y = windows(self._source(), starts, self._block_size, self._dtype)
        if self._targets == "shifted":
            return list(zip(x, y))
        if self._targets == "none":
            return list(x)
        return [{"input_ids": row, "labels": row} for row in x]

    def _start(self, index: int) -> int:
        place = operator.index(index)
        if not -self._count <= place < self._count:
            raise IndexError(f"window {place} is out of range: there are {self._count}")
        return place % self._count * self._block_size

    def _source(self) -> lowtide.Tokens:
        """The tokens to read from: in one of several workers its own, with its share of memory."""
        worker = torch.utils.data.get_worker_info()
        if worker is None or worker.num_workers == 1:
            return self._tokens
        if self._share is None or self._share[0] != os.getpid():
            memory = self._tokens.memory // worker.num_workers
            self._share = os.getpid(), self._tokens.reopen(memory=memory)
        return self._share[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_share": None}

    def __repr__(self) -> str:
        return (
            f"<lowtide.torch.Dataset of {self._count} windows of {self._block_size}, "
            f"targets={self._targets!r}, over {self._tokens!r}>"
        )


def _tensor(lent: npt.NDArray[Any] | None, pin: bool) -> torch.Tensor | None:
    if lent is None:
        return None
    tensor = _from_numpy(lent)
    return tensor.pin_memory() if pin else tensor


def _ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    if rank is not None and world_size is not None:
        return rank, world_size
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        found = distributed.get_rank(), distributed.get_world_size()
    else:
        found = _from_environment("RANK", 0), _from_environment("WORLD_SIZE", 1)
    return found[0] if rank is None else rank, found[1] if world_size is None else world_size


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} in the environment must be a number, not {text!r}") from None


def _can_pin() -> bool:
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if found is not None and found.type != "mps":  # torch cannot pin memory for that one
        return True
    warnings.warn(
        "pin_memory=True, but there is no accelerator that pinned memory is for: tensors will be "
        "in plain memory",
        stacklevel=3,
    )
    return False
