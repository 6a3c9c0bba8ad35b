"""Token windows as PyTorch tensors: `lowtide.Tokens` and `lowtide.Loader`, their words and rules.

    x, y = lt.torch.windows(tokens, ix, 1024)  # your own starts
    loader = lt.torch.Loader(tokens, batch_size=12, block_size=1024, seed=1337)
    for x, y in loader: ...

Nothing is decided here. Tensors are the buffers that the core lends: no copy, writable, valid and
unchanged for as long as anybody holds them.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
import torch.utils.data

import lowtide
from lowtide._closing import Closing
from lowtide._torch_dataset import Dataset
from lowtide._torch_tensors import INTEGERS, Batch, from_dlpack, make_batch, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from lowtide import _core

__all__ = ["Batch", "Dataset", "Loader", "windows"]


def __dir__() -> list[str]:
    """Only what is public."""
    return sorted(__all__)


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
            prefetch, INTEGERS.get(dtype, dtype), memory, documents,
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
        self._loader._check_open()
        core = self._loader._core
        epoch = core.epoch()
        while (found := core.next_tensors(from_dlpack, epoch)) is not None:
            yield self._batch(*found)

    def __len__(self) -> int:
        """Steps of one epoch."""
        return len(self._loader)

    def next(self) -> Batch:
        """The next batch, on and on across epochs. Raises StopIteration after the last."""
        found = self._loader._core.next_tensors(from_dlpack)
        if found is None:
            self._loader._check_open()
            raise StopIteration
        return self._batch(*found)

    def _batch(self, x: torch.Tensor, y: torch.Tensor, lease: _core.TokenBatch) -> Batch:
        if self._pin:
            x, y = x.pin_memory(), y.pin_memory()
        return make_batch((x, y), lease, self._pin)

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
