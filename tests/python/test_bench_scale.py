"""`./dev bench scale` on little data, and the picture that is made of its results."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from bench_runs import run_bench

SVG = "{http://www.w3.org/2000/svg}"
SIZES = (1024, 2048, 4096, 8192)
READERS = {"lowtide": 200_000, "memmap": 130, "again": 140, "h5py": 9_000}


@pytest.mark.slow
def test_every_method_is_measured_or_says_why_not(tmp_path, bench_module):
    out = tmp_path / "out.json"
    words = ["--quick", "--data", tmp_path, "--out", out]
    done = run_bench("scale", tmp_path, *words)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    plan = bench_module("scale").QUICK
    keys = [f"{size}-{reader}" for size in plan.sizes_mib for reader in plan.readers]
    keys += [f"{plan.sizes_mib[-1]}-budget-{budget}" for budget in plan.budgets_mib]
    assert list(result["labels"]) == keys and sorted(result["rounds"]) == sorted(keys)
    assert result["facts"]["limit_mib"] == plan.limit_mib
    errors = {key: one["error"] for key, (one,) in result["rounds"].items() if "error" in one}
    absent = ("No module named", "skipped:")
    assert not [why for why in errors.values() if not any(word in why for word in absent)]
    for key in result["rounds"].keys() - errors.keys():
        (one,) = result["rounds"][key]
        assert one["rows"] >= 256 and one["rows_per_s"] > 0, key
        assert 0 <= one["memory"] <= plan.limit_mib << 20, key
        if "lowtide" in key or "budget" in key:
            budget_mib = int(result["labels"][key].split('"')[1].removesuffix("MiB"))
            assert one["memory"] < (budget_mib + 32) << 20, key
    assert str(tmp_path) not in out.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]  # the data is removed
    more = run_bench("scale", tmp_path, *words, "--more", "--only", "128-lowtide,512-budget-32")
    assert more.returncode == 0, more.stderr[-3000:]
    rounds = json.loads(out.read_text())["rounds"]
    assert {key: len(found) for key, found in rounds.items()} == {
        key: 2 if key in ("128-lowtide", "512-budget-32") else 1 for key in keys
    }


def result_of(readers: dict[str, int]) -> dict[str, object]:
    """A result in which maps are at the limit and each method has one rate at all sizes."""
    rounds, labels = {}, {}
    for size in SIZES:
        for reader, rate in readers.items():
            held = 70 if reader == "lowtide" else 1500
            one = {"rows_per_s": rate, "memory": held << 20, "residency": "ok"}
            rounds[f"{size}-{reader}"] = [one]
            labels[f"{size}-{reader}"] = f"{reader} <&>"
    facts = {"sizes_mib": SIZES, "limit_mib": 1536}
    return {"facts": facts, "labels": labels, "rounds": rounds}


def drawn(bench_module, readers: dict[str, int]) -> ElementTree.Element:
    result = bench_module("values").Result(result_of(readers))
    return ElementTree.fromstring(bench_module("pictures").scale(result))


def texts(root: ElementTree.Element) -> list[str]:
    return [found.text or "" for found in root.iter(f"{SVG}text")]


def test_the_picture_has_a_line_per_method_in_both_panels(bench_module):
    root = drawn(bench_module, READERS)
    for look in ("0", "1", "2", "4"):
        lines = [
            path for path in root.iter(f"{SVG}path") if path.get("class") == f"line look-{look}"
        ]
        assert len(lines) == 3  # two panels and the legend
        assert [line.get("d", "").count("L") for line in lines] == [3, 3, 0]
    assert not [path for path in root.iter(f"{SVG}path") if "look-3" in path.get("class", "")]
    found = texts(root)
    assert {"1 GiB", "8 GiB", "200 k", "9 k", "70 MiB", "1.46 GiB", "h5py <&>"} <= set(found)
    assert "memory limit: 1.5 GiB" in found


def test_lines_lie_where_their_values_are(bench_module):
    root = drawn(bench_module, READERS)
    panels = root.findall(f"{SVG}g")

    def heights(panel: ElementTree.Element, look: int) -> set[float]:
        marks = [one for one in panel if one.get("class") == f"mark look-{look}"]
        at = [one.get("cy") or one.get("transform", "").split()[1].rstrip(")") for one in marks]
        return {float(one) for one in at}

    (memory, map_memory), (rate, map_rate) = [
        (heights(panel, 0), heights(panel, 1)) for panel in panels
    ]
    assert len(memory) == len(rate) == 1
    assert max(map_memory) < min(memory) and max(rate) < min(map_rate)  # the y axis points down
    assert {f"{82 + 288 * place / 3:.1f}" for place in range(4)} == {
        one.get("cx") for one in panels[0].iter(f"{SVG}circle")
    }


def test_a_size_at_which_a_method_failed_is_left_out(bench_module):
    result = result_of(READERS)
    result["rounds"]["8192-again"] = [{"error": "killed: it needs more", "residency": "ok"}]
    root = ElementTree.fromstring(
        bench_module("pictures").scale(bench_module("values").Result(result))
    )
    lines = [path for path in root.iter(f"{SVG}path") if path.get("class") == "line look-2"]
    assert [line.get("d", "").count("L") for line in lines] == [2, 2, 0]
    result["rounds"]["8192-h5py"] = result["rounds"]["8192-again"]
    root = ElementTree.fromstring(
        bench_module("pictures").scale(bench_module("values").Result(result))
    )
    assert "200 k" in texts(root) and "9 k" not in texts(root)  # no value where no line ends


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        ("size_text", 0, "0"),
        ("size_text", 70.4, "70 MiB"),
        ("size_text", 1500, "1.46 GiB"),
        ("size_ticks", 1690, [0, 512, 1024, 1536, 2048]),
        ("size_ticks", 280, [0, 128, 256, 384]),
        ("rate_text", 130, "130"),
        ("rate_text", 1_250, "1.2 k"),
        ("rate_text", 999_900, "1 M"),
        ("rate_ticks", [130, 2e5], [100, 1e3, 1e4, 1e5, 1e6]),
        ("rate_ticks", [130, 1.1e5], [100, 1e3, 1e4, 1e5]),
        ("rate_ticks", [100], [100, 1000]),
    ],
)
def test_axes_have_round_numbers(bench_module, function, value, text):
    assert getattr(bench_module("chart"), function)(value) == text
