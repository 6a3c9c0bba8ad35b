#!/usr/bin/env python3
"""Fails if an include breaks the table of rooms in ARCHITECTURE.md, or if a file outside src/format
names a format.

It reads the table from that file, so that document and check cannot differ, and the formats' words
and suffixes from src/format. Usage: check_layers.py [ROOT]
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROW = re.compile(r"^\| `([\w/]+?)/?` \|.*\| ([^|]*) \|$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>, <cstdint>: no folder, no suffix
SYSTEM_ROOMS = {"os", "system"}  # the rooms that may include system headers
INTRINSICS = {"arm_neon.h", "cpuid.h", "immintrin.h"}  # the compiler's own
FACES = {  # folders that see only the public headers, and what else they may include
    "include/lowtide": (),
    "cli": ("CLI/", "nlohmann/"),
    "python/bindings": ("nanobind/", "Python.h", "os/per_process.h"),  # one rule for forks
    "examples": (),
}
FORMAT_WORD = re.compile(r'(?:kWord|\.word|\.alias) = "(\w+)"')
FORMAT_SUFFIX = re.compile(r'(?:k\w*Suffix|\.suffix|\.index_suffix) = "(\.\w+)"')
FORMAT_DECLARED = re.compile(r"^(?:extern|constinit) const TokenFormat kFormat", re.MULTILINE)
TOKEN_OF_CODE = re.compile(r'//.*|"((?:[^"\\]|\\.)*)"')  # a comment or a string literal


def rooms(paper: str) -> dict[str, set[str]]:
    """Maps each room to the rooms it may include, from rows "| `src/engine/` | ... | core os |"."""
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
    """Yields line number, bracket and name of every include in a file."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def room_rule(room: str, may: set[str], bracket: str, name: str) -> str:
    """Returns the rule that an include in src/<room>/ breaks; empty if it breaks none."""
    folder = name.partition("/")[0] if "/" in name else ""
    if bracket == '"' or folder == "lowtide":
        if folder in {room, "lowtide"} | may:
            return ""
        return f"room {room} may include {' '.join(sorted(may)) or 'no other room'} and lowtide/"
    if room in SYSTEM_ROOMS or STANDARD.match(name) or name in INTRINSICS:
        return ""
    return "only src/os and src/system may include system headers"


def face_rule(folder: Path, others: tuple[str, ...], bracket: str, name: str) -> str:
    """Does the same for a folder that sees only the public headers."""
    if name.startswith("lowtide/") or (bracket == "<" and STANDARD.match(name)):
        return ""
    if others and name.startswith(others):
        return ""
    if bracket == '"' and folder.name != "lowtide" and (folder / name).is_file():
        return ""  # a header of the same folder
    return f"here only {' '.join(['std', 'lowtide/', *others])} may be included"


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in {".h", ".cc"})


def format_words(root: Path) -> tuple[set[str], set[str]]:
    """Returns what only src/format may say: words and suffixes, and headers of single formats."""
    words: set[str] = set()
    headers: set[str] = set()
    for file in sources(root / "src" / "format"):
        text = file.read_text(encoding="utf-8")
        named = FORMAT_WORD.findall(text)
        words.update(named, FORMAT_SUFFIX.findall(text))
        if named or FORMAT_DECLARED.search(text):
            headers.add(f"format/{file.stem}.h")
    return words, headers


def literals(file: Path) -> Iterator[tuple[int, str]]:
    """Yields line number and value of every string literal, without comments and docstrings."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not INCLUDE.match(line):
            for match in TOKEN_OF_CODE.finditer(line):
                if match[1] is not None:
                    yield number, match[1]


def told_formats(root: Path) -> Iterator[str]:
    """Yields every place outside src/format that names a format, so that adding one needs no other
    change than its files and its line in the registry."""
    words, headers = format_words(root)
    files = [file for file in sources(root / "src") if file.parent.name != "format"]
    files += [file for face in FACES if face != "examples" for file in sources(root / face)]
    files += sorted((root / "python" / "lowtide").rglob("*.py"))
    for file in files:
        path = file.relative_to(root)
        for number, text in literals(file):
            if text in words:
                yield f'{path}:{number}: error: "{text}": only src/format knows formats by name'
        if file.suffix != ".py":
            for number, _, name in includes(file):
                if name in headers:
                    yield f"{path}:{number}: error: includes {name}: ask the registry of formats"


def broken(root: Path) -> Iterator[str]:
    """Yields every wrong include and every format's name below root as "file:line: error: ..."."""
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
    yield from told_formats(root)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    complaints = list(broken(root))
    print("\n".join(complaints) or "every include follows the table; only src/format names formats")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
