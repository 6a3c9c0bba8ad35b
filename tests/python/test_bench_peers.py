"""`./dev bench --peers` on little data: peers of the test environment, adapters, setup, results."""

from __future__ import annotations

import json
import pathlib
import sys
import zipfile

import numpy as np
import pytest
from bench_runs import SCENARIOS, run_bench

ADAPTERS = SCENARIOS.parent / "adapters"
PATHS = sorted(path for path in ADAPTERS.glob("*.py") if path.stem != "__init__")
ROOT = pathlib.Path(__file__).parents[2]
MAPS = ["memmap", "memmap_again", "memmap_dontneed"]


def run_peers(folder, *words):
    out = folder / "out.json"
    few = ["--data", folder / "data", "--samples", 20_480, "--rounds", 1, "--seconds", 0.1]
    none = ["--environments", folder / "none"]  # the peers that the interpreter of the tests has
    done = run_bench("peers", folder, *words, *few, *none, "--out", out)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list((folder / "data").iterdir())  # the data is removed
    assert str(folder) not in out.read_text()
    return json.loads(out.read_text()), done


@pytest.mark.slow
def test_peers_that_are_here_are_measured_and_the_others_say_why_not(tmp_path):
    pytest.importorskip("torch")
    result, done = run_peers(tmp_path, "rows", "--only", "lowtide,memmap,dataloader,litdata")
    readers = ["lowtide_loader", "lowtide_small", "dataloader", *MAPS, "litdata_stream"]
    keys = {f"rows-{work}-{reader}" for work in ("hot", "cold") for reader in readers}
    assert set(result["labels"]) == set(result["rounds"]) == keys
    for key, (one,) in result["rounds"].items():
        if "litdata" in key:
            assert one["error"] == "litdata is not installed: ./dev bench --peers setup"
        elif "error" in one:
            assert "-cold-" in key and one["error"].startswith("skipped:"), (key, one["error"])
        else:
            assert one["rate"] > 0 and one["first_batch_s"] > 0 and one["cpu_s"] >= 0, key
    facts = result["facts"]
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["scenarios"]["rows"]["samples"] == 20_480
    assert facts["scenarios"]["rows"]["verified_samples"]["memmap"] == 8 * 256
    assert "rows, hot" in {bar["work"] for bar in result["bars"]}
    assert "np.memmap, kept" in done.stdout and "litdata is not installed" in done.stdout


@pytest.mark.slow
def test_a_scenario_replaces_only_its_own_rounds(tmp_path):
    first, _ = run_peers(tmp_path, "scan", "--only", "memmap")
    second, _ = run_peers(tmp_path, "resume", "startup", "--only", "lowtide_loader,memmap")
    both = {"resume-hot-lowtide_loader", "startup-hot-lowtide_loader", "startup-hot-memmap"}
    assert set(second["rounds"]) == both | set(first["rounds"])
    for key, found in first["rounds"].items():
        assert second["rounds"][key] == found
    for key in both:
        assert second["rounds"][key][0]["first_batch_s"] > 0, key
    third, _ = run_peers(tmp_path, "scan", "--only", "memmap_again")
    assert set(third["rounds"]) - both == {"scan-hot-memmap_again", "scan-cold-memmap_again"}


@pytest.mark.slow
def test_tokens_are_read_by_every_form_of_the_map(tmp_path):
    result, _ = run_peers(tmp_path, "tokens", "--only", "lowtide,memmap")
    for reader in ("lowtide_loader", *MAPS):
        assert result["rounds"][f"tokens-hot-{reader}"][0]["samples"] > 0


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_an_adapter_is_short_and_names_its_page(path, bench_module):
    text = path.read_text()
    assert len(text.splitlines()) <= 60
    adapter = bench_module("peers_data").Adapter.read(path)
    assert adapter.page.startswith("https://") and text.count(adapter.page) == 2  # docstring, PAGE
    assert set(adapter.scenarios) <= set(bench_module("peers_bench").KINDS)
    assert adapter.environment in {"own", *bench_module("peers_setup").ENVIRONMENTS}
    assert ("def save(" in text) == ("resume" in adapter.scenarios)
    assert not adapter.form or (ADAPTERS / f"{adapter.form}.py").exists()


