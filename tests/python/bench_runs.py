"""Runs a benchmark in a process of its own."""

from __future__ import annotations

import pathlib
import subprocess
import sys

SCENARIOS = pathlib.Path(__file__).parents[2] / "bench" / "scenarios"
REPORT = SCENARIOS.parent / "report"


def run_bench(name: str, folder: pathlib.Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs `./dev bench NAME WORDS...` with the interpreter of the tests, in `folder`."""
    return subprocess.run(
        [sys.executable, str(SCENARIOS / f"{name}.py"), *map(str, words)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
