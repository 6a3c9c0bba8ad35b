"""The files of the benchmark `sparse`: one matrix of cells in several forms, and dense rows.

Everything is written in blocks, so that memory does not grow with the rows. The `.h5ad` is what
anndata writes without compression. Other forms are made of it by the tools of others, in an
interpreter of their own (`sparse_peers`).
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scratch
import sparse_rows

BLOCK = 4096  # rows
WIDTH = 256  # of dense rows
SMALL_BYTES = 64 << 10  # files below that only describe others
FORMS = {"h5ad": "cells.h5ad", "scdl": "cells.scdl", "annbatch": "cells-annbatch.zarr"}
FORMS |= {"zarr": "cells.zarr", "few": "few.h5ad"}
FORMS |= {"safetensors": "rows.safetensors", "npz": "rows.npz", "fbin": "rows.fbin"}
DENSE = ("safetensors", "npz", "fbin")
# Values take 4 bytes in all forms; columns take 4, or 2 in an SCDL folder. annbatch compresses.
_CELL_BYTES = {"h5ad": 8, "scdl": 6, "annbatch": 3, "zarr": 8}


def form_bytes(form: str, rows: int) -> int:
    """About how much a form takes on the disk."""
    if form in DENSE:
        return form_rows(form, rows) * WIDTH * 4
    return form_rows(form, rows) * (sparse_rows.MEAN * _CELL_BYTES.get(form, 8) + 40)


def form_rows(form: str, rows: int) -> int:
    """Rows of a form: `few` can be compared in memory, and dense rows are short but many."""
    if form == "few":
        return min(rows, 20_000)
    return min(8 * rows, 2_000_000) if form in DENSE else rows


def _blocks(rows: int) -> Iterator[Any]:
    for first in range(0, rows, BLOCK):
        yield np.arange(first, min(rows, first + BLOCK))


def _encoded(item: Any, kind: str, version: str = "0.2.0", **more: Any) -> Any:
    item.attrs.update({"encoding-type": kind, "encoding-version": version, **more})
    return item


def _write_frame(group: Any, names: Iterator[str], count: int, columns: list[str]) -> Any:
    import h5py

    _encoded(group, "dataframe", _index="_index")
    order = np.array(columns, h5py.string_dtype()) if columns else np.array([], np.float64)
    group.attrs["column-order"] = order
    index = group.create_dataset("_index", (count,), h5py.string_dtype())
    _encoded(index, "string-array")
    for first in range(0, count, BLOCK):
        index[first : first + BLOCK] = list(itertools.islice(names, BLOCK))
    return group


def write_h5ad(path: str, rows: int) -> None:
    """Writes the matrix with two columns of obs: `cell_type`, a categorical, and `row`."""
    import h5py

    offsets = np.concatenate(
        [np.zeros(1, np.int64), *(sparse_rows.lengths(block) for block in _blocks(rows))]
    ).cumsum()
    count = int(offsets[-1])
    kind = np.int32 if count < 1 << 31 else np.int64  # SciPy has one type for both
    with h5py.File(path, "w") as file:
        _encoded(file, "anndata", "0.1.0")
        x = _encoded(file.create_group("X"), "csr_matrix", "0.1.0")
        x.attrs["shape"] = np.array([rows, sparse_rows.COLUMNS])
        data = x.create_dataset("data", (count,), np.float32, maxshape=(None,))
        indices = x.create_dataset("indices", (count,), kind, maxshape=(None,))
        x.create_dataset("indptr", data=offsets.astype(kind), maxshape=(None,))
        for block in _blocks(rows):
            first, end = offsets[block[0]], offsets[block[-1] + 1]
            data[first:end], indices[first:end], _ = sparse_rows.parts(block)
        names = (f"cell{number}" for number in range(rows))
        obs = _write_frame(file.create_group("obs"), names, rows, ["cell_type", "row"])
        kinds = _encoded(obs.create_group("cell_type"), "categorical", ordered=False)
        _encoded(kinds.create_dataset("codes", data=_codes(rows)), "array")
        words = [f"type {number:02}" for number in range(sparse_rows.CLASSES)]
        categories = kinds.create_dataset("categories", data=words, dtype=h5py.string_dtype())
        _encoded(categories, "string-array")
        _encoded(obs.create_dataset("row", data=np.arange(rows)), "array")
        genes = (f"gene{number}" for number in range(sparse_rows.COLUMNS))
        _write_frame(file.create_group("var"), genes, sparse_rows.COLUMNS, [])
        for name in ("layers", "obsm", "obsp", "uns", "varm", "varp"):
            _encoded(file.create_group(name), "dict", "0.1.0")
    _durable(path)


def _codes(rows: int) -> Any:
    return np.concatenate([sparse_rows.labels(block) for block in _blocks(rows)])


def _dense_blocks(rows: int) -> Iterator[memoryview]:
    """Rows of noise with their numbers in the first column."""
    noise = np.random.default_rng(0).random((BLOCK, WIDTH), dtype=np.float32)
    for block in _blocks(rows):
        noise[: len(block), 0] = block
        noise[:, 1] += 1.0
        yield noise[: len(block)].data.cast("B")


def write_dense(path: str, rows: int, form: str) -> None:
    """Writes dense rows of float32 as safetensors, np.savez or DiskANN do."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, WIDTH)}
    if form == "npz":
        with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
            with archive.open("x.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                for block in _dense_blocks(rows):
                    member.write(block)
    else:
        size = rows * WIDTH * 4
        text = f'{{"x":{{"dtype":"F32","shape":[{rows},{WIDTH}],"data_offsets":[0,{size}]}}}}'
        head = text.ljust(-(-len(text) // 8) * 8).encode()
        start = len(head).to_bytes(8, "little") + head
        with open(path, "wb") as file:
            file.write(start if form == "safetensors" else np.array([rows, WIDTH], "<u4").tobytes())
            for block in _dense_blocks(rows):
                file.write(block)
    _durable(path)


def _durable(path: str) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def files(path: str) -> list[str]:
    """The files of a form that hold its values, not the small ones beside them."""
    if os.path.isfile(path):
        return [path]
    found = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    large = sorted(one for one in found if os.path.getsize(one) >= SMALL_BYTES)
    return large or sorted(one for one in found if os.path.getsize(one))


def _writer(form: str, rows: int, folder: str, python: str) -> Callable[[str], None]:
    rows = form_rows(form, rows)
    if form in ("h5ad", "few"):
        return lambda path: write_h5ad(path, rows)
    if form in DENSE:
        return lambda path: write_dense(path, rows, form)
    source = os.path.join(folder, FORMS["h5ad"])

    def made_by_peer(path: str) -> None:
        import sparse_peers

        # -P: packages that look for PyData's `sparse` must not find the benchmark of this name.
        words = [python, "-P", sparse_peers.__file__, form, source, path]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unmade(said.replace(folder, "DIR"))

    return made_by_peer


class Unmade(Exception):
    """The tool that makes a form is missing or failed; the message says why."""


class Data:
    """The paths of the forms; `why` says of a form that could not be made why not."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.why: dict[str, str] = {}

    def path(self, form: str) -> str:
        return os.path.join(self.folder, FORMS[form])

    def make(self, form: str, rows: int, python: str) -> None:
        """Writes a form under another name first, so that one that exists is complete."""
        path = self.path(form)
        if os.path.exists(path):
            return
        root, extension = os.path.splitext(path)
        part = f"{root}.part{extension}"
        _remove(part)
        try:
            _writer(form, rows, self.folder, python)(part)
            os.rename(part, path)
        except Unmade as error:
            self.why[form] = str(error)
        finally:
            _remove(part)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.unlink(path)


@contextmanager
def folder(parent: str | None, rows: int, size_bytes: int, keep: bool) -> Iterator[Data]:
    """Provides a folder for the forms, and removes it unless `keep` is set, after SIGTERM too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parent = parent or scratch.scratch_folder()
    os.makedirs(parent, exist_ok=True)
    name = f"lowtide-bench-sparse-{rows}"
    made = os.path.join(parent, name) if keep else tempfile.mkdtemp(prefix=f"{name}-", dir=parent)
    os.makedirs(made, exist_ok=True)
    here = sum(os.path.getsize(one) for one in files(made)) if keep else 0
    free = shutil.disk_usage(made).free + here
    try:
        if free < size_bytes * 1.05:
            raise SystemExit(
                f"bench: {parent} needs {size_bytes >> 20} MiB, but only {free >> 20} MiB are "
                "free: name another folder with --data, or fewer --rows"
            )
        yield Data(made)
    finally:
        if not keep:
            shutil.rmtree(made, ignore_errors=True)
