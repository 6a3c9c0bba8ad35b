"""The data of a run, as NumPy wrote it. Actors read copies; these files are never touched again."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

TOKENS = 2_000_000  # in each of three shards
ROWS, WIDTH = 65_536, 64
CELLS, GENES = 40_000, 2_000


def write_truth(folder: Path, seed: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(seed)
    for shard in range(3):
        tokens = rng.integers(8, 50257, TOKENS + 1000 * shard).astype("<u2")
        tokens.tofile(folder / f"tokens_{shard}.bin")
    x = rng.integers(0, 2**32, (ROWS, WIDTH), np.uint32)
    x[:, 0] = np.arange(ROWS)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", rng.integers(0, 2**62, ROWS))
    write_ragged(folder, rng)
    write_sparse(folder, rng)


def write_ragged(folder: Path, rng: np.random.Generator) -> None:
    lengths = rng.integers(0, 200, 30_000)
    lengths[rng.random(len(lengths)) < 0.05] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    np.save(folder / "values.npy", rng.integers(0, 2**31, offsets[-1], np.int32))
    np.save(folder / "offsets.npy", offsets)


def write_sparse(folder: Path, rng: np.random.Generator) -> None:
    lengths = rng.integers(0, 120, CELLS)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    np.save(folder / "data.npy", rng.integers(1, 100, indptr[-1]).astype("f4"))
    np.save(folder / "indices.npy", rng.integers(0, GENES, indptr[-1]).astype("i4"))
    np.save(folder / "indptr.npy", indptr)


def array(folder: Path, name: str) -> np.ndarray:
    """What a .npy of the truth contains, mapped: it counts as file pages, not as ours."""
    return np.load(folder / name, mmap_mode="r")


def tokens(folder: Path) -> np.ndarray:
    """All shards as one stream."""
    shards = [np.fromfile(folder / f"tokens_{shard}.bin", "<u2") for shard in range(3)]
    return np.concatenate(shards)


def copy(truth: Path, own: Path) -> None:
    """Puts a whole file in its place at one moment, whatever was there."""
    hidden = own.with_name(f"{own.name}.copy")
    shutil.copyfile(truth, hidden)
    hidden.replace(own)


def altered(truth: Path, own: Path) -> None:
    """Puts another file of the same size in its place: the same header, all other bytes flipped."""
    data = np.fromfile(truth, np.uint8)
    data[128 if truth.suffix == ".npy" else 0 :] ^= 0xFF
    hidden = own.with_name(f"{own.name}.other")
    data.tofile(hidden)
    hidden.replace(own)
