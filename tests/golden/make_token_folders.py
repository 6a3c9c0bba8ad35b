"""Write the folders of tests/golden/tokens/folders with the tools that own the formats.

Usage: python make_token_folders.py FOLDER

Run with Python 3.11, numpy 2.4.6, torch 2.13.0, mosaicml-streaming 0.13.0 and litdata 0.2.76 from
PyPI, in an environment of their own. streaming imports torchvision, of which it uses nothing here:
an empty stand-in will do.

expected.txt has one line per folder, fields separated by tabs: name, format, dtype to give ("-":
none), dtype, number of tokens, checksum, offsets of the documents in tokens. The tokens are read
back with the same tools, not taken from what was written; for LitData, whose TokensLoader does not
return items, the offsets are those of the items that were written. The checksum is the sum of
(i + 1) * token i, modulo 2**64. Folders that Lowtide must refuse have no line: their names start
with "refused_".
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

Tokens = np.ndarray[Any, Any]

LENGTHS = [5, 1, 12, 300, 30, 7, 256, 255]


def documents(dtype: str, lengths: list[int]) -> list[Tokens]:
    below = min(50257, int(np.iinfo(dtype).max) + 1)
    made = np.random.default_rng(len(lengths)).integers(0, below, sum(lengths)).astype(dtype)
    return np.split(made, list(itertools.accumulate(lengths))[:-1])


def line(name: str, form: str, given: str, tokens: Tokens, lengths: list[int]) -> str:
    places = np.arange(1, tokens.size + 1, dtype=object)
    checksum = int((places * tokens.astype(object)).sum()) % 2**64
    offsets = ",".join(map(str, [0, *itertools.accumulate(lengths)]))
    cells = [name, form, given, repr(tokens.dtype.str), tokens.size, checksum, offsets]
    return "\t".join(map(str, cells)) + "\n"


def read_mds(folder: Path, column: str, dtype: str | None) -> list[Tokens]:
    from streaming.base.format import reader_from_json

    index = json.loads((folder / "index.json").read_text())
    found = []
    for shard in index["shards"]:
        reader = reader_from_json(str(folder), None, shard)
        for i in range(reader.samples):
            value = reader[i][column]
            found.append(np.frombuffer(value, dtype) if dtype else value)
    return found


def write_mds(folder: Path) -> list[str]:
    from streaming import MDSWriter
    from streaming.base.util import merge_index

    others = {"id": "str", "label": "int", "url": "str"}
    lines = []
    for name, columns, dtype, lengths, more in [
        ("int32", {"tokens": "ndarray:int32"}, "int32", LENGTHS, {}),
        ("fixed", {"tokens": "ndarray:uint16:16"}, "uint16", [16] * 20, {}),
        ("equal", {"tokens": "ndarray:int32"}, "int32", [64] * 20, {}),
        ("bytes", {"tokens": "bytes"}, "int64", [3, 0, 40, 9], {}),
        ("any", {"tokens": "ndarray"}, "uint16", LENGTHS, {}),
        ("columns", {**others, "tokens": "ndarray:int32"}, "int32", LENGTHS, {}),
        ("named", {"ids": "ndarray:uint32", "label": "int"}, "uint32", LENGTHS, {}),
        ("long", {"tokens": "ndarray:uint8"}, "uint8", [70_000, 3], {"hashes": ["sha1", "xxh64"]}),
    ]:
        out = folder / f"mds_{name}"
        column = next(iter(set(columns) - set(others)))
        limit = {"size_limit": 1 << 20 if name == "long" else 900}
        with MDSWriter(columns=columns, out=str(out), **limit, **more) as writer:
            for i, tokens in enumerate(documents(dtype, lengths)):
                value = tokens.tobytes() if columns[column] == "bytes" else tokens
                writer.write({"id": "i" * i, "label": i, "url": "u" * (9 - i), column: value})
        given = dtype if columns[column] == "bytes" else "-"
        found = read_mds(out, column, None if given == "-" else dtype)
        lines.append(line(out.name, "mds", given, np.concatenate(found), [len(d) for d in found]))

    out = folder / "mds_merged"
    for part in range(2):
        with MDSWriter(columns={"tokens": "ndarray:int32"}, out=str(out / str(part))) as writer:
            for tokens in documents("int32", [4, 5 + part]):
                writer.write({"tokens": tokens})
    merge_index(str(out), keep_local=True)
    for part in range(2):
        (out / str(part) / "index.json").unlink()
    found = read_mds(out, "tokens", None)
    lines.append(line(out.name, "mds", "-", np.concatenate(found), [len(d) for d in found]))

    for name, columns, more in [
        ("zstd", {"tokens": "ndarray:int32"}, {"compression": "zstd:7"}),
        ("pickles", {"tokens": "pkl"}, {}),
    ]:
        out = folder / f"refused_mds_{name}"
        with MDSWriter(columns=columns, out=str(out), **more) as writer:
            writer.write({"tokens": np.arange(10, dtype="int32")})
    return lines


def kept(tokens: Tokens) -> Tokens:
    return tokens


def as_tensor(tokens: Tokens) -> Any:
    import torch

    return torch.from_numpy(tokens)


def write_litdata(folder: Path) -> list[str]:
    import litdata

    loader = litdata.TokensLoader(block_size=1)
    lines = []
    for name, dtype, lengths, size in [
        ("uint16", "uint16", LENGTHS, 400),
        ("int32", "int32", [3, 0, 40, 9], 1000),
        ("int64", "int64", [8] * 30, 100),
        ("numpy", "uint32", LENGTHS, 1000),
    ]:
        out = folder / f"litdata_{name}"
        litdata.optimize(
            kept if name == "numpy" else as_tensor,
            documents(dtype, lengths),
            str(out),
            chunk_size=size,
            num_workers=1,
            item_loader=loader,
            reorder_files=False,
        )
        data = litdata.StreamingDataset(str(out), item_loader=litdata.TokensLoader(block_size=1))
        tokens = np.array([int(data[i][0]) for i in range(len(data))], dtype)
        lines.append(line(out.name, "litdata", "-", tokens, lengths))

    for name, more in [
        ("zstd", {"compression": "zstd", "compression_level": "chunk", "item_loader": loader}),
        ("trees", {}),
    ]:
        out = folder / f"refused_litdata_{name}"
        litdata.optimize(
            as_tensor, documents("int32", [5]), str(out), chunk_size=100, num_workers=1, **more
        )
    return lines


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as caches:
        os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = caches
        lines = write_mds(folder) + write_litdata(folder)
    (folder / "expected.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
