"""zarr: chunks of a few samples in shards, uncompressed; each batch by one orthogonal selection.

https://zarr.readthedocs.io/en/stable/user-guide/performance/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import zarr

from . import Data

NAME = "zarr, sharded"
PAGE = "https://zarr.readthedocs.io/en/stable/user-guide/performance/"
ENVIRONMENT = "stores"
PACKAGES = ("zarr",)
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}
CHUNK, SHARD = 32, 65536  # samples


def prepare(data: Data) -> None:
    made = zarr.create_array(
        f"{data.folder}/x.zarr", shape=(data.samples, data.width), dtype=data.dtype,
        chunks=(CHUNK, data.width), shards=(SHARD, data.width), compressors=None, filters=None,
    )  # fmt: skip
    first = 0
    for block in data.blocks(SHARD):
        made[first : first + len(block)] = block
        first += len(block)


def batches(data: Data) -> Iterator[Any]:
    stored = zarr.open_array(f"{data.folder}/x.zarr", mode="r")
    for numbers in data.order():
        found = stored.oindex[numbers] if data.shuffled else stored[numbers[0] : numbers[-1] + 1]
        yield found.astype(data.out_dtype, copy=False)
