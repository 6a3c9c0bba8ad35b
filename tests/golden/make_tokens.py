"""Write the token files of tests/golden/tokens with the tools that own the formats.

Usage: python make_tokens.py FOLDER

Run with Python 3.11, numpy 2.4.6, torch 2.13.0 and megatron-core 0.16.1 from PyPI (the last without
its dependencies, but for packaging and pyyaml). nanoGPT and OLMo write with NumPy alone, in the
very calls used here. llm.c has no package: its data files are written by a script of its own, so
the header is laid out here by its description, 256 int32 of which three are used.

expected.txt has one line for each way to open a file, fields separated by tabs: name, format, dtype
to give ("-": none), dtype, number of tokens, checksum, offsets of the documents in tokens ("-": the
format has none). But for llm.c the tokens are read back with the same tools, not taken from what
was written. The checksum is the sum of (i + 1) * token i, modulo 2**64.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

Tokens = np.ndarray[Any, Any]

DOCUMENTS = [5, 1, 12, 0, 30]  # lengths in tokens


def made_tokens(count: int, below: int, seed: int) -> Tokens:
    return np.random.default_rng(seed).integers(0, below, count)


def line(name: str, form: str, given: str, tokens: Tokens, offsets: list[int] | None) -> str:
    places = np.arange(1, tokens.size + 1, dtype=object)
    checksum = int((places * tokens.astype(object)).sum()) % 2**64
    documents = "-" if offsets is None else ",".join(map(str, offsets))
    cells = [name, form, given, repr(tokens.dtype.str), tokens.size, checksum, documents]
    return "\t".join(map(str, cells)) + "\n"


def write_nanogpt(folder: Path) -> list[str]:
    """As nanoGPT's prepare.py: NumPy's tofile, read back with np.memmap as in train.py."""
    lines = []
    for name, dtype, below, given in [
        ("nanogpt_uint16.bin", "uint16", 50257, "-"),
        ("nanogpt_uint32.bin", "uint32", 128256, "uint32"),
    ]:
        made_tokens(100, below, seed=1).astype(dtype).tofile(folder / name)
        tokens = np.memmap(folder / name, dtype=dtype, mode="r")
        lines.append(line(name, "nanogpt", given, tokens, None))
    return lines


def write_olmo(folder: Path) -> list[str]:
    """As OLMo and Dolma: np.memmap into a file that is named .npy."""
    lines = []
    for dtype, below, given in [("uint16", 50280, "-"), ("uint32", 100278, "uint32")]:
        name = f"olmo_{dtype}.npy"
        out = np.memmap(folder / name, dtype=dtype, mode="w+", shape=(80,))
        out[:] = made_tokens(80, below, seed=2)
        out.flush()
        tokens = np.memmap(folder / name, dtype=dtype, mode="r")
        lines.append(line(name, "olmo", given, tokens, None))
    return lines


def write_npy(folder: Path) -> list[str]:
    lines = []
    for dtype in ["uint16", "int64"]:
        name = f"npy_{dtype}.npy"
        np.save(folder / name, made_tokens(40, 50257, seed=3).astype(dtype))
        lines.append(line(name, "npy", "-", np.load(folder / name), None))
    return lines


def write_llmc(folder: Path) -> list[str]:
    """The layout of llm.c's write_datafile; modded-nanogpt's files are those of GPT-2."""
    lines = []
    for name, magic, version, dtype, below in [
        ("llmc_gpt2.bin", 20240520, 1, "<u2", 50257),
        ("llmc_llama3.bin", 20240801, 7, "<u4", 128256),
    ]:
        header = np.zeros(256, dtype="<i4")
        header[:3] = magic, version, 60
        tokens = made_tokens(60, below, seed=4).astype(dtype)
        (folder / name).write_bytes(header.tobytes() + tokens.tobytes())
        lines.append(line(name, "llmc", "-", tokens, None))
    return lines


def megatron_lines(prefix: Path, multimodal: bool) -> list[str]:
    data = IndexedDataset(str(prefix), multimodal=multimodal, mmap=False)
    sequences = [data.get(i) for i in range(len(data))]
    if multimodal:
        sequences = [tokens for tokens, _ in sequences]
    starts = np.concatenate([[0], np.cumsum(data.sequence_lengths)])
    offsets = [int(starts[s]) for s in data.document_indices]
    stream = np.concatenate(sequences)
    return [
        line(f"{prefix.name}.{suffix}", "megatron", "-", stream, offsets)
        for suffix in ("idx", "bin")
    ]


def write_megatron(folder: Path) -> list[str]:
    lines = []
    types: list[Any] = [np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint16]
    for dtype in types:
        prefix = folder / f"megatron_{dtype.__name__}"
        builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
        below = min(50257, int(np.iinfo(dtype).max) + 1)
        for i, length in enumerate(DOCUMENTS):
            builder.add_document(torch.from_numpy(made_tokens(length, below, i)), [length])
        builder.finalize(f"{prefix}.idx")
        lines += megatron_lines(prefix, multimodal=False)

    prefix = folder / "megatron_multimodal"  # documents of several sequences, each with its mode
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.int32, multimodal=True)
    for i, lengths in enumerate([[4, 7, 2], [9], [3, 3]]):
        for mode, length in enumerate(lengths):
            builder.add_item(torch.from_numpy(made_tokens(length, 32000, i)), mode)
        builder.end_document()
    builder.finalize(f"{prefix}.idx")
    lines += megatron_lines(prefix, multimodal=True)

    prefix = folder / "megatron_merged"
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16)
    builder.add_index(str(folder / "megatron_uint16"))
    builder.add_index(str(folder / "megatron_uint16"))
    builder.finalize(f"{prefix}.idx")
    lines += megatron_lines(prefix, multimodal=False)
    return lines


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    writers = [write_nanogpt, write_olmo, write_npy, write_llmc, write_megatron]
    lines = [text for write in writers for text in write(folder)]
    (folder / "expected.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
