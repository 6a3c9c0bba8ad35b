"""`./dev bench sparse` on little data: every method, the checks, the tables in the docs."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys

import numpy as np
import pytest
from bench_runs import REPORT, run_bench

OURS = ["h5ad-lowtide", "h5ad-batches", "h5ad-epochs"]
OURS += ["safetensors-lowtide", "npz-lowtide", "fbin-lowtide"]
THEIRS = ["safetensors-own", "npz-own", "fbin-own"]
ABSENT = {
    "h5ad-annloader": "No module named 'anndata'",
    "scdl-lowtide": "No module named 'bionemo'",
    "scdl-bionemo": "No module named 'bionemo'",
    "zarr-lowtide": "No module named 'zarr'",
    "annbatch-blocks": "No module named 'annbatch'",
    "annbatch-random": "No module named 'annbatch'",
}
HELD = ["safetensors-held", "npz-held", "fbin-held"]
FEW = ["few-dense", "few-sparse", "few-loader", "few-scipy"]


@pytest.mark.slow
def test_every_method_is_measured_or_says_why_not(tmp_path, bench_module):
    pytest.importorskip("h5py")
    pytest.importorskip("torch")
    out = tmp_path / "out.json"
    words = ["--data", tmp_path, "--rows", 4096, "--rounds", 1, "--seconds", 0.1, "--out", out]
    done = run_bench("sparse_bench", tmp_path, *words, "--peers", sys.executable)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    names = [*OURS, *THEIRS, *ABSENT]
    keys = {f"{work}-{name}" for work in ("hot", "cold") for name in names}
    keys |= {f"hot-{name}" for name in [*FEW, *HELD]} | {"cold-h5ad-fio"}
    assert set(result["labels"]) == set(result["rounds"]) == keys
    for key, (one,) in result["rounds"].items():
        work, name = key.split("-", 1)
        if "error" not in one:
            assert one["rows_per_s"] > 0, key
        elif name in ABSENT:
            package = ABSENT[name].split("'")[1]
            assert ABSENT[name] in one["error"] or importlib.util.find_spec(package), one["error"]
        else:
            assert work == "cold", (key, one["error"])
            assert one["error"].startswith(("skipped:", "fio is not")), (key, one["error"])
    verified = result["facts"]["verified_rows"]
    assert all(verified[name] > 0 for name in [*OURS, *THEIRS, *FEW, *HELD])
    assert {"h5ad, cold", "dense columns, CPU of both", "page cache, drop"} <= {
        bar["work"] for bar in result["bars"]
    }
    pages, values = bench_module("pages"), bench_module("values")
    sources = pages.texts_of(REPORT / "texts")
    cells = pages.Texts(sources, {"sparse": values.Result(result)}).table("sparse.cells")
    rate = np.median([one["rows_per_s"] for one in result["rounds"]["hot-h5ad-lowtide"]])
    assert f"| **`lt.Loader`, `.h5ad` in place** | {rate:,.0f} |" in cells
    assert str(tmp_path) not in out.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]  # the data is removed


def test_too_few_rows_are_refused(tmp_path):
    done = run_bench("sparse_bench", tmp_path, "--rows", 100)
    assert done.returncode == 2
    assert "--rows 2048" in done.stderr


def test_rows_are_a_function_of_their_number(bench_module):
    rows = bench_module("sparse_rows")
    data, indices, offsets = rows.parts(np.arange(1000))
    assert (np.diff(offsets) >= rows.LEAST).all() and (np.diff(offsets) <= rows.MOST).all()
    for first, end in itertools.pairwise(offsets):
        assert (np.diff(indices[first:end]) > 0).all() and indices[end - 1] < rows.COLUMNS
    some = [7, 3, 999]
    picked = rows.parts(some)
    for row, first, end in zip(some, picked[2], picked[2][1:]):
        np.testing.assert_array_equal(picked[0][first:end], data[offsets[row] : offsets[row + 1]])
    rows.check(*picked, some)


@pytest.mark.parametrize("change", ["value", "column", "row", "order", "length"])
def test_a_wrong_batch_is_found(bench_module, change):
    rows = bench_module("sparse_rows")
    numbers = np.array([5, 2, 8])
    data, indices, offsets = rows.parts(numbers)
    if change == "value":
        data[3] += 1
    elif change == "column":
        indices[[1, 2]] = indices[[2, 1]]
    elif change == "row":
        numbers[1] = 3
    elif change == "order":
        numbers = numbers[::-1]
    else:
        data, indices = data[:-1], indices[:-1]
    with pytest.raises(ValueError, match=r"differs from the source|other rows than it says"):
        rows.check(data, indices, offsets, numbers)
