"""What Lowtide writes opens in the tools that the formats are for.

megatron-core, datatrove and OLMo-core are read by the interpreter that LOWTIDE_READERS names, or by
this one if it has them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest

PYTHON = os.environ.get("LOWTIDE_READERS", sys.executable)
PROGRAM = str(Path(__file__).with_name("foreign_readers.py"))
ABSENT = 77  # the status of a program without its package
EOT = 50256
# One is empty, one has a single token, and one is longer than the writer's buffer of 1 MiB.
LENGTHS = [5, 1, 300, 0, 900_000, 17]


def documents(dtype: str) -> list[Any]:
    """Ends with an EOT each, except for the empty one: that is how the tools mark documents."""
    rng = np.random.default_rng(0)
    found = [rng.integers(0, EOT if dtype != "uint8" else 256, n).astype(dtype) for n in LENGTHS]
    if dtype != "uint8":
        for document in found:
            document[-1:] = EOT
    return found


def write(path: Path, form: str, dtype: str) -> list[Any]:
    made = documents(dtype)
    with lt.TokenWriter(path, format=form, dtype=dtype, memory="1MiB") as w:
        w.extend(made)
    return made


def read(reader: str, package: str, **arguments: Any) -> Any:
    argv = [PYTHON, PROGRAM, reader, json.dumps(arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode == ABSENT:
        pytest.skip(f"no {package} in the interpreter of LOWTIDE_READERS")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def windows(tokens: Any, block: int) -> list[list[int]]:
    count = len(tokens) // block
    rows: list[list[int]] = tokens[: count * block].reshape(count, block).tolist()
    return rows


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64"])
def test_megatron_core_reads_it(tmp_path: Path, dtype: str) -> None:
    made = write(tmp_path / "t.bin", "megatron", dtype)
    found = read("megatron", "megatron-core", prefix=str(tmp_path / "t"))
    assert found["documents"] == [document.tolist() for document in made]
    assert found["dtype"] == [dtype] and found["lengths"] == LENGTHS
    assert found["document_indices"] == list(range(len(LENGTHS) + 1))


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_datatrove_reads_it(tmp_path: Path, dtype: str) -> None:
    # Its positions do not begin anew after an empty document, which its own writer never writes.
    made = [document for document in documents(dtype) if len(document)]
    with lt.TokenWriter(tmp_path / "t.ds", format="datatrove", dtype=dtype, memory="1MiB") as w:
        w.extend(made)
    block = 100
    found = read(
        "datatrove", "datatrove",
        path=str(tmp_path / "t.ds"), block=block - 1, token_size=np.dtype(dtype).itemsize,
    )  # fmt: skip
    stream = np.concatenate(made)
    assert found["windows"] == windows(stream, block)
    ends = np.cumsum([len(document) for document in made])
    for number, positions in enumerate(found["positions"]):
        place = np.arange(number * block, (number + 1) * block)
        starts = np.concatenate([[0], ends])[np.searchsorted(ends, place, side="right")]
        assert positions == (place - np.maximum(starts, number * block)).tolist()


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_olmo_core_reads_it(tmp_path: Path, dtype: str) -> None:
    made = write(tmp_path / "t.npy", "olmo", dtype)
    found = read(
        "olmo", "OLMo-core",
        path=str(tmp_path / "t.npy"), block=128, dtype=dtype, eos=EOT,
    )  # fmt: skip
    assert found["windows"] == windows(np.concatenate(made), 128)
    assert found["ends"] == [int(end) for end, n in zip(np.cumsum(LENGTHS), LENGTHS) if n]


@pytest.mark.parametrize(
    ("dtype", "magic", "version"), [("uint16", 20240520, 1), ("uint32", 20240801, 7)]
)
def test_the_checks_of_llm_c_accept_it(
    tmp_path: Path, dtype: str, magic: int, version: int
) -> None:
    """What llm.c's data loader demands of a shard: a header of 256 int32, then the tokens."""
    made = write(tmp_path / "t.bin", "llmc", dtype)
    with open(tmp_path / "t.bin", "rb") as shard:
        header = np.frombuffer(shard.read(256 * 4), "<i4")
        assert header[0] == magic, "bad magic in the data .bin file"
        assert header[1] == version, "bad version in the data .bin file"
        count = int(header[2])
        assert count > 0
        assert os.fstat(shard.fileno()).st_size == 256 * 4 + count * np.dtype(dtype).itemsize
        tokens = np.frombuffer(shard.read(), np.dtype(dtype).newbyteorder("<"))
    assert len(tokens) == count
    assert np.array_equal(tokens, np.concatenate(made))


def test_nanogpt_reads_it(tmp_path: Path) -> None:
    made = write(tmp_path / "train.bin", "nanogpt", "uint16")
    data = np.memmap(tmp_path / "train.bin", dtype=np.uint16, mode="r")  # as in its train.py
    assert np.array_equal(data, np.concatenate(made))


@pytest.mark.parametrize("mode", [None, "r"])
def test_np_load_reads_every_way_of_writing(tmp_path: Path, mode: Any) -> None:
    data = np.arange(60_000, dtype="<f8").reshape(-1, 6)
    path = tmp_path / "a.npy"
    with lt.create(path, "<f8", data.shape) as w:
        w[:] = data
    assert np.array_equal(np.load(path, mmap_mode=mode), data)
    with lt.create(path, "<f8", data.shape, order="F") as w:
        w[:] = data
    assert np.array_equal(np.load(path, mmap_mode=mode), data)
    with lt.create(path, "<f8") as w:
        for rows in np.array_split(data, 7):
            w.append(rows)
            w.commit()
            assert len(np.load(path, mmap_mode=mode)) == len(w)
    assert np.array_equal(np.load(path, mmap_mode=mode), data)
    with lt.create(path, "<f8", data.shape) as w, w.part(0, 5000).open() as part:
        part[:5000] = data[:5000]
        w[5000:] = data[5000:]
        part.close()
    assert np.array_equal(np.load(path, mmap_mode=mode), data)
    with lt.open(path) as a:
        a.map(lambda rows: rows.astype("f4"), tmp_path / "b.npy", rows=999)
    assert np.array_equal(np.load(tmp_path / "b.npy", mmap_mode=mode), data.astype("f4"))
