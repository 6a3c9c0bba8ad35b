"""Batches as PyTorch tensors, with the names and rules of `lowtide.Loader`.

```python
loader = lt.torch.Loader((features, labels), batch_size=256, seed=1337)
for xb, yb in loader:
    ...

loader = lt.torch.Loader(tokens, batch_size=12, block_size=1024, seed=1337)
for x, y in loader:
    ...
x, y = lt.torch.windows(tokens, ix, 1024)  # your own starts
```

Tensors borrow the buffers of the core without a copy. They are writable, and they stay valid and
unchanged while any of them lives.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
import torch.utils.data

import lowtide
from lowtide._loader.batch import Batch
from lowtide._torch.ahead import Ahead
from lowtide._torch.dataset import Dataset
from lowtide._torch.device import current, narrow_type, open_copier, pinned, pinning
from lowtide._torch.tensors import as_array, from_dlpack, numpy_type, tensor_word, windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lowtide import _core
    from lowtide._loader.columns import Lent

__all__ = ["Batch", "Dataset", "Loader", "windows"]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)


class Loader(lowtide.Loader, torch.utils.data.IterableDataset[Batch]):
    """A `lowtide.Loader` that delivers tensors; batches, state and errors are the same.

    It reads ahead on threads of its own and needs no DataLoader. If your code requires one, wrap it
    with batch_size=None and num_workers=0; StatefulDataLoader saves its state. Use it from one
    thread at a time. It is a context manager that closes itself.
    """

    _name = "lowtide.torch.Loader"
    _make = staticmethod(from_dlpack)
    _wrap = staticmethod(torch.from_numpy)

    def __init__(
        self,
        source: Any,
        batch_size: int,
        block_size: int | None = None,
        order: str = "shuffle",
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        epochs: int | None = None,
        drop_last: bool = True,
        prefetch: int | None = None,
        dtype: torch.dtype | npt.DTypeLike | None = None,
        memory: int | str | None = None,
        documents: str = "cross",
        rows: Any = None,
        weights: npt.ArrayLike | torch.Tensor | None = None,
        pin_memory: bool = False,
        device: torch.device | str | int | None = None,
        dense: bool = False,
        columns: npt.ArrayLike | torch.Tensor | None = None,
    ) -> None:
        """Claims its memory; reading ahead starts with the first batch.

        Args:
            source: As for `lowtide.Loader`.
            batch_size: Samples per step and rank.
            block_size: Tokens of `x` per window. For windows only, and required there.
            order: "shuffle", "sequential" or "random", as for `lowtide.Loader`.
            seed: Seed of the order, 0 to 2**64 - 1.
            rank: This rank, from 0. None: taken from torch.distributed if it is initialised, else
                from RANK in the environment, else 0.
            world_size: Number of ranks. None: taken from torch.distributed if it is initialised,
                else from WORLD_SIZE in the environment, else 1.
            epochs: Number of epochs. None: no limit.
            drop_last: As for `lowtide.Loader`.
            prefetch: Most batches to read ahead. None: as many as pay off within the budget.
            dtype: Integer type of `x` and `y`, torch.int64 by default; or the type of dense rows,
                torch.float32 by default. A torch or NumPy type, or its name.
            memory: As for `lowtide.Loader`.
            documents: "cross" or "separate", as for `lowtide.Loader`.
            rows: As for `lowtide.Loader`; a tensor is accepted too.
            weights: As for `lowtide.Loader`; a tensor is accepted too.
            pin_memory: If True, batches are in pinned memory, for copies to a device with
                `non_blocking=True`. With CUDA, the buffers of the loader are pinned, within
                `memory`, and one is reused only after an event that was recorded after the copies
                has completed, so you may drop a batch right after you started its copy on the
                default stream. If you copy on other streams, keep the batch until they are done.
                For other accelerators torch copies each batch into pinned memory of its own.
                Without an accelerator it warns and delivers plain tensors. Tested with a simulated
                device, not run on a GPU.
            device: CUDA device to which up to two batches are copied ahead of the training loop, on
                a stream of its own. `x` and `y` are sent in the type in which tokens are stored,
                and widened there. `index` stays on the CPU. None or "cpu": batches are on the CPU.
                Tested with a simulated device, not run on a GPU.
            dense: As for `lowtide.Loader`.
            columns: As for `lowtide.Loader`; a tensor is accepted too.

        Raises:
            ValueError: An argument or environment variable is invalid, there are fewer samples than
                one step of all ranks needs, the budget is too small, or there is no such device.
            IndexError: A row does not exist.
            TypeError: An argument has the wrong type, or torch has no tensors of the dtype of an
                array.
        """
        rank, world_size = _ranks(rank, world_size)
        copier = self._copier = open_copier(device)
        self._pinning = pinning(bool(pin_memory), copier)
        self._widen: torch.dtype | None = None
        self._convert: Any = pinned if self._pinning == "torch" else torch.from_numpy
        if copier is not None:  # whose tensors are made already
            self._wrap = self._convert = torch.as_tensor  # type: ignore[misc]
        with current(copier):
            super().__init__(
                source, batch_size, block_size, order, seed, rank, world_size, epochs, drop_last,
                prefetch, numpy_type(dtype), memory, documents, as_array(rows), as_array(weights),
                dense, as_array(columns),
            )  # fmt: skip
        self._options["pin_memory"] = bool(self._pinning) and bool(pin_memory)
        self._options["device"] = None if copier is None else str(copier.device)
        if copier is not None:
            self._core = Ahead(self._core, copier, self._widen)  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Batch]:
        """Iterates over the rest of the current epoch; the next loop covers the next epoch.

        Raises:
            ValueError: It runs in several DataLoader workers, or the loader is closed.
        """
        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ValueError(
                f"a lowtide.torch.Loader in {worker.num_workers} DataLoader workers would deliver "
                f"every batch {worker.num_workers} times: use it without a DataLoader or with "
                "num_workers=0 (it reads ahead on threads of its own)"
            )
        return super().__iter__()

    def _tune(self, options: _core.LoaderOptions, sources: list[tuple[Any, float]]) -> None:
        options.pin_memory = self._pinning == "core"
        if self._copier is None:
            return
        options.fenced = False  # `Ahead` keeps each batch until its copy has ended
        narrow = narrow_type(options.dtype, sources) if self._columns is None else None
        if narrow is not None:
            self._widen = getattr(torch, options.dtype)
            options.dtype = narrow

    @staticmethod
    def _type_word(lent: Lent) -> str:
        return tensor_word(lent.dtype, lent.name)

    def _batch(self, found: tuple[Any, ...]) -> Batch:
        if self._convert is pinned:
            found = (*(tensor.pin_memory() for tensor in found[:-1]), found[-1])
        batch = super()._batch(found)
        batch._convert = self._convert
        return batch

    def __repr__(self) -> str:
        about = super().__repr__()
        if self._options["pin_memory"]:
            about = about[:-1] + " pin_memory>"
        if self._copier is not None:
            about = f"{about[:-1]} device={str(self._copier.device)!r}>"
        return about


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
