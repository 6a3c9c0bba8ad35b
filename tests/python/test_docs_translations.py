"""The translations of docs/memory.md say what the English page says.

A translation follows the English page block by block: heading by heading, paragraph by paragraph,
table by table. Code, figures, links and names in backquotes are compared; the words cannot be. So
each translation ends with a stamp of the English text that it was read against, and a changed
English page fails here until a person has looked at all its translations.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES = {
    "": "English",
    "fr": "Français",
    "es": "Español",
    "de": "Deutsch",
    "ja": "日本語",
    "hi": "हिन्दी",
}
LANGUAGES = [language for language in NAMES if language]
DECIMAL_COMMA = {"fr", "de"}

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SPAN = re.compile(r"`[^`]+`")
TARGET = re.compile(r"(!?)\[[^\]]*\]\(([^)#]*)[^)]*\)")
FIGURE = re.compile(r"(?<![A-Za-z_\d.])v?\d+(?:\.\d+)*(?:\s?(?:[KMGT]i?B|ms|s|%)(?![A-Za-z]))?")
STAMP = re.compile(r"\n<!-- translates: (\w+) -->\n\Z")


@dataclass(frozen=True)
class Block:
    kind: str  # "#", "##", ..., "code", "table", "item" or "text"
    text: str

    def prose(self) -> str:
        return TARGET.sub(" ", SPAN.sub(" ", self.text))

    def figures(self) -> object:
        """Of a table row by row. Elsewhere word order is free, and 1 to 9 may be a word."""
        rows = self.text.splitlines()
        if self.kind == "table":
            return [[figure(found) for found in FIGURE.findall(row)] for row in rows]
        found = [figure(found) for found in FIGURE.findall(self.prose())]
        return Counter(word for word in found if not re.fullmatch("[1-9]", word))

    def targets(self) -> Counter[tuple[str, str]]:
        """What it links to and, marked by "!", the images it shows."""
        return Counter(TARGET.findall(self.text))

    def spans(self) -> set[str]:
        return set(SPAN.findall(self.text))


def figure(text: str) -> str:
    return re.sub(r"\s", "", text)


def file_name(language: str) -> str:
    return f"memory.{language}.md" if language else "memory.md"


def read(language: str) -> str:
    return (DOCS / file_name(language)).read_text(encoding="utf-8")


def stamp(english: str) -> str:
    return hashlib.sha256(english.encode()).hexdigest()[:12]


def kind_of(line: str) -> str:
    start = re.match(r"#+(?= )|- |\|", line)
    return {"- ": "item", "|": "table"}.get(start[0], start[0]) if start else "text"


def blocks(page: str) -> list[Block]:
    found: list[Block] = []
    kind, lines = "", []

    def finish() -> None:
        nonlocal kind, lines
        if lines:
            found.append(Block(kind, "\n".join(lines)))
        kind, lines = "", []

    fences = iter(FENCE.findall(page))
    for line in map(str.strip, FENCE.sub("```", page).splitlines()):
        if line == "```":
            finish()
            found.append(Block("code", next(fences)))
            continue
        starts = kind_of(line)
        if not line or (lines and starts not in ("text", kind)) or starts in ("item", "#", "##"):
            finish()
        if line:
            kind = kind or starts
            lines.append(line)
    finish()
    return found


def language_line(language: str) -> str:
    """The names of all languages; each but that of the page itself is a link."""
    return " · ".join(
        name if other == language else f"[{name}]({file_name(other)})"
        for other, name in NAMES.items()
    )


def stale(english: str, page: str) -> str | None:
    found = STAMP.search(page)
    if found is not None and found[1] == stamp(english):
        return None
    return (
        "docs/memory.md has changed since this translation was read against it: bring it up to "
        f"date, then end it with <!-- translates: {stamp(english)} -->"
    )


def differences(english: str, page: str, language: str) -> list[str]:
    """Where a translation departs from the English page; a sentence each."""
    page = STAMP.sub("", page)
    if language in DECIMAL_COMMA:
        page = re.sub(r"(?<=\d),(?=\d)", ".", page)
    ours, theirs = blocks(english), blocks(page)
    kinds = [[block.kind for block in side] for side in (ours, theirs)]
    if kinds[0] != kinds[1]:
        return [f"the English page is built {kinds[0]}, the translation {kinds[1]}"]
    faults = []
    for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        if number == 1:  # the line of languages, which has a test of its own
            continue
        if our.kind == "code":
            pairs = {"code": (our.text, their.text)}
        else:
            pairs = {
                "figures": (our.figures(), their.figures()),
                "links": (our.targets(), their.targets()),
                "names in backquotes": (our.spans(), their.spans()),
                "rows": (our.text.count("|"), their.text.count("|")),
            }
            if our.text == their.text:
                faults.append(f"not translated: {our.text}")
        for what, (wanted, found) in pairs.items():
            if wanted != found:
                faults.append(f"{what}: {wanted} in {our.text!r}, but {found} in {their.text!r}")
    return faults


@pytest.mark.parametrize("language", LANGUAGES)
def test_says_what_the_english_page_says(language: str) -> None:
    faults = differences(read(""), read(language), language)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("language", LANGUAGES)
def test_was_read_against_the_english_page_of_today(language: str) -> None:
    assert stale(read(""), read(language)) is None, file_name(language)


@pytest.mark.parametrize("language", NAMES)
def test_links_to_all_other_languages_below_its_title(language: str) -> None:
    title, line = blocks(read(language))[:2]
    assert title.kind == "#"
    assert line.text.replace("\n", " ") == language_line(language)


def test_no_translation_is_left_out() -> None:
    assert {path.name for path in DOCS.glob("memory*.md")} == set(map(file_name, NAMES))


# The tests above can fail: each change below, to each translation, is noticed.

CHANGES = {
    "a number in a table": (r"48 / 207", "48 / 206"),
    "two numbers exchanged in a table": (r"268 MiB \| 256 MiB", "256 MiB | 268 MiB"),
    "a number in a sentence": (r"231 MiB", "213 MiB"),
    "a unit": (r"390 GiB", "390 MiB"),
    "a decimal": (r"1[.,]9 GB", "1.8 GB"),
    "a version": (r"6\.5(?!\d)", "6.6"),
    "a code block": (r"-o memory\.html", "-o memory.json"),
    "a code block in another place": (r"(?s)(```sh\ngrep.*?```\n)(.*?)(```sh.*?```\n)", r"\3\2\1"),
    "a name in backquotes": (r"`MADV_RANDOM`", "`MADV_NORMAL`"),
    "an image": (r"memory-leak\.svg", "memory-lowtide.svg"),
    "a link": (r"\(verify\.md\)", "(profile.md)"),
    "a section that is missing": (r"(?s)\n## [^\n]*MADV_DONTDUMP.*?(?=\n## )", ""),
    "the level of a heading": (r"\n## ", "\n### "),
    "a list item that is missing": (r"(?s)\n- [^\n]*\n(?:  [^\n]*\n)*(?=- `/proc)", "\n"),
    "a row that is missing": (r"\n\| `pread` [^\n]*", ""),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_notices(language: str, change: str) -> None:
    pattern, replacement = CHANGES[change]
    page = read(language)
    changed = re.sub(pattern, replacement, page, count=1)
    assert changed != page, "the page no longer has what this test changes"
    assert differences(read(""), changed, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_notices_a_section_left_in_english(language: str) -> None:
    section = re.compile(r"(?s)\n## [^\n]*MADV_DONTDUMP.*?(?=\n## )")
    original = section.search(read(""))
    assert original is not None
    changed = section.sub(lambda _: original[0], read(language))
    assert any("not translated" in fault for fault in differences(read(""), changed, language))


def test_notices_a_changed_english_page() -> None:
    english = read("")
    for language in LANGUAGES:
        assert stale(english.replace("probably not", "not"), read(language)) is not None
