"""Peers of Lowtide, one file each: how `./dev bench --peers` reads the same samples with them.

An adapter uses its peer in the way that the peer's own documentation calls fastest. It has at most
60 lines and these names:

    NAME          the peer and its form, as the tables show it
    PAGE          the page of its documentation that says how to use it
    ENVIRONMENT   where it is installed: a key of peers_setup.ENVIRONMENTS, or "own"
    PACKAGES      distributions whose versions belong to the result
    SCENARIOS     scenario -> what its order promises; "" if it reads the samples in the given order

    prepare(data)        writes its form into data.folder; a peer that reads the raw file has none
    batches(data)        an iterator over the batches of one epoch, of data.batch_size samples
    save(data, steps)    the state after so many steps, as JSON; then `batches` starts at data.state

A batch is an array or tensor of shape (batch_size, width): float32 rows, or int64 windows of 1024
tokens or one more. An adapter imports its peer inside of these functions or at its top; `startup`
times both. What `batches` does before it returns is timed, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

COLUMNS = 162
BLOCK = 1024


@dataclass
class Data:
    """Samples in one raw file, and how to read them.

    "rows" are rows of 162 float32. "tokens" are windows of 1025 uint16 that start every 1024
    tokens, so that each has its targets.
    """

    kind: str  # "rows" | "tokens"
    path: str
    folder: str  # of the form that `prepare` writes
    samples: int
    batch_size: int
    shuffled: bool = True
    seed: int = 0
    cache: str = "auto"  # Lowtide's option: "drop" if the file is cold
    state: Any = None

    @property
    def dtype(self) -> str:
        return "float32" if self.kind == "rows" else "uint16"

    @property
    def out_dtype(self) -> str:
        """The type in which a batch is delivered."""
        return "float32" if self.kind == "rows" else "int64"

    @property
    def width(self) -> int:
        """Elements per sample."""
        return COLUMNS if self.kind == "rows" else BLOCK + 1

    @property
    def stride(self) -> int:
        """Elements from one sample to the next."""
        return COLUMNS if self.kind == "rows" else BLOCK

    @property
    def elements(self) -> int:
        """Elements in the file."""
        return (self.samples - 1) * self.stride + self.width

    def view(self) -> Any:
        """A map of the raw file, of shape (samples, width)."""
        import numpy as np

        flat = np.memmap(self.path, dtype=self.dtype, mode="r", shape=(self.elements,))
        steps = (self.stride * flat.itemsize, flat.itemsize)
        return np.ndarray((self.samples, self.width), flat.dtype, flat, 0, steps)

    def blocks(self, samples: int = 8192) -> Iterator[Any]:
        """All samples in file order, as contiguous arrays: what `prepare` writes."""
        import numpy as np

        view = self.view()
        for first in range(0, self.samples, samples):
            yield np.ascontiguousarray(view[first : first + samples])

    def order(self) -> Iterator[Any]:
        """The numbers of the samples of each batch: one permutation, or file order."""
        import numpy as np

        if self.shuffled:
            numbers = np.random.default_rng(self.seed).permutation(self.samples)
        else:
            numbers = np.arange(self.samples)
        size = self.batch_size
        for first in range(0, self.samples - size + 1, size):
            yield numbers[first : first + size]
