"""`./dev bench columns` on little data: every kind of method, the table and the result file."""

from __future__ import annotations

import json

import pytest
from bench_runs import run_bench

KEYS = ["hot-item-memmap", "hot-dataset", "hot-columns", "hot-weighted", "hot-quarter"]
COLD_KEYS = ["cold-documents", "cold-windows"]


@pytest.mark.slow
def test_every_method_is_measured_or_says_why_not(tmp_path):
    pytest.importorskip("torch")
    out = tmp_path / "out.json"
    words = ["--data", tmp_path, "--rows", 10_000, "--rounds", 1, "--seconds", 0.1, "--out", out]
    done = run_bench("columns", tmp_path, *words, "--only", ",".join(KEYS + COLD_KEYS))
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert sorted(result["labels"]) == sorted(result["rounds"]) == sorted(KEYS + COLD_KEYS)
    found = {key: rounds[0] for key, rounds in result["rounds"].items()}
    errors = {key: one["error"] for key, one in found.items() if "error" in one}
    assert all(key in COLD_KEYS and why.startswith("skipped:") for key, why in errors.items())
    for key in found.keys() - errors.keys():
        assert found[key]["samples_per_s"] > 0 and found[key]["bytes_per_s"] > 0, key
    assert "lowtide: Loader((x, y))" in done.stdout
    assert {"columns, hot", "memory, hot-columns"} <= {bar["work"] for bar in result["bars"]}
    assert result["facts"]["rows"] == 10_000 and result["facts"]["documents"] == 1_000
    assert str(tmp_path) not in out.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]  # the data is removed


def test_too_few_rows_are_refused(tmp_path):
    done = run_bench("columns", tmp_path, "--rows", 100)
    assert done.returncode == 2
    assert "--rows 2560" in done.stderr
