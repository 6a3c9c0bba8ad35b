"""LitData: optimised chunks, its own shuffle, 2 workers of its StreamingDataLoader.

https://github.com/Lightning-AI/litdata#speed-up-model-training
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import litdata
import numpy as np
import torch

from . import Data

NAME = "LitData, 2 workers"
PAGE = "https://github.com/Lightning-AI/litdata#speed-up-model-training"
ENVIRONMENT = "torch"
PACKAGES = ("litdata", "torch")
SCENARIOS = {"rows": "within chunks", "tokens": "within chunks", "scan": "", "resume": ""}
PART = 4096  # samples per input of `optimize`


def _samples(data: Data, first: int) -> Iterator[Any]:
    for sample in data.view()[first : first + PART]:
        yield np.array(sample)


def _items(data: Data) -> Any:
    return litdata.TokensLoader(block_size=data.width) if data.kind == "tokens" else None


def prepare(data: Data) -> None:
    litdata.optimize(
        partial(_samples, data), list(range(0, data.samples, PART)), data.folder,
        chunk_bytes="64MB", num_workers=1, item_loader=_items(data), start_method="fork",
    )  # fmt: skip


def _loader(data: Data) -> litdata.StreamingDataLoader:
    stored = litdata.StreamingDataset(
        data.folder, None, _items(data), data.shuffled, drop_last=True, seed=data.seed
    )
    workers = 2 if data.shuffled else 1  # several workers deliver in an order of their own
    loader = litdata.StreamingDataLoader(stored, batch_size=data.batch_size, num_workers=workers)
    loader.load_state_dict(data.state) if data.state else None
    return loader


def batches(data: Data) -> Iterator[Any]:
    yield from (batch.to(getattr(torch, data.out_dtype)) for batch in _loader(data))


def save(data: Data, steps: int) -> Any:
    stream = iter(loader := _loader(data))
    for _ in range(steps):
        next(stream)
    return loader.state_dict()
