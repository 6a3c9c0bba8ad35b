"""The samples of `./dev bench --peers`, the forms that its peers keep them in, and its adapters."""

from __future__ import annotations

import ast
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matrix
import numpy as np
import scratch

ADAPTERS = Path(__file__).parents[1] / "adapters"
sys.path.insert(0, str(ADAPTERS.parent))

import adapters  # noqa: E402

_BLOCK_TOKENS = 1 << 22


@dataclass(frozen=True)
class Adapter:
    """What a file of bench/adapters says, read without importing its peer."""

    key: str
    name: str
    page: str
    environment: str
    packages: tuple[str, ...]
    scenarios: dict[str, str]
    form: str  # the adapter that prepares what this one reads; "": it reads the raw file
    ours: bool
    written_s: float  # when the file was changed

    @classmethod
    def read(cls, path: Path) -> Adapter:
        told: dict[str, Any] = {"OURS": False}
        functions = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                functions.add(node.name)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                try:
                    told[node.targets[0].id] = ast.literal_eval(node.value)
                except ValueError:
                    continue
        form = path.stem if "prepare" in functions else told.get("FORM", "")
        return cls(
            path.stem, told["NAME"], told["PAGE"], told["ENVIRONMENT"], tuple(told["PACKAGES"]),
            told["SCENARIOS"], form, told["OURS"], path.stat().st_mtime,
        )  # fmt: skip


def all_adapters() -> list[Adapter]:
    """Ours first, then the others by name."""
    paths = sorted(path for path in ADAPTERS.glob("*.py") if path.stem != "__init__")
    return sorted(map(Adapter.read, paths), key=lambda one: not one.ours)


def write_tokens(path: str, count: int) -> None:
    """Writes uint16 tokens: two of four tell their place, the others are noise."""
    noise = np.random.default_rng(0).integers(0, 1 << 16, (_BLOCK_TOKENS, 4), np.uint16)
    with open(path, "wb") as file:
        for first in range(0, (count + 3) // 4, _BLOCK_TOKENS):
            place = np.arange(first, first + _BLOCK_TOKENS)
            noise[:, 0], noise[:, 1] = place & 0xFFFF, place >> 16
            left = count - first * 4
            file.write(noise.reshape(-1)[:left].data)
        file.flush()
        os.fsync(file.fileno())


class Source:
    """Samples in a raw file, and a folder of forms beside it."""

    def __init__(self, kind: str, samples: int, path: str) -> None:
        self.kind, self.samples, self.path = kind, samples, path

    def data(self, adapter: Adapter, batch_size: int, **more: Any) -> dict[str, Any]:
        """The arguments of adapters.Data."""
        return {
            "kind": self.kind, "path": self.path, "folder": self.folder(adapter),
            "samples": self.samples, "batch_size": batch_size, **more,
        }  # fmt: skip

    def folder(self, adapter: Adapter) -> str:
        return f"{self.path}.forms/{adapter.form}" if adapter.form else ""

    def files(self, adapter: Adapter) -> list[str]:
        """The files that an adapter reads."""
        if not adapter.form:
            return [self.path]
        found = [path for path in Path(self.folder(adapter)).rglob("*") if path.is_file()]
        return sorted(str(path) for path in found if path.stat().st_size)


@contextmanager
def source(kind: str, samples: int, folder: str | None, keep: bool) -> Iterator[Source]:
    """Provides the samples until the `with` block ends; removes them and their forms then."""
    count = adapters.Data(kind, "", "", samples, 1).elements
    if kind == "rows":
        file = matrix.kept_or_removed(folder, samples, keep)
    else:
        file = scratch.kept_or_removed(
            folder, f"tokens-{samples}.u16", count * 2, lambda path: write_tokens(path, count), keep
        )
    with file as path:
        try:
            yield Source(kind, samples, path)
        finally:
            if not keep:
                shutil.rmtree(f"{path}.forms", ignore_errors=True)
