"""The floor of a benchmark: bench/floor/floor.cc, which only reads and copies."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).parents[1] / "floor" / "floor.cc"


@functools.cache
def _program() -> tuple[str, str]:
    """Compiles it once per run. Returns its path, or an empty one and the reason."""
    folder = tempfile.TemporaryDirectory(prefix="lowtide-floor-")
    path = os.path.join(folder.name, "floor")
    argv = ["c++", "-std=c++20", "-O3", "-march=native", "-pthread", str(_SOURCE), "-o", path]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        return "", f"no C++ compiler: {error}"
    if done.returncode:
        return "", done.stderr.strip().splitlines()[0]
    _program.folder = folder  # type: ignore[attr-defined] # removed when this process ends
    return path, ""


def run(kind: str, path: str, *numbers: int, seconds: float) -> dict[str, Any]:
    """Returns what was done, seconds and CPU seconds, or {"error": why}."""
    program, why = _program()
    if why:
        return {"error": why}
    argv = [program, kind, path, *map(str, numbers), f"{seconds:g}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        return {
            "error": (done.stderr.strip() or f"exit code {done.returncode}").replace(path, "FILE")
        }
    return json.loads(done.stdout)
