#!/usr/bin/env python3
"""Fails when an include breaks the table of rooms in ARCHITECTURE.md.

The table is read from the paper itself, so that paper and check cannot differ. Usage:
check_layers.py [ROOT]
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROW = re.compile(r"^\| `([\w/]+?)/?` \|.*\| ([^|]*) \|$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>, <cstdint>: no folder, no suffix
INTRINSICS = {"arm_neon.h", "cpuid.h", "immintrin.h"}  # the compiler's own
FACES = {  # folders that see the library as its users do, and what else they may use
    "include/lowtide": (),
    "cli": ("CLI/", "nlohmann/"),
    "python/bindings": ("nanobind/", "Python.h"),
    "examples": (),
}


def rooms(paper: str) -> dict[str, set[str]]:
    """Room -> rooms it may include, from the rows "| `src/engine/` | ... | core os |"."""
    rows = (ROW.match(line) for line in paper.splitlines())
    table = {
        row[1].removeprefix("src/"): set(re.findall(r"[a-z_]+", row[2]))
        for row in rows
        if row and row[1].startswith("src/")
    }
    if not table:
        raise SystemExit("ARCHITECTURE.md: error: the table of rooms was not found")
    return table


def includes(file: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, bracket and name of every include of a file."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def room_rule(room: str, may: set[str], bracket: str, name: str) -> str:
    """The rule that an include in src/<room>/ breaks; empty when it breaks none."""
    folder = name.partition("/")[0] if "/" in name else ""
    if bracket == '"' or folder == "lowtide":
        if folder in {room, "lowtide"} | may:
            return ""
        return f"room {room} may include {' '.join(sorted(may)) or 'no other room'} and lowtide/"
    if room == "os" or STANDARD.match(name) or name in INTRINSICS:
        return ""
    return "only src/os may include system headers"


def face_rule(folder: Path, others: tuple[str, ...], bracket: str, name: str) -> str:
    """The same for a folder that sees only the public headers."""
    if name.startswith("lowtide/") or (bracket == "<" and STANDARD.match(name)):
        return ""
    if others and name.startswith(others):
        return ""
    if bracket == '"' and folder.name != "lowtide" and (folder / name).is_file():
        return ""  # a header of the same folder
    return f"here only {' '.join(['std', 'lowtide/', *others])} may be included"


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in {".h", ".cc"})


def broken(root: Path) -> Iterator[str]:
    """Every wrong include below root, as "file:line: error: ..."."""
    table = rooms((root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    for file in sources(root / "src"):
        path = file.relative_to(root)
        room = path.parts[1]
        if room not in table:
            yield f"{path}:1: error: src/{room}/ has no row in ARCHITECTURE.md"
            continue
        for number, bracket, name in includes(file):
            if rule := room_rule(room, table[room], bracket, name):
                yield f"{path}:{number}: error: includes {name}: {rule}"
    for face, others in FACES.items():
        for file in sources(root / face):
            for number, bracket, name in includes(file):
                if rule := face_rule(root / face, others, bracket, name):
                    yield f"{file.relative_to(root)}:{number}: error: includes {name}: {rule}"


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    complaints = list(broken(root))
    print("\n".join(complaints) or "every include keeps to the table of rooms")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
