"""Two arrays whose rows come together; and rows by index, slice and batch."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import lowtide as lt
import numpy as np
import truth
from reader import Reader


class ColumnActor(Reader):
    names = ("x.npy", "y.npy")

    def load(self) -> None:
        self.data = [truth.array(self.place.truth, name) for name in self.names]

    def open(self, stack: contextlib.ExitStack, rng: np.random.Generator) -> Any:
        options = self.options(rng)
        x, y = (stack.enter_context(lt.open(self.path(name), **options)) for name in self.names)
        self.check_rows(x, rng)
        kind = int(rng.integers(4))
        more: dict[str, Any] = {}
        if kind == 1:
            more["rows"] = rng.integers(0, len(x), 30_000)
        elif kind == 2:
            more["weights"] = rng.random(len(x))
        source = {"x": x, "y": y} if kind == 3 else (x, y)
        batch_size, seed = int(rng.integers(16, 1024)), int(rng.integers(1000))
        return stack.enter_context(lt.Loader(source, batch_size, seed=seed, **more))

    def check_rows(self, x: Any, rng: np.random.Generator) -> None:
        rows = rng.integers(0, len(x), 200)
        self.same(x.take(rows), self.data[0][rows], "x.take")
        self.read = functools.partial(x.take, rows)
        first = int(rng.integers(len(x) - 100))
        self.same(x[first : first + 100 : 3], self.data[0][first : first + 100 : 3], "a slice of x")
        with x.batches(512, seed=first) as batches:
            for _, (index, found) in zip(range(10), batches):
                self.same(found, self.data[0][index], "x.batches")

    def check(self, batch: Any) -> None:
        for name, found, data in zip(self.names, batch, self.data):
            self.same(found, data[batch.index], f"{name}, step {batch.step} of {batch.epoch}")
