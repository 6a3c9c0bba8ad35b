"""Windows of token files, in shuffled and other orders, and windows at starts of our own."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import lowtide as lt
import numpy as np
import truth
from reader import Reader

BLOCKS = (64, 256, 1000)


class TokenActor(Reader):
    names = ("tokens_0.bin", "tokens_1.bin", "tokens_2.bin")

    def load(self) -> None:
        self.data = truth.tokens(self.place.truth)

    def open(self, stack: contextlib.ExitStack, rng: np.random.Generator) -> Any:
        self.block = int(rng.choice(BLOCKS))
        paths = [self.path(name) for name in self.names]
        tokens = stack.enter_context(lt.tokens(paths, dtype="uint16", **self.options(rng)))
        self.check_windows(tokens, rng)
        order = str(rng.choice(["shuffle", "shuffle", "sequential", "random"]))
        self.stride = 1 if order == "random" else self.block
        return stack.enter_context(
            lt.Loader(
                tokens,
                int(rng.integers(4, 96)),
                self.block,
                order=order,
                seed=int(rng.integers(1000)),
            )
        )

    def check_windows(self, tokens: Any, rng: np.random.Generator) -> None:
        starts = rng.integers(0, len(self.data) - self.block - 1, 32)
        self.compare(*tokens.windows(starts, self.block), starts, "windows")
        self.read = functools.partial(tokens.windows, starts, self.block)

    def compare(self, x: Any, y: Any, starts: np.ndarray, what: str) -> None:
        places = np.asarray(starts)[:, None] + np.arange(self.block)
        self.same(x, self.data[places].astype(np.int64), f"x of {what}")
        self.same(y, self.data[places + 1].astype(np.int64), f"y of {what}")

    def check(self, batch: Any) -> None:
        self.compare(*batch, batch.index * self.stride, f"step {batch.step} of {batch.epoch}")
