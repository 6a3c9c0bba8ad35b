"""Samples of different lengths."""

from __future__ import annotations

import contextlib
from typing import Any

import lowtide as lt
import numpy as np
import truth
from reader import Reader


class RaggedActor(Reader):
    names = ("values.npy", "offsets.npy")

    def load(self) -> None:
        self.values, self.offsets = (truth.array(self.place.truth, name) for name in self.names)

    def open(self, stack: contextlib.ExitStack, rng: np.random.Generator) -> Any:
        options = self.options(rng)
        values, offsets = (
            stack.enter_context(lt.open(self.path(name), **options)) for name in self.names
        )
        ragged = lt.ragged(values, offsets)
        row = int(rng.integers(len(ragged)))
        self.same(ragged[row], self.sample(row), f"sample {row}")
        batch_size, seed = int(rng.integers(8, 256)), int(rng.integers(1000))
        return stack.enter_context(lt.Loader(ragged, batch_size, seed=seed))

    def sample(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def check(self, batch: Any) -> None:
        values, offsets = batch
        samples = [self.sample(row) for row in batch.index]
        lengths = [len(sample) for sample in samples]
        what = f"step {batch.step} of {batch.epoch}"
        self.same(offsets, np.cumsum([0, *lengths]), f"offsets of {what}")
        self.same(values, np.concatenate(samples), f"values of {what}")
