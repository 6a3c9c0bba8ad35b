"""Grain over ArrayRecord: a global shuffle, records read by 16 threads, batches ahead.

https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grain
import numpy as np
from array_record.python import array_record_module

from . import Data

NAME = "Grain + ArrayRecord, 16 threads"
PAGE = "https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html"
ENVIRONMENT = "grain"
PACKAGES = ("grain", "array_record")
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "resume": "", "startup": ""}


def prepare(data: Data) -> None:
    # group_size:1 is what the documentation asks for if records are read in random order
    out = array_record_module.ArrayRecordWriter(
        f"{data.folder}/x.array_record", "group_size:1,uncompressed"
    )
    for block in data.blocks():
        for sample in block:
            out.write(sample.tobytes())
    out.close()


def _dataset(data: Data) -> Any:
    stored = grain.MapDataset.source(
        grain.sources.ArrayRecordDataSource(f"{data.folder}/x.array_record")
    )
    if data.shuffled:
        stored = stored.shuffle(seed=data.seed)
    stored = stored.map(lambda raw: np.frombuffer(raw, data.dtype).astype(data.out_dtype))
    return stored.batch(data.batch_size, drop_remainder=True).to_iter_dataset()


def batches(data: Data) -> Iterator[Any]:
    stream = iter(_dataset(data))
    if data.state is not None:
        stream.set_state(data.state)
    yield from stream


def save(data: Data, steps: int) -> Any:
    stream = iter(_dataset(data))
    for _ in range(steps):
        next(stream)
    return stream.get_state()
