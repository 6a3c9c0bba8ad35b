#!/usr/bin/env python3
"""Fails if an include breaks the tables of rooms and of public headers in ARCHITECTURE.md, if a
file outside the two rooms of formats names a format, or if a room is crowded.

It reads the tables from that file, so that document and check cannot differ, and the formats' words
and suffixes from these rooms. Usage: check_layers.py [ROOT]
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOM_ROW = re.compile(r"^\| `([\w/]+?)/?` \|.*\| ([^|]*) \|$")
HEADER_ROW = re.compile(r"^\| (`[\w/]+\.h`(?:, `[\w/]+\.h`)*) \| ([a-z ]+) \|$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>, <cstdint>: no folder, no suffix
SYSTEM_ROOMS = {"os", "system"}  # the rooms that may include system headers
# Headers of libraries, and the one room that may include each.
LIBRARIES = {"curl/curl.h": "http", "liburing.h": "os"}
LOADS = {("http", "dlfcn.h")}  # a room that may include one system header: it loads libcurl
INTRINSICS = {"arm_neon.h", "cpuid.h", "immintrin.h"}  # the compiler's own
FACES = {  # folders that see only the public headers, and what else they may include
    "include/lowtide": (),
    "cli": ("CLI/", "nlohmann/"),
    "python/bindings": ("nanobind/", "Python.h", "os/per_process.h"),  # one rule for forks
    "examples": (),
}
COMMAND = "lowtide/command/"  # headers that are not installed
COMMAND_USERS = {"cli", "python/bindings"}
MOST_FILES = 30
FORMAT_ROOMS = ("format", "token_format", "chunk_format")
FORMAT_WORD = re.compile(r'(?:kWord|\.word|\.alias) = "(\w+)"')
FORMAT_SUFFIX = re.compile(r'(?:k\w*Suffix|\.suffix|\.index_suffix) = "(\.\w+)"')
FORMAT_DECLARED = re.compile(r"^(?:extern|constinit) const TokenFormat kFormat", re.MULTILINE)
TOKEN_OF_CODE = re.compile(r'//.*|"((?:[^"\\]|\\.)*)"')  # a comment or a string literal


@dataclass(frozen=True)
class Tables:
    """What ARCHITECTURE.md allows."""

    rooms: dict[str, set[str]]  # a room -> the rooms it may include
    headers: dict[str, set[str]]  # a public header -> the rooms that implement it


def tables(paper: str) -> Tables:
    """Reads rows "| `src/engine/` | ... | core os |" and "| `array.h`, `tokens.h` | face |"."""
    rooms, headers = {}, {}
    for line in paper.splitlines():
        row = ROOM_ROW.match(line)
        if row and row[1].startswith("src/"):
            rooms[row[1].removeprefix("src/")] = set(re.findall(r"[a-z_]+", row[2]))
        if row := HEADER_ROW.match(line):
            headers |= {name: set(row[2].split()) for name in re.findall(r"[\w/]+\.h", row[1])}
    if not rooms or not headers:
        raise SystemExit("ARCHITECTURE.md: error: the tables of rooms and headers were not found")
    return Tables(rooms, headers)


def includes(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yields line number, bracket and name of every include in a file."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def room_rule(room: str, known: Tables, bracket: str, name: str) -> str:
    """Returns the rule that an include in src/<room>/ breaks; empty if it breaks none."""
    may = known.rooms[room]
    others = " ".join(sorted(may)) or "no other room"
    folder, _, rest = name.partition("/") if "/" in name else ("", "", "")
    if folder == "lowtide":
        rooms = known.headers.get(rest, set())
        if rooms & {room, *may}:
            return ""
        of = f"rooms {' '.join(sorted(rooms))} implement it" if rooms else "no room implements it"
        return f"{of}, and room {room} may include {others}"
    if bracket == '"':
        if folder in {room, *may}:
            return ""
        return f"room {room} may include {others} and lowtide/"
    if name in LIBRARIES:
        return "" if room == LIBRARIES[name] else f"only src/{LIBRARIES[name]} may include it"
    if (room, name) in LOADS:
        return ""
    if room in SYSTEM_ROOMS or STANDARD.match(name) or name in INTRINSICS:
        return ""
    return "only src/os and src/system may include system headers"


def face_rule(folder: Path, face: str, bracket: str, name: str) -> str:
    """Does the same for a folder that sees only the public headers."""
    others = FACES[face]
    if name.startswith(COMMAND) and face not in COMMAND_USERS:
        return f"{COMMAND} is not installed; only cli and python/bindings may include it"
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
    """Returns what only rooms of formats may say: words and suffixes, and headers of formats."""
    words: set[str] = set()
    headers: set[str] = set()
    for file in (file for room in FORMAT_ROOMS for file in sources(root / "src" / room)):
        text = file.read_text(encoding="utf-8")
        named = FORMAT_WORD.findall(text)
        words.update(named, FORMAT_SUFFIX.findall(text))
        if named or FORMAT_DECLARED.search(text):
            headers.add(f"{file.parent.name}/{file.stem}.h")
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
    """Yields every place outside these rooms that names a format, so that adding one needs no other
    change than its files and its line in the registry."""
    words, headers = format_words(root)
    files = [file for file in sources(root / "src") if file.parent.name not in FORMAT_ROOMS]
    files += [file for face in FACES if face != "examples" for file in sources(root / face)]
    files += sorted((root / "python" / "lowtide").rglob("*.py"))
    for file in files:
        path = file.relative_to(root)
        for number, text in literals(file):
            if text in words:
                yield f'{path}:{number}: error: "{text}": only rooms of formats name it'
        if file.suffix != ".py":
            for number, _, name in includes(file):
                if name in headers:
                    yield f"{path}:{number}: error: includes {name}: ask the registry of formats"


def broken_includes(root: Path, known: Tables) -> Iterator[str]:
    for file in sources(root / "src"):
        path = file.relative_to(root)
        room = path.parts[1]
        if room not in known.rooms:
            yield f"{path}:1: error: src/{room}/ has no row in ARCHITECTURE.md"
            continue
        for number, bracket, name in includes(file):
            if rule := room_rule(room, known, bracket, name):
                yield f"{path}:{number}: error: includes {name}: {rule}"
    for face in FACES:
        for file in sources(root / face):
            # Headers for the command may include each other.
            may = "cli" if "command" in file.parts else face
            for number, bracket, name in includes(file):
                if rule := face_rule(root / face, may, bracket, name):
                    yield f"{file.relative_to(root)}:{number}: error: includes {name}: {rule}"


def headers_without_a_room(root: Path, known: Tables) -> Iterator[str]:
    for header in sources(root / "include/lowtide"):
        if str(header.relative_to(root / "include/lowtide")) not in known.headers:
            yield f"{header.relative_to(root)}:1: error: it has no row in ARCHITECTURE.md"


def crowded(root: Path) -> Iterator[str]:
    package = root / "python" / "lowtide"
    rooms = sorted(path for path in (root / "src").glob("*") if path.is_dir())
    counts = {room: sum(path.is_file() for path in room.rglob("*")) for room in rooms}
    for file in [*package.glob("*.py"), *package.glob("*/*.py")]:
        counts[file.parent] = counts.get(file.parent, 0) + 1
    for room, count in counts.items():
        if count > MOST_FILES:
            path = room.relative_to(root)
            yield f"{path}:1: error: {count} files; a room has at most {MOST_FILES}"


def twins(root: Path) -> Iterator[str]:
    """Yields types that two headers define in the namespace of the library: one linker takes both
    for the same, and calls the functions of one for objects of the other."""
    seen: dict[str, Path] = {}
    for header in [*sources(root / "include"), *sources(root / "src")]:
        text = header.read_text(encoding="utf-8") if header.suffix == ".h" else ""
        if not re.search(r"^namespace lowtide \{$", text, re.MULTILINE):
            continue
        for found in re.finditer(r"^(?:class|struct) (\w+)(?: final)?(?: : .*)? \{", text, re.M):
            name, path = found[1], header.relative_to(root)
            if name in seen:
                line = text.count("\n", 0, found.start()) + 1
                yield f"{path}:{line}: error: {name} is also defined in {seen[name]}"
            seen[name] = path


def broken(root: Path) -> Iterator[str]:
    """Yields everything wrong below root as "file:line: error: ..."."""
    known = tables((root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    yield from broken_includes(root, known)
    yield from headers_without_a_room(root, known)
    yield from told_formats(root)
    yield from crowded(root)
    yield from twins(root)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    complaints = list(broken(root))
    print("\n".join(complaints) or "every file keeps the tables; only rooms of formats name them")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
