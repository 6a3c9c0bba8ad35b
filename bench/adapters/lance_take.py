"""Lance: a fixed-size list column; each batch by one `take`, or the scanner in file order.

https://lance.org/guide/read_and_write/#random-read
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from . import Data

NAME = "Lance"
PAGE = "https://lance.org/guide/read_and_write/#random-read"
ENVIRONMENT = "stores"
PACKAGES = ("pylance", "pyarrow")
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}


def prepare(data: Data) -> None:
    kind = pa.list_(pa.from_numpy_dtype(np.dtype(data.dtype)), data.width)
    schema = pa.schema([("x", kind)])

    def blocks() -> Iterator[pa.RecordBatch]:
        for block in data.blocks():
            column = pa.FixedSizeListArray.from_arrays(block.reshape(-1), data.width)
            yield pa.record_batch([column], schema)

    lance.write_dataset(blocks(), f"{data.folder}/x.lance", schema)


def batches(data: Data) -> Iterator[Any]:
    stored = lance.dataset(f"{data.folder}/x.lance")
    if data.shuffled:
        for numbers in data.order():
            yield _array(data, stored.take(numbers.tolist())["x"].combine_chunks())
    else:
        for batch in stored.to_batches(batch_size=data.batch_size):
            yield _array(data, batch["x"])


def _array(data: Data, column: Any) -> Any:
    values = column.flatten().to_numpy().reshape(-1, data.width)
    return values.astype(data.out_dtype, copy=False)
