"""`lowtide guard` as the tests run it, and a file for its programs to map."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
COMMAND = shutil.which("lowtide", path=str(pathlib.Path(sys.executable).parent))
MIB = 1 << 20
LIMIT = 64 * MIB
SIZE = 192 * MIB
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}

SHIM = pathlib.Path(COMMAND or "").parent.parent / "lib" / "lowtide" / "liblowtide_guard.so"

needs_command = pytest.mark.skipif(
    COMMAND is None, reason="the command is not installed: built with LOWTIDE_COMMAND=OFF"
)


def write_pages(path):
    """SIZE bytes; every page holds its number."""
    pages = np.zeros((SIZE // 4096, 512), dtype="<u8")
    pages[:, 0] = np.arange(len(pages))
    pages.tofile(path)
    return path


def compiled(folder, source, *flags):
    """The program of one C++ file."""
    compiler = shutil.which("c++") or pytest.skip("no C++ compiler")
    path = folder / (pathlib.Path(source).stem + "".join(flags))
    run = subprocess.run(
        [compiler, "-std=c++20", "-O2", str(source), "-o", str(path), "-pthread", *flags],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0 and "-static" in flags:
        pytest.skip("no static libraries to link with")
    assert run.returncode == 0, run.stderr
    return path


def guard(*words, limit="64MiB", timeout_s=300, **more):
    return subprocess.run(
        [COMMAND, "guard", "--limit", limit, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        **more,
    )


def peak_of(text):
    """From "peak 61.2 MiB of mapped files (limit 64 MiB), 12 trims in 1 process; ..."."""
    number, unit, trims = re.search(
        r"peak ([\d.]+) (\w+) of .*?, ([\d,]+) trims? in", text
    ).groups()
    return float(number) * UNITS[unit], int(trims.replace(",", ""))
