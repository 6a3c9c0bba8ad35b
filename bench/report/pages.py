"""Tables and sentences with numbers: texts/NAME.md says what they are made of, from NAME.json.

    <!-- table: rows -->             a page has the same two lines around its table
    | method | krow/s |
    |---|---|
    | np.memmap | {hot-memmap: krow} |
    <!-- end -->

    <!-- prose: docs/faq.md -->      this sentence is in that page, with the numbers filled in
    256 MiB reads {cold-256 / cold-64: krow} times as many rows per second
    <!-- end -->

A line of a table whose methods were not tried is left out; so is a table without lines.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import peer_tables
from values import Result

NAMED = re.compile(r"\{([^{}]+: \w+[~^]?)\}")
BLOCK = re.compile(r"^<!-- (table|prose): (\S+) -->\n(.*?)^<!-- end -->$", re.M | re.S)
NUMBER = r"[\d.,]*\d(?:\s-\s[\d.,]*\d)?(?:\s(?:MiB|%))?"


@dataclass
class Source:
    """The tables of one result file by their names, and the sentences of pages."""

    tables: dict[str, str] = field(default_factory=dict)
    prose: list[tuple[str, str]] = field(default_factory=list)  # page, sentence


def texts_of(folder: Path) -> dict[str, Source]:
    """The sources in a folder, by the name of their result file."""
    found = {}
    for path in sorted(folder.glob("*.md")):
        source = found[path.stem] = Source()
        for kind, name, body in BLOCK.findall(path.read_text("utf-8")):
            if kind == "table":
                source.tables[name] = body
            else:
                source.prose.append((name, body.strip()))
    return found


def read_results(folder: Path) -> dict[str, Result]:
    """The result files in a folder, by their names."""
    paths = sorted(folder.glob("*.json"))
    return {path.stem: Result(json.loads(path.read_text("utf-8"))) for path in paths}


class Texts:
    """Fills pages with what the sources make of the results."""

    def __init__(self, sources: dict[str, Source], results: dict[str, Result]) -> None:
        self._sources = {name: source for name, source in sources.items() if name in results}
        if "peers" in results:
            self._sources.setdefault("peers", Source()).tables |= peer_tables.tables(
                results["peers"]
            )
        self._results = results

    def pages(self, root: Path) -> list[Path]:
        """The pages that have a table or a sentence, relative to the root."""
        candidates = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
        found = {name for source in self._sources.values() for name, _ in source.prose}
        found |= {
            path.relative_to(root).as_posix()
            for path in candidates
            if BLOCK.search(path.read_text("utf-8"))
        }
        return [Path(name) for name in sorted(found)]

    def table(self, name: str) -> str:
        """The lines of a table, each with its end of line."""
        for source_name, source in self._sources.items():
            if name in source.tables:
                return _table(source.tables[name], self._results[source_name])
        raise ValueError(f"no result has a table named {name}: see bench/report/texts")

    def fill(self, page: Path, text: str) -> str:
        """A page with current numbers; ValueError if a sentence is not in it exactly once."""

        def block(found: re.Match[str]) -> str:
            return f"<!-- table: {found[2]} -->\n{self.table(found[2])}<!-- end -->"

        text = BLOCK.sub(block, text)
        for name, source in self._sources.items():
            for where, sentence in source.prose:
                if where == page.as_posix():
                    text = _with_sentence(text, sentence, self._results[name], where)
        return text


def _table(source: str, result: Result) -> str:
    lines = source.splitlines(keepends=True)
    kept = [line for line in lines[2:] if _tried(line, result)]
    return "".join(_filled(line, result) for line in lines[:2] + kept) if kept else ""


def _tried(line: str, result: Result) -> bool:
    return any(result.has(name) for name in NAMED.findall(line))


def _filled(line: str, result: Result) -> str:
    def one(found: re.Match[str]) -> str:
        known = found[1].startswith("facts: ") or result.has(found[1])
        return result.text(found[1]) if known else ""

    return NAMED.sub(one, line)


def _with_sentence(text: str, sentence: str, result: Result, where: str) -> str:
    """Puts the numbers of a sentence where it stands; line breaks may be anywhere in it."""
    parts = NAMED.split(sentence)  # literal, name, literal, name, ...
    words = (re.split(r"\s+", part) for part in parts[::2])
    pattern = f"({NUMBER})".join(r"\s+".join(map(re.escape, part)) for part in words)
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise ValueError(f"{where} has this sentence {len(found)} times, not once: {sentence}")
    pieces, at = [], 0
    for group, name in enumerate(parts[1::2], 1):
        pieces += [text[at : found[0].start(group)], result.text(name)]
        at = found[0].end(group)
    return "".join([*pieces, text[at:]])
