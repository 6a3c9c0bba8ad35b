"""Sparse rows, as stored and as dense ones."""

from __future__ import annotations

import contextlib
from typing import Any

import lowtide as lt
import numpy as np
import truth
from reader import Reader


class SparseActor(Reader):
    names = ("data.npy", "indices.npy", "indptr.npy")

    def load(self) -> None:
        self.parts = [truth.array(self.place.truth, name) for name in self.names]

    def open(self, stack: contextlib.ExitStack, rng: np.random.Generator) -> Any:
        options = self.options(rng)
        arrays = [stack.enter_context(lt.open(self.path(name), **options)) for name in self.names]
        matrix = lt.csr(*arrays, shape=(truth.CELLS, truth.GENES))
        dense = bool(rng.integers(2))
        batch_size, seed = int(rng.integers(8, 64)), int(rng.integers(1000))
        return stack.enter_context(lt.Loader(matrix, batch_size, seed=seed, dense=dense))

    def check(self, batch: Any) -> None:
        data, indices, indptr = self.parts
        spans = [slice(indptr[row], indptr[row + 1]) for row in batch.index]
        what = f"step {batch.step} of {batch.epoch}"
        if len(batch) == 1:
            rows = np.zeros((len(spans), truth.GENES), "f4")
            for row, span in zip(rows, spans):
                np.add.at(row, indices[span], data[span])
            return self.same(batch[0], rows, f"dense rows of {what}")
        found, places, offsets = batch
        lengths = [span.stop - span.start for span in spans]
        self.same(np.asarray(offsets), np.cumsum([0, *lengths]), f"indptr of {what}")
        self.same(found, np.concatenate([data[span] for span in spans]), f"data of {what}")
        self.same(places, np.concatenate([indices[span] for span in spans]), f"indices of {what}")
        return None
