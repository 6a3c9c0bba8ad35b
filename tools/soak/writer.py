"""An actor that writes files, and is interrupted, forked and killed while it does."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from typing import Any

import numpy as np
from actor import Actor
from reader import wait_for


class Writer(Actor):
    """Subclasses write one version of their file in `write`, and check what is there in `check`.

    A version is a number that decides the whole content, and that the content begins with.
    """

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.check(None)  # what a life before left: an old version or a whole new one

    def write(self, version: int, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def check(self, version: int | None) -> None:
        """None: any version, or nothing."""
        raise NotImplementedError

    known: frozenset[str] | set[str] = frozenset()  # what this life has seen whole

    def expect_kept(self, names: set[str]) -> None:
        """Call this with what is whole now: an old file goes only when a new one comes."""
        lost = self.known - names
        self.expect(not lost, f"lost, though no new version was published: {sorted(lost)}")
        self.known = names

    def cycle(self, rng: np.random.Generator) -> None:
        version = int(rng.integers(1, 2**31))
        try:
            self.waiting = True
            self.write(version, rng)
            self.waiting = False
        except KeyboardInterrupt:
            self.check(None)
        else:
            self.check(version)
            self.counts["batches"] += 1
        finally:
            self.waiting = False

    def pause(self, writer: Any) -> None:
        """Between two writes: obeys orders."""
        waiting, self.waiting = self.waiting, False
        self.watch_memory()
        self.calm()
        for order in self.orders():
            self.faults[order.kind] += 1
            if order.kind == "fork":
                self.fork(writer)
            elif order.kind == "exit":
                self.exit(order.value, writer)
        self.waiting = waiting

    def fork(self, writer: Any) -> None:
        """A child that loses its copy of the writer neither publishes nor removes anything."""
        child = os.fork()
        if child == 0:
            try:
                with contextlib.suppress(Exception):
                    writer.close()
                del writer
                gc.collect()
            finally:
                os._exit(0)
        self.expect(wait_for(child) == 0, "a forked child could not drop its copy of a writer")

    def exit(self, value: int, writer: Any) -> None:
        """Ends the interpreter in mid-write; if odd, the writer is still referred to."""
        if value % 2:
            globals()["_kept"] = writer
        time.sleep(value % 20 / 1000)
        self.leave()
