"""torch.utils.data.DataLoader with two workers over np.memmap; a batch is read by one call.

https://pytorch.org/docs/stable/data.html#disable-automatic-batching
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.utils.data

from . import Data
from .memmap import taken

NAME = "torch DataLoader, 2 workers, np.memmap"
PAGE = "https://pytorch.org/docs/stable/data.html#disable-automatic-batching"
ENVIRONMENT = "own"
PACKAGES = ("torch",)
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}


class Samples(torch.utils.data.Dataset[torch.Tensor]):
    """The samples of a map, a batch per item; each worker makes its own map."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._view: Any = None

    def __getitem__(self, numbers: Any) -> torch.Tensor:
        if self._view is None:
            self._view = self._data.view()
        return torch.from_numpy(taken(self._view, self._data, numbers))


def batches(data: Data) -> Iterator[Any]:
    loader = torch.utils.data.DataLoader(
        Samples(data), batch_size=None, sampler=list(data.order()), num_workers=2
    )
    yield from loader
