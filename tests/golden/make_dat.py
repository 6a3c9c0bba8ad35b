"""Write the .dat files of tests/golden/dat with mprof, and what it reads back as expected.txt.

Usage: python make_dat.py FOLDER

expected.txt has one line a file, fields separated by tabs: name, MEM lines, CHLD lines, peak of MEM
in MiB, calls of functions.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import mprof

CHILDREN = """
import subprocess, sys, time
source = "import time; x = b'x' * (8 << 20); time.sleep(0.6)"
child = subprocess.Popen([sys.executable, "-c", source])
time.sleep(0.3)
x = b"x" * (16 << 20)
child.wait()
"""

FUNCTIONS = """
import time

@profile
def grow():
    time.sleep(0.2)
    return b"x" * (16 << 20)

if __name__ == "__main__":
    kept = [grow(), grow()]
    time.sleep(0.2)
"""


def record(folder: Path, name: str, options: list[str], source: str) -> None:
    """Run `source` under mprof; paths of this machine do not get into the file."""
    with tempfile.TemporaryDirectory() as work:
        script = Path(work) / f"{name} of memory.py"
        script.write_text(source, encoding="utf-8")
        out = Path(work) / f"{name}.dat"
        command = ["mprof", "run", *options, "-o", str(out), str(script)]
        subprocess.run(command, check=True, cwd=work, capture_output=True)
        text = out.read_text(encoding="utf-8")
        text = text.replace(str(script), script.name)
        text = re.sub(r"CMDLINE \S+", "CMDLINE python", text)
        (folder / f"{name}.dat").write_text(text, encoding="utf-8")


def expectation(path: Path) -> str:
    read = mprof.read_mprofile_file(str(path))
    children = sum(len(points) for points in read["children"].values())
    calls = sum(len(points) for points in read["func_timestamp"].values())
    peak = max(read["mem_usage"])
    return f"{path.name}\t{len(read['mem_usage'])}\t{children}\t{peak:.6f}\t{calls}\n"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record(folder, "children", ["--multiprocess"], CHILDREN)
    record(folder, "functions", ["--python"], FUNCTIONS)
    lines = [expectation(path) for path in sorted(folder.glob("*.dat"))]
    (folder / "expected.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
