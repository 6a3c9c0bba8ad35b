"""The code blocks of a page of Markdown, for the tests that run them.

A block runs unless a comment above it says why not, and it may need lines that a reader does not:

    <!-- not run: needs a GPU -->
    <!-- setup: model = torch.nn.Linear(4, 4) -->
    <!-- page not run: makes a release --> (anywhere, for all blocks of the page)
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUN = ("python", "sh", "cpp")
OTHERS = ("", "text", "json", "cmake")  # output, data, and what another test builds

_BLOCK = re.compile(
    r"(?P<comments>(?:^ *<!--(?:(?!-->).)*-->\n+)*)"
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.M | re.S,
)
_COMMENT = re.compile(r"<!--\s*(not run|setup|page not run):(.*?)-->", re.S)
# What no test may do by accident: such a block must say that it is not run.
_CHANGES_THE_MACHINE = re.compile(
    r"\b(sudo|apt|apt-get|pip|pipx|uv|conda|mamba|docker|twine|git (?!status|log|diff)\w+)\s", re.M
)


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` is that of its first line of code."""

    page: str
    line: int
    language: str
    code: str
    setup: str
    not_run: str | None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.not_run is None

    @property
    def is_safe(self) -> bool:
        """Whether it leaves the machine and the environment of the tests as they are."""
        lines = [line.partition("#")[0] for line in self.code.splitlines()]
        return self.language != "sh" or not _CHANGES_THE_MACHINE.search("\n".join(lines) + "\n")


def pages() -> list[Path]:
    """README and all pages of docs. Translations have the code of the English page."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in docs if page.stem.count(".") == 0)]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text()
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
    whole = next((why for kind, why in _COMMENT.findall(text) if kind == "page not run"), None)
    found = []
    for match in _BLOCK.finditer(text):
        said = {kind: words.strip("\n") for kind, words in _COMMENT.findall(match["comments"])}
        found.append(
            Block(
                page=name,
                line=text.count("\n", 0, match.start("code")) + 1,
                language=match["language"].strip(),
                code=textwrap.dedent(match["code"]),
                setup=textwrap.dedent(said.get("setup", "")).strip() + "\n",
                not_run=_stripped(said.get("not run", whole)),
            )
        )
    return found


def _stripped(words: str | None) -> str | None:
    return None if words is None else words.strip()
