"""The public headers as a page: each declaration below its comment."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"using (\w+).*|(?:class|struct) (\w+)|constexpr .*?(\w+)(?= = )|(\w+)\(")
_FORWARD = re.compile(r"(?:class|struct) \w+;")
_PIMPL = re.compile(
    r"\n *(?:(?:class|struct) Impl;|explicit \w+\(std::\w+_ptr<(?:const )?Impl> impl\);"
    r"|\[\[nodiscard\]\] const Impl& impl\(\) const .*)"
)
FIRST = ["array", "tokens", "dtype", "error"]  # what everybody needs; the others by name


def page(folder: Path) -> str:
    """Markdown of all headers of a folder."""
    headers = {path.stem: path for path in sorted(folder.glob("*.h"))}
    order = [name for name in FIRST if name in headers]
    order += [name for name in headers if name not in FIRST]
    return "\n".join(_header(headers[name]) for name in order)


def _header(path: Path) -> str:
    text = path.read_text()
    about, _, rest = text.partition("#pragma once")
    title, _, summary = _comment(about).partition(" - ")
    out = [f"## {title}\n", _sentence(summary), f'```cpp\n#include "lowtide/{path.name}"\n```\n']
    start = rest.find("namespace lowtide {")
    body = rest[start:].partition("\n")[2].rpartition("\n}  // namespace lowtide")[0]
    for comment, code in _items(body):
        if _FORWARD.fullmatch(code):
            continue
        names = dict.fromkeys("".join(found) for found in _NAME.findall(_heads(code)))
        out.append(f"### {', '.join(names) or title}\n")
        if comment:
            out.append(_escaped(_comment(comment)) + "\n")
        out.append(f"```cpp\n{_shown(code)}\n```\n")
    return "\n".join(out)


def _items(body: str) -> list[tuple[str, str]]:
    """Declarations at namespace level with the comment above each."""
    found: list[tuple[str, str]] = []
    lines: list[str] = []
    depth = 0
    for line in [*body.splitlines(), ""]:
        if line or depth:
            lines.append(line)
            code = line.partition("//")[0]
            depth += code.count("{") - code.count("}")
        elif lines:
            split = next((i for i, one in enumerate(lines) if not one.startswith("//")), None)
            if split is not None:
                found.append(("\n".join(lines[:split]), "\n".join(lines[split:])))
            lines = []
    return found


def _heads(code: str) -> str:
    """Only the lines that declare something: not what is inside of braces, and no comment."""
    lines = [line.partition("//")[0] for line in code.splitlines()]
    return "\n".join(line for line in lines if line and line[0] not in " }")


def _shown(code: str) -> str:
    """Without private members and what they need."""
    code = re.sub(r"\n+ private:\n.*?(?=\n\};)", "", code, flags=re.S)
    code = _PIMPL.sub("", code)
    return re.sub(r" public:\n\n+", " public:\n", code)


def _comment(lines: str) -> str:
    return "\n".join(line[2:].removeprefix(" ") for line in lines.strip().splitlines())


def _sentence(summary: str) -> str:
    """The comment of a header: its first words as a sentence, indented lines as code."""
    out: list[str] = []
    for part in re.split(r"\n\n", summary):
        if part.startswith("  "):
            out.append("```cpp\n" + re.sub(r"^  ", "", part, flags=re.M) + "\n```\n")
        else:
            out.append(_escaped(part[:1].upper() + part[1:]) + "\n")
    return "\n".join(out)


def _escaped(text: str) -> str:
    """Comment text as Markdown shows it; what stands in backticks is code already."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part[:1] == "`" else re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts
    )
