"""Hugging Face datasets, iterable: shards in random order and a shuffle buffer.

https://huggingface.co/docs/datasets/about_mapstyle_vs_iterable#speed-differences
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import datasets

from . import Data
from .datasets_map import array

NAME = "HF datasets, iterable"
PAGE = "https://huggingface.co/docs/datasets/about_mapstyle_vs_iterable#speed-differences"
ENVIRONMENT = "stores"
PACKAGES = ("datasets", "pyarrow")
SCENARIOS = {"rows": "shuffle buffer of 10,000", "tokens": "shuffle buffer of 10,000"}
FORM = "datasets_map"
SHARDS, BUFFER = 64, 10_000


def batches(data: Data) -> Iterator[Any]:
    stored = datasets.Dataset.from_file(f"{data.folder}/x.arrow").with_format("arrow")
    stream = stored.to_iterable_dataset(num_shards=SHARDS)
    stream = stream.shuffle(seed=data.seed, buffer_size=BUFFER)
    for table in stream.iter(data.batch_size, drop_last_batch=True):
        yield array(data, table)
