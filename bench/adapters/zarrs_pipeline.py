"""zarr with the codec pipeline of zarrs, which reads and decodes chunks in Rust.

https://zarrs-python.readthedocs.io/en/latest/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import zarr
import zarrs  # noqa: F401

from . import Data, zarr_array

NAME = "zarr + zarrs, sharded"
PAGE = "https://zarrs-python.readthedocs.io/en/latest/"
ENVIRONMENT = "stores"
PACKAGES = ("zarrs", "zarr")
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "startup": ""}
FORM = "zarr_array"


def batches(data: Data) -> Iterator[Any]:
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    return zarr_array.batches(data)
