#!/usr/bin/env python3
"""Compiles headers alone: a header that needs another one first fails here.

A public header is compiled with include/ only, as its reader has it; the others with src/ as well.
A header of src/ that some .cc includes before all else is left to the build, which compiles that.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def complaint(header: Path) -> str:
    """What the compiler says about one header; empty when it stands alone."""
    folder = "include" if header.is_relative_to(ROOT / "include") else "src"
    command = [os.environ.get("CXX", "c++"), *FLAGS, f"-I{ROOT / 'include'}"]
    if folder == "src":
        command.append(f"-I{ROOT / 'src'}")
    line = f'#include "{header.relative_to(ROOT / folder)}"\n'
    run = subprocess.run([*command, "-x", "c++", "-"], input=line, text=True, capture_output=True)
    return run.stderr if run.returncode else ""


def first_includes() -> set[str]:
    """What each .cc of src/ includes first, if that is a file of ours."""
    texts = (source.read_text() for source in ROOT.glob("src/**/*.cc"))
    found = (re.search(r'^#include (["<])(.*)[">]', text, re.MULTILINE) for text in texts)
    return {match[2] for match in found if match and match[1] == '"'}


def main() -> int:
    built = first_includes()
    inner = [
        header
        for header in ROOT.glob("src/**/*.h")
        if str(header.relative_to(ROOT / "src")) not in built
    ]
    headers = sorted([*ROOT.glob("include/**/*.h"), *inner])
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        complaints = [text for text in pool.map(complaint, headers) if text]
    print("\n".join(complaints) or f"{len(headers)} headers compile alone")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
