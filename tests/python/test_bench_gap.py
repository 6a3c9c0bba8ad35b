"""`./dev bench gap` on little data: every gap, the table and the result file."""

from __future__ import annotations

import json

from bench_runs import REPORT, run_bench

KEYS = ["cold-fitted", "cold-16", "cold-4", "cold-none", "cold-256"]


def test_the_smaller_the_gap_the_more_requests(tmp_path, bench_module):
    out = tmp_path / "out.json"
    few = ["--data", tmp_path, "--rows", 20_000, "--rounds", 1, "--out", out]
    done = run_bench("gap", tmp_path, *few)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert list(result["labels"]) == sorted(result["rounds"], key=KEYS.index) == KEYS
    found = {key: one for key, (one,) in result["rounds"].items() if "error" not in one}
    assert all(one["rows"] == 20_000 for one in found.values())
    if not found:  # no memory groups
        assert all(one["error"].startswith("skipped:") for (one,) in result["rounds"].values())
        return
    wide, narrow, none = (found[f"cold-{gap}"] for gap in ("16", "4", "none"))
    # How far the wide gap is used depends on the disk, which is fitted.
    assert none["requests"] > narrow["requests"] >= wide["requests"]
    assert none["gap_bytes"] == 0 < narrow["gap_bytes"] <= 4096
    assert all(one["read_per_byte"] >= 1 for one in found.values())
    assert "bytes read per byte" in done.stderr and "lowtide 64MiB, gap 4KiB" in done.stdout
    pages, values = bench_module("pages"), bench_module("values")
    texts = pages.Texts(pages.texts_of(REPORT / "texts"), {"gap": values.Result(result)})
    assert f"| {none['requests']:,} |" in texts.table("gap")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]  # the data is removed


def test_rows_must_be_at_least_one(tmp_path):
    done = run_bench("gap", tmp_path, "--rows", 0)
    assert done.returncode == 2
    assert "--rounds and --rows must be at least 1" in done.stderr
