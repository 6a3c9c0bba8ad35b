#!/usr/bin/env python3
"""The benchmark `ceiling`: real programs that map a file, alone and under `lowtide guard`.

The programs read a cached file with np.memmap (a scan, a scan at 1 GB/s or less, shuffled rows),
pyarrow, torch.load(mmap=True), safetensors, sqlite, and two forked workers with their parent. Each
run is a separate process. Every 2 ms its mapped file pages are sampled from outside; in a process
tree, the process with the most pages counts. Pages that were mapped before the file was opened
(libraries) are subtracted. CPU time is user and system time of the program and of guard. Plain and
guarded runs alternate. Shuffled rows are also read from a file of twice the size, because they cost
more when less of the file may stay mapped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import scratch
from processes import read_status

MIB = 1 << 20
BODY_BYTES = 64 << 10
LIMIT_MIB = 256
SAMPLE_S = 0.002
PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "python" / "guard_programs.py"
# name, what, file, pause after each MiB, package
JOBS = (
    ("scan", "np.memmap scan", "data.bin", 0.0, "numpy"),
    ("scan", "np.memmap scan, 1 GB/s", "data.bin", 0.0008, "numpy"),
    ("shuffle", "np.memmap shuffled rows", "data.bin", 0.0, "numpy"),
    ("shuffle", "np.memmap shuffled rows, twice the file", "double.bin", 0.0, "numpy"),
    ("arrow", "pyarrow memory_map", "data.bin", 0.0, "pyarrow"),
    ("torch_load", "torch.load(mmap=True)", "data.pt", 0.0, "torch"),
    ("safetensors_torch", "safetensors", "data.safetensors", 0.0, "safetensors"),
    ("sqlite", "sqlite3, mmap_size", "data.sqlite", 0.0, "sqlite3"),
    ("workers", "two forked workers", "data.bin", 0.0, "numpy"),
)


def write_files(folder: str, size_bytes: int) -> None:
    """Writes the same bytes in every format and reads them once, so that they are cached."""
    data = np.random.default_rng(0).integers(0, 256, size_bytes, dtype=np.uint8)
    data.tofile(os.path.join(folder, "data.bin"))
    with open(os.path.join(folder, "double.bin"), "wb") as file:
        data.tofile(file)
        data.tofile(file)
    if importlib.util.find_spec("torch"):
        import torch

        torch.save({"x": torch.from_numpy(data)}, os.path.join(folder, "data.pt"))
    if importlib.util.find_spec("safetensors"):
        from safetensors.numpy import save_file

        save_file({"x": data}, os.path.join(folder, "data.safetensors"))
    base = sqlite3.connect(os.path.join(folder, "data.sqlite"))
    base.execute("create table rows (id integer primary key, body blob)")
    parts = (data[at : at + BODY_BYTES].tobytes() for at in range(0, size_bytes, BODY_BYTES))
    base.executemany("insert into rows (body) values (?)", ((body,) for body in parts))
    base.commit()
    base.close()


def warm(path: str) -> None:
    with open(path, "rb", buffering=0) as file:
        while file.read(8 * MIB):
            pass


def file_pages(pid: int) -> int:
    """Returns the largest RssFile in a process tree."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        own = read_status(pid).get("file") or 0
    except OSError:
        return 0
    return max([own, *(file_pages(int(child)) for child in children)])


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(job: tuple[str, str, str, float, str], path: str, guarded: bool) -> dict[str, Any]:
    words = [sys.executable, str(PROGRAMS), job[0], path, str(job[3])]
    if guarded:
        command = shutil.which("lowtide", path=os.path.dirname(sys.executable)) or "lowtide"
        words = [command, "guard", "--limit", f"{LIMIT_MIB}MiB", "--", *words]
    warm(path)
    cpu_before = children_cpu_s()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    samples = []
    while process.poll() is None:
        samples.append(file_pages(process.pid))
        time.sleep(SAMPLE_S)
    out, err = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{job[1]}: exit code {process.returncode}: {err}")
    cpu_s = children_cpu_s() - cpu_before
    before, seconds, _ = out.split()
    growth = [max(0, pages - int(before)) for pages in samples]
    limit = LIMIT_MIB * MIB * 1.05
    return {
        "seconds": float(seconds),
        "cpu_seconds": cpu_s,
        "peak_mib": max(growth, default=0) / MIB,
        "within": sum(one <= limit for one in growth) / max(1, len(growth)),
        "told": err.strip(),
    }


def measure(folder: str, rounds: int, only: str) -> list[dict[str, Any]]:
    rows = []
    for job in JOBS:
        if only not in job[1]:
            continue
        if importlib.util.find_spec(job[4]) is None:
            print(f"{job[1]}: skipped, because {job[4]} is not installed")
            continue
        path = os.path.join(folder, job[2])
        pairs = [(run(job, path, False), run(job, path, True)) for _ in range(rounds)]
        rows.append(
            {
                "program": job[1],
                "plain_peak_mib": max(plain["peak_mib"] for plain, _ in pairs),
                "guard_peak_mib": max(ours["peak_mib"] for _, ours in pairs),
                "within_5_percent": statistics.median(ours["within"] for _, ours in pairs),
                "time_ratio": statistics.median(
                    ours["seconds"] / plain["seconds"] for plain, ours in pairs
                ),
                "cpu_ratio": statistics.median(
                    ours["cpu_seconds"] / plain["cpu_seconds"] for plain, ours in pairs
                ),
                "rounds": [{"plain": plain, "guard": ours} for plain, ours in pairs],
            }
        )
        row = rows[-1]
        print(
            f"{row['program']:40} {row['plain_peak_mib']:7.0f} -> {row['guard_peak_mib']:5.0f} MiB"
            f"  within limit + 5 %: {row['within_5_percent']:6.1%}  time x {row['time_ratio']:.2f}"
            f"  CPU x {row['cpu_ratio']:.2f}",
            flush=True,
        )
    return rows


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=2048, help="size of the file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="run only programs whose name contains this")
    parser.add_argument("--folder", help="folder for the files (default: one on a disk)")
    parser.add_argument("-o", "--output", help="file for the result, as JSON")
    told = parser.parse_args(argv)
    folder = os.path.join(told.folder or scratch.scratch_folder(), f"lowtide-guard-{os.getpid()}")
    os.makedirs(folder)
    try:
        write_files(folder, told.mib * MIB)
        result = {
            "machine": machine.describe(folder),
            "command": f"./dev bench ceiling --mib {told.mib} --rounds {told.rounds}"
            + (f" --only {told.only}" if told.only else ""),
            "limit_mib": LIMIT_MIB,
            "rows": measure(folder, told.rounds, told.only),
        }
    finally:
        shutil.rmtree(folder)
    if told.output:
        Path(told.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
