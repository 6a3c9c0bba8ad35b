"""lt.memmap: slices, rows and writes of a map that is trimmed, also in forked children."""

from __future__ import annotations

import os
import time
from typing import Any

import lowtide as lt
import numpy as np
import truth
from actor import Actor
from reader import wait_for

HEADER = 128  # of x.npy


class MapActor(Actor):
    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.data = truth.array(self.place.truth, "x.npy")
        for name in ("x.npy", "written.npy"):
            truth.copy(self.place.truth / "x.npy", self.folder / name)
        self.mapped("x.npy", "r")  # starts the thread that trims, of which a process has one

    def mapped(self, name: str, mode: str) -> Any:
        return lt.memmap(
            self.folder / name,
            "uint32",
            mode,
            HEADER,
            (truth.ROWS, truth.WIDTH),
            memory=self.budget_bytes,
        )

    def cycle(self, rng: np.random.Generator) -> None:
        view = self.mapped("x.npy", "r")
        for step in range(int(rng.integers(50, 200))):
            self.look(view, rng)
            if step % 4 == 0:
                self.write(rng)
            self.pause(view, rng)
        lt.release(view)
        self.look(view, rng)

    def look(self, view: Any, rng: np.random.Generator) -> None:
        first = int(rng.integers(truth.ROWS - 4096))
        self.same(view[first : first + 4096], self.data[first : first + 4096], "a slice of a map")
        rows = rng.integers(0, truth.ROWS, 64)
        self.same(view[rows], self.data[rows], "rows of a map")
        self.counts["batches"] += 1

    def write(self, rng: np.random.Generator) -> None:
        """Written through the map, read with the file."""
        first, rows = int(rng.integers(truth.ROWS - 1024)), rng.integers(0, 2**32, (1024, 64), "u4")
        view = self.mapped("written.npy", "r+")
        view[first : first + 1024] = rows
        view.flush()
        offset = HEADER + first * truth.WIDTH * 4
        found = np.fromfile(self.folder / "written.npy", "u4", rows.size, offset=offset)
        self.same(found.reshape(rows.shape), rows, "what was written through a map")

    def pause(self, view: Any, rng: np.random.Generator) -> None:
        self.watch_memory()
        self.calm()
        for order in self.orders():
            self.faults[order.kind] += 1
            if order.kind == "fork":
                self.fork(view, rng)
            elif order.kind == "exit":
                time.sleep(order.value % 20 / 1000)
                self.leave()

    def fork(self, view: Any, rng: np.random.Generator) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for _ in range(20):
                    self.look(view, rng)
                code = 0
            except BaseException as error:
                os.write(2, f"in a child: {error!r}\n".encode())
            finally:
                os._exit(code)
        for _ in range(20):
            self.look(view, rng)
        self.expect(wait_for(child) == 0, "a forked child that went on with a map failed")
