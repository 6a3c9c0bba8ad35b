"""`./dev bench --peers dlio`: scaled loads, our classes for DLIO, its results; and DLIO itself."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import types

import numpy as np
import pytest
from bench_runs import run_bench

ROOT = pathlib.Path(__file__).parents[2]
PEERS = pathlib.Path(os.environ.get("LOWTIDE_PEERS", ROOT / ".dev" / "peers"))
PUBLISHED = {
    "model": "unet3d",
    "dataset": {"record_length": 146_600_628, "record_length_resize": 2_097_152},
    "reader": {"batch_size": 8, "read_threads": 1},
    "train": {"computation_time": 0.32},
}


def test_a_scaled_load_demands_the_same_bytes_per_second(bench_module):
    dlio = bench_module("peers_dlio")
    whole = dlio.demand_bytes_per_s(dlio.scaled(PUBLISHED, dlio.Scale()))
    load = dlio.scaled(PUBLISHED, dlio.Scale(sample=16, batch=2))
    assert load["dataset.record_length"] == 146_600_628 // 16
    assert load["dataset.record_length_resize"] == 2_097_152 // 16
    assert load["reader.batch_size"] == 4
    assert load["train.computation_time"] == pytest.approx(0.01)
    assert load["dataset.num_files_train"] == 100 * 4  # a second
    assert dlio.demand_bytes_per_s(load) == pytest.approx(whole)
    slower = dlio.scaled(PUBLISHED, dlio.Scale(sample=16, batch=2, slower=4))
    assert dlio.demand_bytes_per_s(slower) == pytest.approx(whole / 4)
    assert dlio.scaled(PUBLISHED, dlio.Scale(), 0.1)["dataset.num_files_train"] == 4 * 8


def test_the_summary_of_dlio_has_percentages(bench_module):
    metric = {
        "train_au_mean_percentage": 87.5,
        "train_throughput_mean_samples_per_second": 115.2,
    }
    found = bench_module("peers_dlio").of_summary({"metric": metric})
    assert found == {"rate": 115.2, "utilisation": 0.875}


class Base:
    """Stands for the classes of DLIO that ours extend."""

    settings = types.SimpleNamespace()

    def __init__(self, *_: object) -> None:
        self._args, self._file_list = self.settings, self.settings.file_list_train
        self.dataset_type, self.batch_size = "train", self.settings.batch_size


@pytest.fixture
def reader_module(bench_module, monkeypatch, tmp_path):
    """`dlio_reader` with stubs of DLIO, whose settings name six files."""
    files = [str(tmp_path / f"img_{number}.npy") for number in range(6)]
    for number, name in enumerate(files):
        np.save(name, np.random.default_rng(number).integers(255, size=(9, 7, 2), dtype=np.uint8))
    for name in ("common.enumerations", "data_loader.base_data_loader", "reader.npy_reader"):
        module = types.ModuleType(f"dlio_benchmark.{name}")
        module.NPYReader = module.BaseDataLoader = Base
        module.DatasetType = types.SimpleNamespace(TRAIN="train")
        module.DataLoaderType = types.SimpleNamespace(PYTORCH="pytorch")
        module.Shuffle = types.SimpleNamespace(OFF="off")
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "dlio_reader", raising=False)
    image = np.zeros((2, 2), np.uint8)
    Base.settings = types.SimpleNamespace(
        file_list_train=files, batch_size=3, seed=1, sample_shuffle="seed", resized_image=image
    )
    yield bench_module("dlio_reader")
    sys.modules.pop("dlio_reader", None)


def test_our_reader_reads_what_numpy_loads(reader_module):
    reader = reader_module.LowtideReader("train", 0, 1)
    for name in reversed(Base.settings.file_list_train):
        for sample in (1, 0):
            reader.open(name)
            np.testing.assert_array_equal(
                reader.get_sample(name, sample), np.load(name)[..., sample]
            )


def test_our_loader_reads_each_file_once(reader_module, monkeypatch):
    compared = []
    monkeypatch.setattr(reader_module, "_compare", lambda name, *_: compared.append(name))
    loader = reader_module.CheckedLoader("npy", "train", 1)
    loader.read()
    assert [batch.shape for batch in loader.next()] == [(3, 2, 2)] * 2
    assert sorted(compared) == Base.settings.file_list_train


def test_the_check_finds_a_byte_that_differs(reader_module, monkeypatch):
    reader = reader_module.CheckedReader("train", 0, 1)
    loader = reader_module.CheckedLoader("npy", "train", 1)
    loader.read()
    name = Base.settings.file_list_train[2]
    reader.get_sample(name, 0)
    load = np.load

    def other(path):
        found = load(path)
        found[4, 4, 0] += path == name
        return found

    monkeypatch.setattr(reader_module.np, "load", other)
    reader.get_sample(name, 1)
    with pytest.raises(ValueError, match=r"img_2\.npy: a sample differs"):
        reader.get_sample(name, 0)
    with pytest.raises(ValueError, match=r"img_2\.npy: a sample differs"):
        list(loader.next())


def run_dlio(folder, environments):
    out = folder / "out.json"
    words = ["dlio", "--quick", "--data", folder / "data", "--environments", environments]
    done = run_bench("peers", folder, *words, "--out", out)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list((folder / "data").iterdir())  # the data is removed
    assert str(folder) not in out.read_text() and str(environments) not in out.read_text()
    return json.loads(out.read_text()), done.stdout


@pytest.mark.slow
def test_without_dlio_each_load_says_how_to_install_it(tmp_path):
    result, table = run_dlio(tmp_path, tmp_path / "none")
    assert len(result["rounds"]) == len(result["labels"]) == 24
    for found in result["rounds"].values():
        assert [one["error"] for one in found] == [
            "dlio-benchmark is not installed: ./dev bench --peers setup"
        ]
    assert "unet3d_h100: lowtide, loader: dlio-benchmark is not installed" in table


@pytest.mark.slow
def test_dlio_runs_its_loads_with_its_reader_and_with_ours(tmp_path, bench_module):
    if not (PEERS / "dlio" / "bin" / "dlio_benchmark").exists():
        pytest.skip("dlio_benchmark is not in .dev/peers or LOWTIDE_PEERS")
    result, _ = run_dlio(tmp_path, PEERS)
    facts = result["facts"]["scenarios"]["dlio"]
    assert facts["loads"]["unet3d_h100"]["dataset.record_length"] == 146_600_628 // 32
    assert result["facts"]["versions"]["dlio-benchmark"]
    for key, (one,) in result["rounds"].items():
        assert "error" not in one, (key, one["error"])
        assert one["rate"] > 0 and 0 < one["utilisation"] <= 1, key
    works = {bar["work"] for bar in result["bars"]}
    assert {"dlio, hot, unet3d_a100", "dlio, cold, resnet50_h100"} <= works and len(works) == 8
    made = bench_module("values").Result(result)
    table = bench_module("pages").Texts({}, {"peers": made}).table("peers.dlio").splitlines()
    used = "accelerator used"
    assert table[0] == f"| dlio: samples/s | cached | {used}, cached | on disk | {used}, on disk |"
    assert len(table) == 2 + 12 and table[3].startswith("| **unet3d_h100: lowtide, reader")
    assert table[3].count("%") == 2
