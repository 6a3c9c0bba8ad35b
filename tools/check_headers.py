#!/usr/bin/env python3
"""Compiles each header alone, so that a header that needs another one first fails here.

A public header is compiled with include/ only, as its users do; the others with src/ as well.
Headers of src/ that some .cc file includes first are skipped, because the build covers them.
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
    """Returns the compiler's errors for one header; empty if it compiles alone."""
    folder = "include" if header.is_relative_to(ROOT / "include") else "src"
    command = [os.environ.get("CXX", "c++"), *FLAGS, f"-I{ROOT / 'include'}"]
    if folder == "src":
        command.append(f"-I{ROOT / 'src'}")
    line = f'#include "{header.relative_to(ROOT / folder)}"\n'
    run = subprocess.run([*command, "-x", "c++", "-"], input=line, text=True, capture_output=True)
    return run.stderr if run.returncode else ""


def first_includes() -> set[str]:
    """Returns the headers of ours that some .cc file in src/ includes first."""
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
