#!/usr/bin/env python3
"""Compiles every file alone: one that needs another one before it fails here.

The build compiles several files as one, so it would not notice. A public header is compiled with
include/ only, as its reader has it; the others with src/ as well. A header that some .cc includes
before all else is compiled with that. The compiler is clang where there is one, without making
code: its warnings are other ones than those of the build, and errors as well.

Parsing the standard library is most of the work, so clang parses popular sets of its headers once.
A file gets only such headers as the file under test includes anyway, itself or through others: it
sees no name that it would not see without.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
COMPILER = os.environ.get("CXX", "c++")
if "clang" in COMPILER:
    FLAGS.append("-Wthread-safety")  # checks what core/mutex.h says about locks
INCLUDE = re.compile(r'^#include (["<])(.*)[">]', re.MULTILINE)
COSTLY = frozenset(
    "algorithm atomic chrono condition_variable filesystem functional map memory mutex string"
    " thread variant vector nanobind/nanobind.h".split()
)
SETS = 16  # more of them take longer to make than they save


def includes_of(file: Path) -> list[str]:
    """Where a file finds what it includes."""
    if file.is_relative_to(ROOT / "include"):
        return [f"-I{ROOT / 'include'}"]
    found = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}"]
    if file.is_relative_to(ROOT / "python"):
        import nanobind

        found += ["-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include")]
    return found


def complaint(file: Path, ready: dict[frozenset[str], Path]) -> str:
    """What the compiler says about one file; empty when it stands alone."""
    command = [COMPILER, *FLAGS, *includes_of(file), "-x", "c++"]
    own = costly_of(file)
    if fit := max((names for names in ready if names <= own), key=len, default=None):
        command += ["-include-pch", str(ready[fit])]
    if file.suffix == ".cc":
        command += ['-DLOWTIDE_VERSION="0"', str(file)]
    else:
        command += ["-include", str(file), "/dev/null"]
    run = subprocess.run(command, text=True, capture_output=True)
    return run.stderr if run.returncode else ""


def first_include(source: Path) -> str:
    """What a .cc includes first, if that is a file of ours."""
    found = INCLUDE.search(source.read_text())
    return found[2] if found and found[1] == '"' else ""


def ours(name: str, beside: Path) -> Path | None:
    """The file of this tree that an #include names."""
    for folder in (ROOT / "src", ROOT / "include", beside):
        if (folder / name).is_file():  # a room may be called like a header: span
            return folder / name
    return None


@cache
def costly_below(file: Path) -> frozenset[str]:
    """The costly headers that a file includes, itself or through files of ours."""
    found: set[str] = set()
    for _, name in INCLUDE.findall(file.read_text()):
        inner = ours(name, file.parent)
        found |= costly_below(inner) if inner else COSTLY & {name}
    return frozenset(found)


def costly_of(file: Path) -> frozenset[str]:
    """The same of what is under test: for a .cc, that is the header that it begins with."""
    first = ours(first_include(file), file.parent) if file.suffix == ".cc" else None
    return costly_below(first if first and first.is_file() else file)


def precompile(
    files: Iterable[Path], folder: Path, pool: ThreadPoolExecutor
) -> dict[frozenset[str], Path]:
    """Precompiled headers of the most frequent sets, by set."""
    if "clang" not in COMPILER:
        return {}
    count = Counter(costly_of(file) for file in files)
    count.pop(frozenset(), None)
    ready = {names: folder / f"{n}.pch" for n, (names, _) in enumerate(count.most_common(SETS))}

    def make(names: frozenset[str]) -> None:
        header = ready[names].with_suffix(".h")
        header.write_text("".join(f"#include <{name}>\n" for name in sorted(names)))
        anywhere = includes_of(ROOT / "python" / header.name)
        command = [COMPILER, *FLAGS, *anywhere, "-x", "c++-header", str(header)]
        command.remove("-fsyntax-only")
        # With what the headers instantiate, or every file that gets them would do it again.
        command.append("-fpch-instantiate-templates")
        subprocess.run([*command, "-o", str(ready[names])], check=True)

    list(pool.map(make, ready))
    return ready


def main() -> int:
    sources = [*ROOT.glob("src/**/*.cc"), *ROOT.glob("python/bindings/*.cc")]
    seen = {first_include(source) for source in sources}
    headers = [
        header
        for header in ROOT.glob("src/**/*.h")
        if str(header.relative_to(ROOT / "src")) not in seen
    ]
    files = sorted([*sources, *headers, *ROOT.glob("include/**/*.h")])
    jobs = int(os.environ.get("JOBS", "2"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        ready = precompile(files, Path(folder), pool)
        texts = pool.map(lambda file: complaint(file, ready), files)
        complaints = [text for text in texts if text]
    print("\n".join(complaints) or f"{len(files)} files compile alone")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
