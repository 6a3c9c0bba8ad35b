"""Rows of an object on a server that is late, fails, cuts answers and stands still."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import lowtide as lt
import numpy as np
import truth
from reader import Reader

FAULTS = "late=2/fail=0.02/cut=0.02/stall=0.0005"
KEPT = "8MiB"


class RemoteActor(Reader):
    names = ("x.npy",)
    ignored = ("kept",)  # copies of blocks, which outlive cycles on purpose

    def load(self) -> None:
        self.data = truth.array(self.place.truth, "x.npy")
        self.url = os.environ["LOWTIDE_SOAK_URL"]

    def open(self, stack: contextlib.ExitStack, rng: np.random.Generator) -> Any:
        address = f"{self.url}/{FAULTS}/{self.place.name}/x.npy"
        more: dict[str, Any] = {}
        if rng.integers(2):
            more = {"cache_dir": self.folder / "kept", "cache_bytes": KEPT}
        array = stack.enter_context(lt.open(address, memory=self.budget_bytes, **more))
        batch_size, seed = int(rng.integers(64, 1024)), int(rng.integers(1000))
        order = str(rng.choice(["shuffle", "sequential"]))
        return stack.enter_context(lt.Loader(array, batch_size, seed=seed, order=order))

    def cycle(self, rng: np.random.Generator) -> None:
        """A server that stands still for half a minute is an error, and no failure."""
        try:
            super().cycle(rng)
        except TimeoutError as error:
            self.expect(self.named(error), f"a timeout that names no object: {error}")
            self.counts["timeouts"] += 1

    def check(self, batch: Any) -> None:
        (found,) = batch
        self.same(found, self.data[batch.index], f"x.npy, step {batch.step} of {batch.epoch}")

    def replace(self, value: int, loader: Any) -> None:
        """The server knows versions by size: another one of the same size would be no other."""
        self.truncate(value, loader)
