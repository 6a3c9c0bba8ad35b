"""lowtide.Loader, memory="256MiB".

https://lowtide.github.io/lowtide/arrays/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lowtide

from . import BLOCK, Data

NAME = "lowtide, 256MiB"
PAGE = "https://lowtide.github.io/lowtide/arrays/"
ENVIRONMENT = "own"
PACKAGES = ("lowtide",)
SCENARIOS = {"rows": "", "tokens": "", "scan": "", "resume": "", "startup": ""}
OURS = True
MEMORY = "256MiB"


def source(data: Data, memory: str) -> Any:
    told = {"memory": memory, "cache": data.cache, "dtype": data.dtype}
    if data.kind == "tokens":
        return lowtide.tokens(data.path, **told)
    return lowtide.open(data.path, shape=(data.samples, data.width), **told)


def loader(data: Data, opened: Any) -> lowtide.Loader:
    more = {"block_size": BLOCK} if data.kind == "tokens" else {}
    order = "shuffle" if data.shuffled else "sequential"
    return lowtide.Loader(opened, data.batch_size, order=order, seed=data.seed, epochs=1, **more)


def batches(data: Data, memory: str = MEMORY) -> Iterator[Any]:
    with source(data, memory) as opened, loader(data, opened) as made:
        if data.state is not None:
            made.load_state_dict(data.state)
        for batch in made:
            yield batch[0]


def save(data: Data, steps: int) -> Any:
    with source(data, MEMORY) as opened, loader(data, opened) as made:
        for _ in range(steps):
            made.next()
        return made.state_dict()
