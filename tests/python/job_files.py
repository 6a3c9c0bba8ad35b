"""Data for the tests of jobs, and what NumPy makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest


def permutation(folder: Path, count: int, seed: int) -> np.ndarray:
    """The order in which `batches` delivers `count` rows."""
    path = folder / f".order-{count}.npy"
    np.save(path, np.zeros((count, 1), "u1"))
    with lt.open(path) as a:
        order = np.concatenate([idx for idx, _ in a.batches(max(1, count // 7), seed=seed)])
    path.unlink()
    assert sorted(order.tolist()) == list(range(count))
    return order


def matrix_file(path: Path, rows: int = 5000, columns: int = 37) -> np.ndarray:
    data = np.arange(rows * columns, dtype="<i4").reshape(rows, columns)
    np.save(path, data)
    return data


def some_documents(count: int = 300, dtype: str = "u2") -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.integers(0, 50257, rng.integers(1, 200)).astype(dtype) for _ in range(count)]


def write_documents(path: Path, form: str, documents: list[np.ndarray]) -> Path:
    with lt.TokenWriter(path, form, "uint16") as w:
        w.extend(documents)
    return path


def require_notes(folder: Path) -> None:
    """Skips a test where a file system cannot keep what tells a job that a result is its own."""
    path = folder / ".note"
    path.touch()
    try:
        os.setxattr(path, "user.lowtide", b"x")
    except OSError:
        pytest.skip("no extended attributes here")
    finally:
        path.unlink()


def entries(folder: Path) -> list[str]:
    """Everything below a folder, hidden or not."""
    found = []
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            found.append(os.path.relpath(os.path.join(where, name), folder))
    return sorted(found)


def run_by_hand(plan: lt.jobs.Plan, seed: int = 0) -> None:
    """Every task once, in any order within its stage."""
    rng = np.random.default_rng(seed)
    for stage in plan.stages:
        for number in rng.permutation(len(stage)):
            stage[number].run()
