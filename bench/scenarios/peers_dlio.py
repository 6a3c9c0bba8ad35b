"""DLIO, the load generator of MLPerf Storage, with its own reader of .npy files and with ours.

DLIO starts loader processes, reads each sample, and sleeps for the time that the accelerator would
compute. Its result is the utilisation of that accelerator. `dlio_reader` has the reader of ours.
The load is its unet3d (one sample per file, batches of 7) with smaller files: its samples of 140 MB
and its 0.323 s per step (H100) are divided by SCALE, so that the bytes per second stay the same.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import peers_setup
import residency

SCALE = 16
READERS = {"dlio_npy": "DLIO, its npy reader", "dlio_lowtide": "DLIO, reader of lowtide"}
OURS = "dlio_lowtide"
UNET3D = {
    "dataset.format": "npy",
    "dataset.num_files_train": 112,
    "dataset.num_samples_per_file": 1,
    "dataset.record_length": 146600628 // SCALE,
    "dataset.record_length_stdev": 0,
    "dataset.record_length_resize": 2097152 // SCALE,
    "reader.batch_size": 7,
    "reader.read_threads": 2,
    "train.epochs": 1,
    "train.computation_time": 0.323 / SCALE,
}


def _run(folder: str, environments: Path, **more: object) -> str:
    """Runs DLIO once; returns why it failed, or nothing."""
    python = Path(peers_setup.python_of("dlio", environments))
    told = UNET3D | {"dataset.data_folder": f"{folder}/data", "workflow.checkpoint": False} | more
    argv = [str(python.parent / "mpiexec"), "-n", "1", str(python.parent / "dlio_benchmark")]
    argv += ["workload=unet3d_h100", f"++hydra.run.dir={folder}/out"]
    argv += [f"++workload.{name}={value}" for name, value in told.items()]
    here = str(Path(__file__).parent)
    try:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False,
            env=os.environ | {"PYTHONPATH": here, "PATH": f"{python.parent}:{os.environ['PATH']}"},
        )  # fmt: skip
    except FileNotFoundError:
        return peers_setup.why_missing("dlio", "dlio-benchmark", environments)
    except subprocess.TimeoutExpired:
        return "no answer in time"
    return (done.stderr.strip().splitlines() or ["failed"])[-1] if done.returncode else ""


def _measured(folder: str, reader: str, work: str, environments: Path) -> dict[str, Any]:
    for path in glob.glob(f"{folder}/data/train/*.npy"):
        residency.evict(path) if work == "cold" else residency.warm(path)
    files = glob.glob(f"{folder}/data/train/*.npy")
    before = [
        fraction for path in files if (fraction := residency.cached_fraction(path)) is not None
    ]
    own = {"reader.reader_classname": "dlio_reader.LowtideReader"}
    why = _run(folder, environments, **(own if reader == OURS else {}))
    if why:
        return {"error": why, "residency": "not asked"}
    metric = json.loads(Path(folder, "out", "summary.json").read_text(encoding="utf-8"))["metric"]
    wrong = work == "cold" and max(before, default=0.0) > residency.COLD_FRACTION
    return {
        "rate": metric["train_throughput_mean_samples_per_second"],
        "utilisation": metric["train_au_mean_percentage"] / 100,
        "resident_before": max(before, default=None)
        if work == "cold"
        else min(before, default=None),
        "residency": "wrong" if wrong else "ok",
    }


def measure(rounds: int, folder: str | None, environments: Path) -> dict[str, list[dict[str, Any]]]:
    """Alternates the readers; returns the rounds by key."""
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="lowtide-dlio-", dir=folder) as made:
        why = _run(made, environments, **{"workflow.generate_data": True, "workflow.train": False})
        for _ in range(rounds):
            for work in ("hot", "cold"):
                for reader in READERS:
                    one = {"error": why, "residency": "not asked"}
                    one = one if why else _measured(made, reader, work, environments)
                    found.setdefault(f"dlio-{work}-{reader}", []).append(one)
    return found
