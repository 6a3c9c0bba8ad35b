"""Three ways from a token file to batches: a new np.memmap, windows at the same starts, a loader.

Each has `next()` -> (x, y), and a state. The first two draw from torch's generator, whose state the
trainer saves; the loader has a state of its own.
"""

from __future__ import annotations

import pathlib
from typing import Any, Protocol

import lowtide as lt
import lowtide.torch
import numpy as np
import torch

Pair = tuple[torch.Tensor, torch.Tensor]
WAYS = ("memmap", "lowtide", "loader")


class Data(Protocol):
    """What the training loop needs."""

    def next(self) -> Pair: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Drawn:
    """Windows at starts drawn from torch's generator, as in nanoGPT."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class FreshMemmap(Drawn):
    """nanoGPT's way: a new np.memmap for every batch, so that memory does not grow."""

    def __init__(self, path: pathlib.Path, batch_size: int, block_size: int) -> None:
        self.path, self.batch_size, self.block_size = path, batch_size, block_size

    def next(self) -> Pair:
        data = np.memmap(self.path, dtype=np.uint16, mode="r")
        ix = torch.randint(len(data) - self.block_size, (self.batch_size,))
        return self._stack(data, ix), self._stack(data, ix + 1)

    def _stack(self, data: np.ndarray, starts: torch.Tensor) -> torch.Tensor:
        rows = [data[start : start + self.block_size] for start in starts.tolist()]
        return torch.from_numpy(np.stack(rows).astype(np.int64))


class Windows(Drawn):
    """Lowtide reads windows at the same starts, which gives the same batches."""

    def __init__(self, path: pathlib.Path, batch_size: int, block_size: int) -> None:
        self.tokens, self.batch_size, self.block_size = lt.tokens(path), batch_size, block_size

    def next(self) -> Pair:
        ix = torch.randint(len(self.tokens) - self.block_size, (self.batch_size,))
        return lt.torch.windows(self.tokens, ix, self.block_size)


def open_data(way: str, path: pathlib.Path, batch_size: int, block_size: int, seed: int) -> Data:
    """Opens `path` in one of WAYS."""
    if way == "memmap":
        return FreshMemmap(path, batch_size, block_size)
    if way == "lowtide":
        return Windows(path, batch_size, block_size)
    return lt.torch.Loader(lt.tokens(path), batch_size, block_size, order="shuffle", seed=seed)
