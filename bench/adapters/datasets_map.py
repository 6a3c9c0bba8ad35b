"""Hugging Face datasets, map-style: an Arrow file, each batch by one list of indices.

https://huggingface.co/docs/datasets/about_mapstyle_vs_iterable
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import datasets
import numpy as np
import pyarrow as pa

from . import Data

NAME = "HF datasets, map-style"
PAGE = "https://huggingface.co/docs/datasets/about_mapstyle_vs_iterable"
ENVIRONMENT = "stores"
PACKAGES = ("datasets", "pyarrow")
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}


def prepare(data: Data) -> None:
    schema = pa.schema([("x", pa.list_(pa.from_numpy_dtype(np.dtype(data.dtype)), data.width))])
    with pa.OSFile(f"{data.folder}/x.arrow", "wb") as file, pa.ipc.new_stream(file, schema) as out:
        for block in data.blocks(1024):
            column = pa.FixedSizeListArray.from_arrays(block.reshape(-1), data.width)
            out.write_batch(pa.record_batch([column], schema))


def batches(data: Data) -> Iterator[Any]:
    stored = datasets.Dataset.from_file(f"{data.folder}/x.arrow").with_format("arrow")
    if data.shuffled:
        for numbers in data.order():
            yield array(data, stored[numbers.tolist()])
    else:
        for table in stored.iter(data.batch_size):
            yield array(data, table)


def array(data: Data, table: Any) -> Any:
    """The samples of an Arrow table."""
    values = table["x"].combine_chunks().flatten().to_numpy().reshape(-1, data.width)
    return values.astype(data.out_dtype, copy=False)
