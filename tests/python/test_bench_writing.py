"""`./dev bench writing` on little data: every method, the table and the result file."""

from __future__ import annotations

import json

import pytest
from bench_runs import run_bench

OURS = [
    "create-lowtide",
    "append-lowtide",
    "scatter-lowtide",
    "tokens-lowtide",
    "lists-lowtide",
    "shuffle-lowtide",
    "peers-lowtide",
]
THEIRS = ["create-memmap", "append-tofile", "scatter-memmap", "shuffle-quarter"]
ABSENT = {
    "tokens-megatron": "No module named 'megatron'",
    "tokens-megatron-durable": "No module named 'megatron'",
    "lists-megatron": "No module named 'megatron'",
    "peers-datasets": "No module named 'datasets'",
    "peers-ray": "No module named 'ray'",
    "peers-dask": "No module named 'distributed'",
    "peers-terashuf": "no program terashuf",
}


@pytest.mark.slow
def test_every_method_is_measured_or_says_why_not(tmp_path):
    pytest.importorskip("torch")  # without it, Megatron's absence shows as that of torch
    out = tmp_path / "out.json"
    done = run_bench(
        "writing", tmp_path, "--data", tmp_path, "--rows", 9_000, "--rounds", 1, "--out", out
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert set(result["labels"]) == set(result["rounds"]) == {*OURS, *THEIRS, *ABSENT}
    found = {key: rounds[0] for key, rounds in result["rounds"].items()}
    for key, one in found.items():
        if "error" in one:
            assert ABSENT[key] in one["error"], (key, one["error"])
        else:
            assert one["speed"] > 0 and one["bytes"] > 0, key
    assert "lowtide: w.append(rows), 64 MiB" in done.stdout
    assert {"create", "append", "memory, tokens-lowtide"} <= {bar["work"] for bar in result["bars"]}
    assert result["facts"]["rows"] == 9_000
    assert str(tmp_path) not in out.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]  # the data is removed
    words = ("writing", tmp_path, "--data", tmp_path, "--rows", 9_000, "--rounds", 1, "--out", out)
    assert run_bench(*words, "--only", "create", "--more").returncode == 0
    rounds = json.loads(out.read_text())["rounds"]
    assert [len(rounds[key]) for key in ("create-lowtide", "append-lowtide")] == [2, 1]


def test_too_few_rows_are_refused(tmp_path):
    done = run_bench("writing", tmp_path, "--rows", 10)
    assert done.returncode == 2
    assert "--rows 1000" in done.stderr
