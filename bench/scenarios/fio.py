"""fio on the same file: what the disk delivers to a program that only reads."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from cgroup import MemoryGroup

# Submitting reads one at a time halves fio's rate. The comparison uses its best mode.
_BATCHED = [
    "--iodepth_batch=32",
    "--iodepth_batch_complete_min=16",
    "--iodepth_batch_complete_max=64",
]
_PATTERNS = {
    "random": ["--rw=randread", "--bs=1k", "--iodepth=128", *_BATCHED],
    "windows": ["--rw=randread", "--bs=2k", "--iodepth=128", *_BATCHED],
    "pages": ["--rw=randread", "--bs=4k", "--iodepth=128", *_BATCHED],
    "sequential": ["--rw=read", "--bs=1M", "--iodepth=8"],
}


def run(path: str, pattern: str, seconds: float, group: MemoryGroup | None) -> dict[str, Any]:
    """Returns reads, bytes, seconds and CPU seconds, or {"error": why} if fio cannot run."""
    if shutil.which("fio") is None:
        return {"error": "fio is not installed"}
    reason = ""
    for engine in ("io_uring", "libaio"):
        argv = ["fio", "--name=lowtide", f"--filename={path}", "--readonly", "--direct=1"]
        argv += [*_PATTERNS[pattern], f"--ioengine={engine}", "--output-format=json"]
        argv += ["--time_based", f"--runtime={seconds:g}", "--thread", "--gtod_reduce=1"]
        done = subprocess.run(
            group.command(argv) if group else argv, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            report = json.loads(done.stdout[done.stdout.index("{") :])
            return _found(report, [f"--ioengine={engine}", "--direct=1", *_PATTERNS[pattern]])
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:][0]
    return {"error": reason.replace(path, "FILE")}


def _found(report: dict[str, Any], options: list[str]) -> dict[str, Any]:
    job = report["jobs"][0]
    read = job["read"]
    seconds = read["runtime"] / 1000
    return {
        "reads": read["total_ios"],
        "bytes": read["io_bytes"],
        "seconds": seconds,
        "user_s": job["usr_cpu"] / 100 * job["job_runtime"] / 1000,
        "system_s": job["sys_cpu"] / 100 * job["job_runtime"] / 1000,
        "notes": {"options": " ".join(options)},
    }
