"""Write the files of tests/golden/foreign: those of other tools, which hold no plain numbers.

Usage: python make_foreign.py FOLDER

Run with Python 3.11, numpy 2.4.6, torch 2.13.0, and pyarrow, h5py, safetensors, lz4, zstandard and
scipy from PyPI; tar comes from the system. expected.txt has one line a file: name, a tab, and the
words by which the error must name it.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import lz4.frame
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import safetensors.numpy
import scipy.io
import torch
import zstandard

DATA = np.arange(6, dtype=np.float32).reshape(2, 3)
TEXT = "To be, or not to be: that is the question.\nWhether 'tis nöbler in the mind to suffer\n"


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    expected: dict[str, str] = {}

    def new(name: str, words: str) -> Path:
        expected[name] = words
        return folder / name

    np.savez(new("arrays.npz", "a NumPy .npz"), x=DATA)
    np.savez_compressed(new("compressed.npz", "a NumPy .npz"), x=DATA)
    with zipfile.ZipFile(new("text.zip", "a zip archive"), "w") as archive:
        archive.writestr("a.txt", TEXT)
    zipfile.ZipFile(new("empty.zip", "a zip archive"), "w").close()
    torch.save(torch.from_numpy(DATA), new("tensor.pt", "a file of torch.save"))
    torch.save(
        torch.from_numpy(DATA),
        new("old.pt", "a file of torch.save"),
        _use_new_zipfile_serialization=False,
    )
    plain = DATA.tobytes()
    new("m.npy.gz", "a gzip-compressed file").write_bytes(gzip.compress(plain, mtime=0))
    new("m.bin.bz2", "a bzip2-compressed file").write_bytes(bz2.compress(plain))
    new("empty.bz2", "a bzip2-compressed file").write_bytes(bz2.compress(b""))
    new("m.bin.xz", "an xz-compressed file").write_bytes(lzma.compress(plain))
    new("m.bin.zst", "a zstd-compressed file").write_bytes(zstandard.compress(plain))
    new("m.bin.lz4", "an lz4-compressed file").write_bytes(lz4.frame.compress(plain))
    (folder / "a.txt").write_text(TEXT, encoding="utf-8")
    packed = new("shard.tar", "a tar archive")
    owner = ["--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]
    subprocess.run(["tar", "-b1", *owner, "-C", folder, "-cf", packed, "a.txt"], check=True)
    expected["a.txt"] = "text"
    table = pa.table({"input_ids": pa.array([1, 2, 3], pa.uint16())})
    pa.parquet.write_table(table, new("t.parquet", "a Parquet file"))
    pa.feather.write_feather(table, new("t.feather", "an Arrow file"), compression="uncompressed")
    with pa.OSFile(str(new("stream.arrow", "an Arrow file")), "wb") as sink:
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    with h5py.File(new("m.h5", "an HDF5 file"), "w", libver="latest") as file:
        file["x"] = DATA
    path = new("user_block.mat", "an HDF5 file")
    with h5py.File(path, "w", libver="latest", userblock_size=512) as file:
        file["x"] = DATA
    scipy.io.savemat(new("m.mat", "a MATLAB file"), {"x": DATA})
    safetensors.numpy.save_file({"x": DATA}, new("m.safetensors", "a safetensors file"))
    for protocol in range(2, 6):
        path = new(f"array_{protocol}.pkl", "a Python pickle")
        path.write_bytes(pickle.dumps(DATA, protocol))
        path = new(f"dict_{protocol}.pkl", "a Python pickle")
        path.write_bytes(pickle.dumps({"itos": {0: "a"}}, protocol))
    lines = "".join(f"{name}\t{words}\n" for name, words in sorted(expected.items()))
    (folder / "expected.txt").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
