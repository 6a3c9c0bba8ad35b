"""The promise about memory for tokens, proved as in test_memory.py: fresh processes, watched."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

from test_memory import MARGIN, MIB, Watched, assert_within, make, run_watched
from token_memory_job import token_at

JOB = str(Path(__file__).with_name("token_memory_job.py"))
FILE_BYTES = 160 * MIB
BLOCK = 1024
ORDERS = ["shuffle", "random", "sequential"]


def write_tokens(path: Path, size_bytes: int) -> None:
    block = 1 << 20
    with open(path, "wb") as file:
        for first in range(0, size_bytes // 2, block):
            file.write(token_at(np.arange(first, first + block)).astype("<u2").tobytes())
        file.flush()
        os.fsync(file.fileno())


@pytest.fixture(scope="module")
def train(folder: Path) -> str:
    path = folder / "train.bin"
    write_tokens(path, FILE_BYTES)
    return str(path)


def watch(*paths: str, **told: Any) -> Watched:
    """Runs one job and samples it and its first file; fails when the job does."""
    told = {
        "job": "train",
        "paths": paths,
        "block": BLOCK,
        "order": "shuffle",
        "epochs": 2,
        "cache": "drop",
        "documents": "cross",
        **told,
    }
    return run_watched(JOB, told, paths[0])


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["keep", "drop"])
@pytest.mark.parametrize("temperature", ["hot", "cold"])
@pytest.mark.parametrize("order", ORDERS)
def test_two_epochs_stay_within_32_mib(
    train: str, order: str, temperature: str, cache: str
) -> None:
    make(train, temperature)
    watched = watch(train, memory="32MiB", order=order, cache=cache)
    assert_within(watched, 32 * MIB)
    if cache == "drop":
        assert watched.cache_growth() <= 32 * MIB + MARGIN


@pytest.mark.slow
@pytest.mark.parametrize("temperature", ["hot", "cold"])
@pytest.mark.parametrize("order", ORDERS)
def test_two_epochs_stay_within_4_mib(train: str, order: str, temperature: str) -> None:
    make(train, temperature)
    watched = watch(train, memory="4MiB", order=order)
    assert_within(watched, 4 * MIB)
    assert watched.cache_growth() <= 4 * MIB + MARGIN


@pytest.mark.parametrize("temperature", ["hot", "cold"])
def test_windows_of_your_own_stay_within_8_mib(train: str, temperature: str) -> None:
    make(train, temperature)
    watched = watch(train, job="cut", memory="8MiB", steps=3000)
    assert_within(watched, 8 * MIB)
    assert watched.cache_growth() <= 8 * MIB + MARGIN


@pytest.mark.parametrize("temperature", ["hot", "cold"])
def test_a_mixture_has_one_budget(train: str, folder: Path, temperature: str) -> None:
    other = folder / "other.bin"
    if not other.exists():
        write_tokens(other, 80 * MIB)
    for path in (train, str(other)):
        make(path, temperature)
    watched = watch(train, str(other), memory="16MiB", epochs=1)
    assert_within(watched, 16 * MIB)
    assert watched.cache_growth() <= 16 * MIB + MARGIN


def test_an_index_of_documents_larger_than_the_budget(folder: Path) -> None:
    """Three million documents: their index has 60 MB, of which 4 MiB may be held."""
    count = 3_000_000
    lengths = np.full(count, 3, "<i4")
    starts = np.arange(count, dtype="<i8") * 6
    header = b"MMIDIDX\x00\x00" + np.array([1], "<u8").tobytes() + b"\x08"
    sizes = np.array([count, count + 1], "<u8").tobytes()
    documents = np.arange(count + 1, dtype="<i8")
    parts = [header, sizes, lengths.tobytes(), starts.tobytes(), documents.tobytes()]
    (folder / "docs.idx").write_bytes(b"".join(parts))
    token_at(np.arange(count * 3)).astype("<u2").tofile(folder / "docs.bin")
    path = str(folder / "docs.bin")
    make(path, "cold")
    watched = watch(path, memory="4MiB", documents="separate", epochs=1)
    assert_within(watched, 4 * MIB)
    assert watched.cache_growth() <= 4 * MIB + MARGIN
