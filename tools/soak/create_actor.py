"""lt.create: arrays written by slices, scattered rows and appends."""

from __future__ import annotations

import os

import lowtide as lt
import numpy as np
from writer import Writer

ROWS, WIDTH, MORE = 24_000, 40, 6_000
BLOCK = 500


def content(version: int) -> np.ndarray:
    """ROWS rows, and those that an append may add."""
    rows = np.random.default_rng(version).integers(0, 2**32, (ROWS + MORE, WIDTH), np.uint32)
    rows[0, 0] = version
    return rows


class CreateActor(Writer):
    budget_bytes = 2 << 20
    ignored = ("out.npy",)

    def write(self, version: int, rng: np.random.Generator) -> None:
        rows, path = content(version), self.folder / "out.npy"
        how = str(rng.choice(["slices", "scattered", "append", "later"]))
        length = None if how in ("append", "later") else ROWS
        with self.opened(path, length) as writer:
            self.fill(writer, rows[:ROWS], how, rng)
        if how == "later":
            with self.opened(path, None, append=True) as writer:
                self.fill(writer, rows[ROWS:], how, rng)

    def opened(self, path: os.PathLike[str], length: int | None, append: bool = False) -> lt.Writer:
        shape = (length, WIDTH)
        return lt.create(path, "uint32", shape, memory=self.budget_bytes, append=append)

    def fill(self, writer: lt.Writer, rows: np.ndarray, how: str, rng: np.random.Generator) -> None:
        order = rng.permutation(len(rows))
        for first in range(0, len(rows), BLOCK):
            block = slice(first, first + BLOCK)
            if how == "slices":
                writer[block] = rows[block]
            elif how == "scattered":
                writer[order[block]] = rows[order[block]]
            else:
                writer.append(rows[block])
            self.pause(writer)

    def check(self, version: int | None) -> None:
        path = self.folder / "out.npy"
        self.expect_kept({"out.npy"} if path.exists() else set())
        if version is None and not path.exists():
            return
        found = np.load(path)
        if version is not None:
            self.expect(int(found[0, 0]) == version, "out.npy is not the version just written")
        self.expect(len(found) >= ROWS, f"out.npy has {len(found)} rows; {ROWS} were published")
        self.same(found, content(int(found[0, 0]))[: len(found)], "out.npy")
        if version is not None:
            left = sorted(name for name in os.listdir(self.folder) if name != "out.npy")
            self.expect(left == [], f"left beside a published file: {left}")
