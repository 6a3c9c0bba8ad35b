"""DLIO, the load generator of MLPerf Storage, with its own reader of .npy files and with Lowtide.

DLIO starts loader processes, reads each sample, and sleeps for the time that the accelerator would
compute. Its result is the utilisation of that accelerator. `dlio_reader` has our reader, which
DLIO's processes call, and our loader, which replaces them.

The loads are published by DLIO. Sample size, batch size and time per step are read from its own
files at run time. SCALES fits them to a disk of about 0.8 GB/s and two processors. It divides the
sample size or the batch size, and the time per step by the same number, so that the bytes per
second stay the same. If that is still too much for such a disk, `slower` lengthens the steps:

    unet3d     samples of 1/32; a step takes 4 times as long: a quarter of an accelerator
    resnet50   batches of 1/8
    cosmoflow  a step takes twice as long: half an accelerator

There are as many files as an accelerator that never waits reads in a second: 0.2 to 0.8 GB. In all
loads, a file is a .npy with one sample of the mean size, because DLIO's PyTorch loader supports one
sample per file. The samples are shuffled, a processor has one loader process, and no checkpoints
are written.
Other published loads are not here: bert reads 124 kB/s, and dlrm and megatron_deepspeed read
windows of one large file.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lowtide
import peers_setup
import rounds
from cgroup import MemoryGroup
from rounds import Method, say

SECONDS = 1.0  # that the accelerator computes in a run
LEAST_STEPS = 4
QUIET = {"DFTRACER_ENABLE": "0", "HYDRA_FULL_ERROR": "1"}  # no trace of each call; real reasons


@dataclass(frozen=True)
class Scale:
    """What a load is divided by, and how much longer a step takes then."""

    sample: int = 1
    batch: int = 1
    slower: int = 1


SCALES = {
    "unet3d_h100": Scale(sample=32, slower=4),
    "unet3d_a100": Scale(sample=32, slower=4),
    "resnet50_h100": Scale(batch=8),
    "cosmoflow_h100": Scale(slower=2),
}
READERS = {
    "dlio_npy": "DLIO, its npy reader",
    "lowtide_reader": "lowtide, reader in DLIO's processes",
    "lowtide_loader": "lowtide, loader",
}
OURS = ("lowtide_reader", "lowtide_loader")


def scaled(published: dict[str, Any], scale: Scale, seconds: float = SECONDS) -> dict[str, Any]:
    """The settings of DLIO that make a published load smaller, for `seconds` of computing."""
    dataset, reader = published["dataset"], published["reader"]
    length = int(dataset["record_length"]) // scale.sample
    batch_size = reader["batch_size"] // scale.batch
    step_s = published["train"]["computation_time"] * scale.slower / (scale.sample * scale.batch)
    files = max(LEAST_STEPS, round(seconds / step_s)) * batch_size
    return {
        "framework": "pytorch",
        "workflow.checkpoint": False,
        "checkpoint.model_size": 1024,  # DLIO makes a model of this size even so
        "dataset.format": "npy",
        "dataset.num_files_train": files,
        "dataset.num_samples_per_file": 1,
        "dataset.record_length": length,
        "dataset.record_length_stdev": 0,
        "dataset.record_length_resize": dataset.get("record_length_resize", 0) // scale.sample,
        "reader.data_loader": "pytorch",
        "reader.batch_size": batch_size,
        "reader.read_threads": min(reader["read_threads"], len(os.sched_getaffinity(0))),
        "reader.sample_shuffle": "seed",
        "train.epochs": 1,
        "train.computation_time": step_s,
    }


def demand_bytes_per_s(load: dict[str, Any]) -> float:
    """What an accelerator reads that never waits."""
    batch_bytes = load["dataset.record_length"] * load["reader.batch_size"]
    return float(batch_bytes / load["train.computation_time"])


def of_summary(summary: dict[str, Any]) -> dict[str, float]:
    """Samples per second and utilisation, from 0 to 1, in the summary.json of DLIO."""
    metric = summary["metric"]
    return {
        "rate": metric["train_throughput_mean_samples_per_second"],
        "utilisation": metric["train_au_mean_percentage"] / 100,
    }


def _classes(reader: str, checked: bool = False) -> dict[str, str]:
    """The settings that make DLIO read with one of READERS."""
    kind = "Checked" if checked else "Lowtide"
    if reader == "lowtide_reader":
        return {"reader.reader_classname": f"dlio_reader.{kind}Reader"}
    if reader == "lowtide_loader":
        name = f"dlio_reader.{kind}Loader"
        return {"reader.data_loader_classname": name, "reader.data_loader_sampler": "index"}
    return {}


class Dlio:
    """A process that has imported DLIO; see `dlio_worker`. `why` says why there is none."""

    def __init__(self, folder: str, environments: Path) -> None:
        self._folder, self._environments = folder, environments
        self.why = ""
        here, own = Path(__file__).parent, Path(lowtide.__file__).parents[1]
        python = peers_setup.python_of("dlio", environments)
        with open(f"{folder}/worker.log", "w", encoding="utf-8") as log:
            self._worker = subprocess.Popen(
                [python, str(here / "dlio_worker.py"), str(own)],
                cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env=os.environ | {"PYTHONPATH": str(here)} | QUIET,
            )  # fmt: skip

    def __enter__(self) -> Dlio:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.communicate()  # the end of its input ends it

    def ask(self, **task: Any) -> Any:
        """The answer to a task; None if the process has ended."""
        assert self._worker.stdin is not None and self._worker.stdout is not None
        try:
            print(json.dumps(task), file=self._worker.stdin, flush=True)
        except BrokenPipeError:
            pass  # there is no answer, then
        line = self._worker.stdout.readline()
        if line:
            return json.loads(line)
        said = Path(self._folder, "worker.log").read_text(encoding="utf-8", errors="replace")
        self.why = self._plain((said.strip().splitlines() or ["ended"])[-1])
        if "No module named" in self.why:
            self.why = peers_setup.why_missing("dlio", "dlio-benchmark", self._environments)
        return None

    def run(self, workload: str, settings: dict[str, Any]) -> str:
        """Runs DLIO once; returns why it failed, or nothing."""
        argv = [f"workload={workload}", f"++hydra.run.dir={self._folder}/out"]
        argv += [f"++workload.{name}={value}" for name, value in settings.items()]
        failed = self.ask(argv=argv, log=f"{self._folder}/dlio.log")
        return self.why if failed is None else self._plain(failed)

    def _plain(self, text: str) -> str:
        """A reason without the folders of this machine."""
        return text.replace(self._folder, "DIR").replace(str(self._environments), "ENV")


class Bench(rounds.Bench):
    """Measures the loads with all READERS."""

    def __init__(self, folder: str, dlio: Dlio, seconds: float = SECONDS) -> None:
        super().__init__(
            folder, None
        )  # DLIO reads each file once: a limit would not make it colder
        self._dlio, self._seconds = dlio, seconds
        self.loads: dict[str, dict[str, Any]] = {}
        self._why: dict[str, str] = {}  # loads, or a load and a reader, that cannot be measured

    def prepare(self) -> None:
        """Writes the files of each load, and compares each sample that ours read with np.load."""
        for name, scale in SCALES.items():
            started_s = time.monotonic()
            published = self._dlio.ask(name=name)
            if published is None:
                self._why[name] = self._dlio.why
                continue
            load = self.loads[name] = scaled(published, scale, self._seconds)
            files = load["dataset.num_files_train"]
            load["dataset.data_folder"] = f"{self.path}/{name}"
            making = {"workflow.generate_data": True, "workflow.train": False}
            self._why[name] = self._dlio.run(name, load | making)
            for reader in OURS:
                checking = load | _classes(reader, checked=True)
                why = self._why.get(name) or self._dlio.run(name, checking)
                self._why[f"{name}-{reader}"] = why
                say(f"{name}, {READERS[reader]}: {why or f'{files} files verified'}")
            say(f"{name}: {time.monotonic() - started_s:.0f} s")

    def facts(self) -> dict[str, Any]:
        """The loads as they were run."""
        return {
            name: {key: value for key, value in load.items() if key != "dataset.data_folder"}
            | {"demand_bytes_per_s": demand_bytes_per_s(load)}
            for name, load in self.loads.items()
        }

    def files(self, method: Method) -> list[str]:
        return glob.glob(f"{self.loads[method.options['load']]['dataset.data_folder']}/train/*.npy")

    def measure(self, method: Method) -> None:
        load = method.options["load"]
        why = self._why.get(load) or self._why.get(f"{load}-{method.reader}")
        if why:
            self.found.setdefault(method.key, []).append({"error": why, "residency": "not asked"})
        else:
            super().measure(method)

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        name = method.options["load"]
        why = self._dlio.run(name, self.loads[name] | _classes(method.reader))
        if why:
            return {"error": why}
        summary = Path(self.path, "out", "summary.json")
        found = of_summary(json.loads(summary.read_text(encoding="utf-8")))
        summary.unlink()
        return found

    def rate(self, found: dict[str, Any]) -> str:
        return f"{found['rate']:,.1f} samples/s, accelerator used {found['utilisation']:.1%}"


def methods() -> list[Method]:
    """Returns all methods. A key is dlio-work-load-reader."""
    return [
        Method(f"dlio-{work}-{load}-{reader}", f"{load}: {label}", work, reader, {"load": load})
        for work in ("hot", "cold")
        for load in SCALES
        for reader, label in READERS.items()
    ]


def measure(
    chosen: list[Method], count: int, folder: str, environments: Path, seconds: float
) -> Bench:
    """Runs the rounds in a folder of their own below `folder`."""
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lowtide-dlio-", dir=folder) as made:
        with Dlio(made, environments) as dlio:
            bench = Bench(made, dlio, seconds)
            bench.prepare()
            bench.rounds(chosen, count)
    return bench
