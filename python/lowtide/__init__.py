"""Reads and writes arrays bigger than memory, and reads token files, with flat memory use.

```python
import lowtide as lt

a = lt.open("m.npy", memory="256MiB")
for idx, rows in a.batches(4096, order="shuffle", seed=0):
    ...

t = lt.tokens("train.bin")
loader = lt.Loader(t, batch_size=12, block_size=1024, seed=1337)
x, y = loader.next()

loader = lt.Loader((lt.open("features.npy"), lt.open("labels.npy")), batch_size=256)
xb, yb = loader.next()

with lt.create("out.npy", dtype="float32", shape=(3_000_000, 162), memory="64MiB") as w:
    w[0:4096] = rows

m = lt.memmap("m.f32", dtype="float32", mode="r", shape=(3_000_000, 162), memory="256MiB")
```
"""

from __future__ import annotations

from typing import Any

from lowtide import _core
from lowtide._core import FormatError
from lowtide._data.array import Array
from lowtide._data.batches import Batches
from lowtide._data.csr import Csr, csr
from lowtide._data.documents import Documents
from lowtide._data.open import open
from lowtide._data.ragged import Ragged, ragged
from lowtide._data.tokens import Tokens, tokens
from lowtide._inspect import check, doctor, info
from lowtide._job.run import convert, merge, shuffle
from lowtide._loader.batch import Batch
from lowtide._loader.loader import Loader, When
from lowtide._map.memmap import memmap
from lowtide._map.release import release
from lowtide._profile import Profile, Verdict, profile
from lowtide._writer.create import create
from lowtide._writer.part import Part
from lowtide._writer.token_writer import TokenWriter
from lowtide._writer.writer import Writer

__version__ = _core.version()
FormatError.__module__ = "lowtide"

__all__ = [
    "Array",
    "Batch",
    "Batches",
    "Csr",
    "Documents",
    "FormatError",
    "Loader",
    "Part",
    "Profile",
    "Ragged",
    "TokenWriter",
    "Tokens",
    "Verdict",
    "When",
    "Writer",
    "__version__",
    "check",
    "convert",
    "create",
    "csr",
    "doctor",
    "info",
    "memmap",
    "merge",
    "open",
    "profile",
    "ragged",
    "release",
    "shuffle",
    "tokens",
]


_MODULES = ("jobs", "ray", "torch")


def __getattr__(name: str) -> Any:
    """Loads these modules on first use, so that importing lowtide does not import torch or ray."""
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"lowtide.{name}")
    raise AttributeError(f"module 'lowtide' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted([*__all__, *_MODULES])
