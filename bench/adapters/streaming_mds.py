"""MosaicML streaming: MDS shards and its own shuffle, with 2 workers of its StreamingDataLoader.

https://docs.mosaicml.com/projects/streaming/en/stable/dataset_configuration/shuffling.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from . import Data

# streaming imports torchvision, which is built for CUDA on PyPI and asks torch for these operators.
_VISION = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):
    _VISION.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import streaming  # noqa: E402

NAME = "MosaicML streaming, MDS, 2 workers"
PAGE = "https://docs.mosaicml.com/projects/streaming/en/stable/dataset_configuration/shuffling.html"
ENVIRONMENT = "torch"
PACKAGES = ("mosaicml-streaming", "torch")
SCENARIOS = {"rows": "near its shard", "tokens": "near its shard", "scan": "", "resume": ""}


def prepare(data: Data) -> None:
    columns = {"x": f"ndarray:{data.dtype}:{data.width}"}
    with streaming.MDSWriter(out=data.folder, columns=columns) as out:
        for block in data.blocks():
            for sample in block:
                out.write({"x": sample})


def _loader(data: Data) -> streaming.StreamingDataLoader:
    streaming.base.util.clean_stale_shared_memory()
    stored = streaming.StreamingDataset(
        local=data.folder, batch_size=data.batch_size, shuffle=data.shuffled,
        shuffle_seed=data.seed, num_canonical_nodes=1,
    )  # fmt: skip
    workers = 2 if data.shuffled else 1  # several workers deliver in an order of their own
    loader = streaming.StreamingDataLoader(stored, data.batch_size, num_workers=workers)
    if data.state is not None:
        loader.load_state_dict(data.state)
    return loader


def batches(data: Data) -> Iterator[Any]:
    for batch in _loader(data):
        yield batch["x"].to(getattr(torch, data.out_dtype))


def save(data: Data, steps: int) -> Any:
    loader = _loader(data)
    for _ in zip(range(steps), loader):
        pass
    return loader.state_dict()
