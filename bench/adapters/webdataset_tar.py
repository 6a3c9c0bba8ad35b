"""WebDataset: tar shards in random order and a shuffle buffer, 2 workers.

https://webdataset.github.io/webdataset/gettingstarted/
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import webdataset as wds

from . import Data

NAME = "WebDataset, 2 workers"
PAGE = "https://webdataset.github.io/webdataset/gettingstarted/"
ENVIRONMENT = "torch"
PACKAGES = ("webdataset", "torch")
SCENARIOS = {"rows": "shuffle buffer of 10,000", "tokens": "shuffle buffer of 10,000", "scan": ""}
SHARD, BUFFER = 20_000, 10_000  # samples


def prepare(data: Data) -> None:
    with wds.ShardWriter(f"{data.folder}/x-%05d.tar", maxcount=SHARD, verbose=0) as out:
        number = 0
        for block in data.blocks():
            for sample in block:
                out.write({"__key__": f"{number:09}", "x": sample.tobytes()})
                number += 1


def batches(data: Data) -> Iterator[Any]:
    def decoded(sample: Any) -> Any:
        return np.frombuffer(sample["x"], data.dtype).astype(data.out_dtype)

    shards = sorted(glob.glob(f"{data.folder}/x-*.tar"))
    stored = wds.WebDataset(
        shards,
        shardshuffle=len(shards) if data.shuffled else False,
        empty_check=False,
        seed=data.seed,
    )
    stored = stored.shuffle(BUFFER) if data.shuffled else stored
    stored = stored.map(decoded).batched(data.batch_size, partial=False, collation_fn=np.stack)
    workers = min(2, len(shards)) if data.shuffled else 1
    for batch in wds.WebLoader(stored, batch_size=None, num_workers=workers):
        yield torch.as_tensor(batch)
