"""lt.shuffle: an array rewritten in shuffled order, again and again by the same call."""

from __future__ import annotations

import os
from typing import Any

import lowtide as lt
import numpy as np
import truth
from writer import Writer

SEED = 5  # one call: what a killed one left, the next one uses or removes


class ShuffleActor(Writer):
    ignored = ("x.npy",)

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / "x.npy").exists():  # a new copy would be another source, another job
            truth.copy(self.place.truth / "x.npy", self.folder / "x.npy")
        self.data = truth.array(self.place.truth, "x.npy")
        super().prepare()

    def write(self, version: int, rng: np.random.Generator) -> None:
        lt.shuffle(
            self.folder / "x.npy",
            self.folder / "out.npy",
            seed=SEED,
            memory=self.budget_bytes,
            progress=self.on_progress,
        )

    def on_progress(self, *_: Any) -> None:
        self.pause(None)

    def check(self, version: int | None) -> None:
        path = self.folder / "out.npy"
        if version is None and not path.exists():
            return
        found = np.load(path, mmap_mode="r")
        rows = np.asarray(found[:, 0]).astype(np.int64)
        self.same(np.sort(rows), np.arange(truth.ROWS), "the rows of out.npy")
        for first in range(0, len(rows), 4096):
            part = slice(first, first + 4096)
            self.same(found[part], self.data[rows[part]], f"out.npy from row {first}")
        path.unlink()
        if version is not None:
            left = sorted(name for name in os.listdir(self.folder) if name != "x.npy")
            self.expect(left == [], f"left beside the result of a job: {left}")
