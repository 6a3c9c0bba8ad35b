"""Token files as the tools write them, and windows cut out of them by NumPy alone."""

from __future__ import annotations

import json
import struct

import numpy as np

BLOCK = 16
COUNT = BLOCK * 101 + 5  # 101 windows and a rest

MEGATRON_CODES = {"u1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u2": 8}


def write_nanogpt(path, tokens, dtype="<u2"):
    np.asarray(tokens).astype(dtype).tofile(path)
    return str(path)


def write_llmc(path, tokens, magic=20240520, version=1, count=None, dtype="<u2"):
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, len(tokens) if count is None else count
    path.write_bytes(header.tobytes() + np.asarray(tokens).astype(dtype).tobytes())
    return str(path)


def write_megatron(prefix, documents, dtype="u2", code=None, version=1):
    """Writes one sequence per document; returns the path of the .bin."""
    lengths = [len(document) for document in documents]
    tokens = np.concatenate([np.asarray(d, f"<{dtype}") for d in documents])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    index = b"MMIDIDX\x00\x00" + struct.pack(
        "<QBQQ", version, code or MEGATRON_CODES[dtype], len(lengths), len(lengths) + 1
    )
    index += np.array(lengths, "<i4").tobytes()
    index += (starts[:-1] * tokens.itemsize).astype("<i8").tobytes()
    index += np.arange(len(lengths) + 1, dtype="<i8").tobytes()
    prefix.with_suffix(".idx").write_bytes(index)
    tokens.tofile(prefix.with_suffix(".bin"))
    return str(prefix.with_suffix(".bin"))


def write_shards(folder, tokens, sizes, dtype="<u2"):
    """`tokens` cut into files of `sizes`; what is left goes into a last one."""
    paths, first = [], 0
    for number, size in enumerate([*sizes, len(tokens)]):
        if first >= len(tokens):
            break
        part = tokens[first : first + size]
        paths.append(write_nanogpt(folder / f"shard_{number:06d}.bin", part, dtype))
        first += size
    return paths


def nanogpt_batch(data, starts, block_size):
    """nanoGPT's get_batch, without torch."""
    x = np.stack([(data[i : i + block_size]).astype(np.int64) for i in starts])
    y = np.stack([(data[i + 1 : i + 1 + block_size]).astype(np.int64) for i in starts])
    return x, y


def windows_of(loader_like, data, block_size):
    """Every window number of the batches, each batch compared with the data."""
    seen = []
    for batch in loader_like:
        starts = batch.samples * block_size
        x, y = nanogpt_batch(data, starts, block_size)
        np.testing.assert_array_equal(batch.x, x)
        np.testing.assert_array_equal(batch.y, y)
        seen.append(batch.samples)
    return np.concatenate(seen) if seen else np.empty(0, np.int64)


def document_starts_to_positions(starts, first, block_size):
    """positions and lengths of the documents of one window, one token at a time."""
    positions, bounds = [], []
    for token in range(first, first + block_size):
        if token == first or token in starts:
            bounds.append(token - first)
            positions.append(0)
        else:
            positions.append(positions[-1] + 1)
    return positions, bounds


def tabled(samples, between=b""):
    """The bytes of an MDS shard or, with nothing between, of a LitData chunk."""
    first = 4 * (len(samples) + 2) + len(between)
    ends = np.cumsum([first, *(len(sample) for sample in samples)])
    table = np.array([len(samples), *ends], "<u4")
    return table.tobytes() + between + b"".join(samples)


def mds_array(tokens):
    """One axis of tokens as MDS encodes it, after the size of the column."""
    width = 0 if len(tokens) < 1 << 8 else 1 if len(tokens) < 1 << 16 else 2
    head = bytes([1 << 2 | width]) + len(tokens).to_bytes(1 << width, "little")
    column = head + tokens.tobytes()
    return len(column).to_bytes(4, "little") + column


def write_mds(folder, shards, dtype="int32"):
    """A folder of shards, each a list of documents; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = {
        "column_names": ["tokens"], "column_encodings": [f"ndarray:{dtype}"],
        "column_sizes": [None], "compression": None, "format": "mds", "hashes": [],
        "size_limit": 1 << 26, "version": 2,
    }  # fmt: skip
    listed = []
    for number, documents in enumerate(shards):
        name = f"shard.{number:05d}.mds"
        samples = [mds_array(np.asarray(document, dtype)) for document in documents]
        data = tabled(samples, json.dumps(columns).encode())
        (folder / name).write_bytes(data)
        raw = {"basename": name, "bytes": len(data), "hashes": {}}
        listed.append({**columns, "samples": len(documents), "raw_data": raw, "zip_data": None})
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": listed}))
    return str(folder)


def write_litdata(folder, chunks, code="no_header_tensor:20", dtype="<u2"):
    """A folder of chunks, each a list of documents; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for number, documents in enumerate(chunks):
        name = f"chunk-0-{number}.bin"
        data = tabled([np.asarray(document, dtype).tobytes() for document in documents])
        (folder / name).write_bytes(data)
        tokens = sum(len(document) for document in documents)
        listed.append(
            {"chunk_bytes": len(data), "chunk_size": len(documents), "dim": tokens,
             "filename": name}
        )  # fmt: skip
    config = {
        "chunk_bytes": None, "chunk_size": 1000, "compression": None, "data_format": [code],
        "data_spec": "[1, null]", "encryption": None, "item_loader": "TokensLoader",
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"chunks": listed, "config": config}))
    return str(folder)
