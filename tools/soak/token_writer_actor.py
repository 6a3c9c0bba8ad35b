"""lt.TokenWriter: files of tokens with and without an index."""

from __future__ import annotations

import os

import lowtide as lt
import numpy as np
from writer import Writer

DOCUMENTS = 400


def content(version: int) -> list[np.ndarray]:
    """The first two tokens are the version."""
    rng = np.random.default_rng(version)
    documents = [
        rng.integers(8, 50257, int(rng.integers(1, 4000))).astype("<u2") for _ in range(DOCUMENTS)
    ]
    documents[0] = np.array([version & 0xFFFF, version >> 16], "<u2")
    return documents


class TokenWriterActor(Writer):
    budget_bytes = 2 << 20
    ignored = ("nanogpt.bin", "megatron.bin", "megatron.idx")

    def write(self, version: int, rng: np.random.Generator) -> None:
        self.format = str(rng.choice(["nanogpt", "megatron"]))
        path = self.folder / f"{self.format}.bin"
        with lt.TokenWriter(path, self.format, "uint16", memory=self.budget_bytes) as writer:
            for number, document in enumerate(content(version)):
                writer.append(document)
                if number % 8 == 0:
                    self.pause(writer)

    def check(self, version: int | None) -> None:
        found = {}
        for name in ("nanogpt", "megatron"):
            path = self.folder / f"{name}.bin"
            whole = path if name == "nanogpt" else path.with_suffix(".idx")  # renamed last
            if whole.exists():
                found[name] = self.check_file(name, path)
        self.expect_kept(set(found))
        if version is not None:
            self.expect(found.get(self.format) == version, f"{self.format}.bin: an old version")
            left = set(os.listdir(self.folder)) - set(self.ignored)
            left = {name for name in left if self.format in name}
            self.expect(not left, f"left beside a published file: {sorted(left)}")

    def check_file(self, name: str, path: os.PathLike[str]) -> int:
        """Returns its version."""
        stored = np.fromfile(path, "<u2")
        version = int(stored[0]) | int(stored[1]) << 16
        documents = content(version)
        self.same(stored, np.concatenate(documents), f"{name}.bin")
        with lt.tokens(path, dtype="uint16", memory=self.budget_bytes) as tokens:
            self.expect(len(tokens) == len(stored), f"{name}.bin: {len(tokens)} tokens")
            if name == "megatron":
                for number in (0, 1, DOCUMENTS // 2, DOCUMENTS - 1):
                    found = tokens.documents[number]
                    self.same(found, documents[number], f"document {number}")
        return version
