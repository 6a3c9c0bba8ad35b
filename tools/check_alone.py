#!/usr/bin/env python3
"""Compiles every file alone: one that needs another one before it fails here.

The build compiles several files as one, so it would not notice. A public header is compiled with
include/ only, as its reader has it; the others with src/ as well. A header that some .cc includes
before all else is compiled with that. The compiler is clang where there is one, without making
code: its warnings are other ones than those of the build, and errors as well.
"""

import os
import re
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
COMPILER = os.environ.get("CXX", "c++")
if "clang" in COMPILER:
    FLAGS.append("-Wthread-safety")  # checks what core/mutex.h says about locks


def includes_of(file: Path) -> list[str]:
    """Where a file finds what it includes."""
    if file.is_relative_to(ROOT / "include"):
        return [f"-I{ROOT / 'include'}"]
    found = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}"]
    if file.is_relative_to(ROOT / "python"):
        import nanobind

        found += ["-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include")]
    return found


def complaint(file: Path) -> str:
    """What the compiler says about one file; empty when it stands alone."""
    command = [COMPILER, *FLAGS, *includes_of(file), "-x", "c++"]
    if file.suffix == ".cc":
        command += ['-DLOWTIDE_VERSION="0"', str(file)]
    else:
        command += ["-include", str(file), "/dev/null"]
    run = subprocess.run(command, text=True, capture_output=True)
    return run.stderr if run.returncode else ""


def first_include(source: Path) -> str:
    """What a .cc includes first, if that is a file of ours."""
    found = re.search(r'^#include (["<])(.*)[">]', source.read_text(), re.MULTILINE)
    return found[2] if found and found[1] == '"' else ""


def main() -> int:
    sources = [*ROOT.glob("src/**/*.cc"), *ROOT.glob("python/bindings/*.cc")]
    seen = {first_include(source) for source in sources}
    headers = [
        header
        for header in ROOT.glob("src/**/*.h")
        if str(header.relative_to(ROOT / "src")) not in seen
    ]
    files = sorted([*sources, *headers, *ROOT.glob("include/**/*.h")])
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        complaints = [text for text in pool.map(complaint, files) if text]
    print("\n".join(complaints) or f"{len(files)} files compile alone")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