@pytest.mark.parametrize("kind", ["rows", "tokens"])
@pytest.mark.parametrize("change", ["value", "order", None])
def test_a_sample_that_differs_is_found(tmp_path, bench_module, kind, change):
    worker, peers_data = bench_module("peers_worker"), bench_module("peers_data")
    with peers_data.source(kind, 64, str(tmp_path), keep=False) as source:
        view = peers_data.adapters.Data(kind, source.path, "", 64, 8).view()
        numbers = np.array([5, 2, 63, 0])
        batch = view[numbers]
        if change == "value":
            batch[2, 100] += 1
        elif change == "order":
            batch[1, [40, 41]] = batch[1, [41, 40]]
        if change:
            with pytest.raises(ValueError, match="differs from that of the source"):
                worker.numbers_of(view, kind, batch)
        else:
            stride = 1 if kind == "rows" else 1024
            np.testing.assert_array_equal(worker.numbers_of(view, kind, batch), numbers * stride)


def test_a_window_may_start_at_any_token(tmp_path, bench_module):
    worker, peers_data = bench_module("peers_worker"), bench_module("peers_data")
    with peers_data.source("tokens", 64, str(tmp_path), keep=False) as source:
        view = peers_data.adapters.Data("tokens", source.path, "", 64, 8).view()
        starts = [0, 1, 2, 3, 1025, 2050, 30_003]
        batch = np.stack([view.base[start : start + 1024] for start in starts])
        assert worker.numbers_of(view, "tokens", batch).tolist() == starts


@pytest.mark.slow
def test_what_does_not_install_is_reported_and_the_rest_goes_on(
    tmp_path, bench_module, monkeypatch, capsys
):
    setup = bench_module("peers_setup")
    info = "lowtide_peer-1.0.dist-info"
    named = "Metadata-Version: 2.1\nName: lowtide-peer\nVersion: 1.0\n"
    tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(tmp_path / "lowtide_peer-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", named)
        wheel.writestr(f"{info}/WHEEL", tag)
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    setup.setup({"one": ["lowtide-peer==1.0", "no-such-peer==1.0"]}, tmp_path / "peers")
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["one", "lowtide-peer", "1.0"]
    assert "No matching distribution found for no-such-peer==1.0" in second
    reason = setup.why_missing("one", "no-such-peer", tmp_path / "peers")
    assert reason.startswith("does not install: No matching distribution")
    python = setup.python_of("one", tmp_path / "peers")
    assert python.startswith(str(tmp_path))
    assert setup.python_of("two", tmp_path / "peers") == sys.executable


def test_an_older_python_is_a_reason(tmp_path, bench_module, monkeypatch, capsys):
    setup = bench_module("peers_setup")
    monkeypatch.setitem(setup.NEEDS, "next", (99, 0))
    setup.setup({"next": ["numpy==9.9"]}, tmp_path)
    assert "needs Python 99.0" in capsys.readouterr().out
    assert "needs Python 99.0" in setup.why_missing("next", "numpy", tmp_path)


def test_a_newer_python_is_found_among_those_of_pyenv(tmp_path, bench_module, monkeypatch):
    python = tmp_path / "versions" / "99.0.1" / "bin" / "python99.0"
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    setup = bench_module("peers_setup")
    assert setup._interpreter((99, 0)) == str(python)
    assert setup._interpreter((3, 0)) == sys.executable


def test_the_result_file_has_the_structure_of_the_others():
    path = ROOT / "bench" / "results" / "peers.json"
    if path.exists():
        result = json.loads(path.read_text())
        assert list(result) == ["facts", "bars", "labels", "rounds"]
        assert set(result["labels"]) == set(result["rounds"])
