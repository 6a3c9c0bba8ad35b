"""tensorstore: zarr 3 in shards of small chunks, each batch by one index array, reads in flight.

https://google.github.io/tensorstore/python/indexing.html#integer-array-indexing
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import tensorstore as ts

from . import Data

NAME = "tensorstore, sharded zarr"
PAGE = "https://google.github.io/tensorstore/python/indexing.html#integer-array-indexing"
ENVIRONMENT = "stores"
PACKAGES = ("tensorstore",)
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}
CHUNK, SHARD = 4, 65536  # samples: 2.5 KiB or 8 KiB per chunk
AHEAD = 8  # batches that are read while one is used


def _spec(data: Data) -> dict[str, Any]:
    return {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{data.folder}/x.zarr/"},
    }


def prepare(data: Data) -> None:
    inner = ts.ChunkLayout(
        read_chunk_shape=[CHUNK, data.width], write_chunk_shape=[SHARD, data.width]
    )
    store = ts.open(
        _spec(data), create=True, dtype=data.dtype, shape=[data.samples, data.width],
        chunk_layout=inner,
    ).result()  # fmt: skip
    first = 0
    for block in data.blocks(SHARD):
        store[first : first + len(block)].write(block).result()
        first += len(block)


def batches(data: Data) -> Iterator[Any]:
    store = ts.open(_spec(data), open=True).result()
    flying: collections.deque[Any] = collections.deque()
    for numbers in data.order():
        wanted = store[numbers] if data.shuffled else store[numbers[0] : numbers[-1] + 1]
        flying.append(wanted.read(order="C"))
        if len(flying) > AHEAD:
            yield flying.popleft().result().astype(data.out_dtype, copy=False)
    while flying:
        yield flying.popleft().result().astype(data.out_dtype, copy=False)
