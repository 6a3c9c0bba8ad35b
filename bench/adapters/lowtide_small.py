"""lowtide with memory="64MiB": a Loader if shuffled, iter_chunks in file order.

https://lowtide.github.io/lowtide/arrays/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import Data, lowtide_loader

NAME = "lowtide, 64MiB"
PAGE = "https://lowtide.github.io/lowtide/arrays/"
ENVIRONMENT = "own"
PACKAGES = ("lowtide",)
SCENARIOS = {"rows": "", "tokens": "", "scan": ""}
OURS = True


def batches(data: Data) -> Iterator[Any]:
    if data.shuffled:
        yield from lowtide_loader.batches(data, "64MiB")
    else:
        with lowtide_loader.source(data, "64MiB") as opened:
            yield from opened.iter_chunks(data.batch_size)
