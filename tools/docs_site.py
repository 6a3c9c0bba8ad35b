"""Hooks of mkdocs.yml: the pages that are made from headers and from files beside docs/.

A link such as ../ARCHITECTURE.md works in the repository. On the site that file becomes a page
below repo/ (Markdown as it is, source code as one block) or a copy (JSON), so that no page needs
the network.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import docs_headers

ROOT = Path(__file__).resolve().parents[1]
ALWAYS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]  # the navigation has them
CODE = {".cc": "cpp", ".h": "cpp", ".py": "python", ".sh": "sh"}
_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
# A line break becomes a space, which Japanese does not have between sentences.
_JAPANESE_BREAK = re.compile(r"(?<=。)\n *(?=[^\s|#!-])")
_FOREIGN = re.compile(
    r"""<(?:script|img|iframe)[^>]* src="?https?:|<link[^>]* href="?https?:[^>]*css"""
)


def on_files(files: Any, config: Any) -> Any:
    """Adds the files that pages link to before the navigation is made."""
    waiting = list(ALWAYS)
    for page in files.documentation_pages():
        waiting += _linked(page.content_string, _repository_path(page.src_uri))
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or path.startswith("docs/"):
            continue
        seen.add(path)
        uri, text = _site_uri(path), (ROOT / path).read_text()
        if Path(path).suffix in CODE:
            text = f"# {path}\n\n```{CODE[Path(path).suffix]}\n{text}```\n"
        elif uri.endswith(".md"):
            waiting += _linked(text, path)
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fills in the references, and points links at the pages that `on_files` made."""
    if page.file.src_uri == "api/cpp.md":
        reference = docs_headers.page(ROOT / "include/lowtide")
        markdown = markdown.replace("::: include/lowtide", reference)
    if page.file.src_uri == "api/python.md":
        markdown += _not_listed(markdown)
    if page.file.src_uri.endswith(".ja.md"):
        markdown = _JAPANESE_BREAK.sub("", markdown)
    here = _repository_path(page.file.src_uri)
    folder = posixpath.dirname(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        target = _target(link[2], here)
        if target is None:
            return link[0]
        uri = posixpath.relpath(_site_uri(target), folder or ".")
        return f"{link[1]}{uri}{link[3] or ''}{link[4]}"

    return _LINK.sub(moved, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Names the language of a translation. Fetching from another host is an error."""
    found = _FOREIGN.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads from another host: {found[0]}")
    language = re.search(r"\.(\w\w)\.md$", page.file.src_uri)
    return output.replace('<html lang="en"', f'<html lang="{language[1]}"') if language else output


def _not_listed(markdown: str) -> str:
    """The public names that a page of the Python reference lacks, for its end."""
    source = ast.parse((ROOT / "python/lowtide/__init__.py").read_text())
    exported = next(
        ast.literal_eval(node.value)
        for node in source.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    missing = [name for name in exported if f"::: lowtide.{name}\n" not in markdown + "\n"]
    return "".join(f"\n::: lowtide.{name}\n" for name in missing if not name.startswith("__"))


def _linked(text: str, here: str) -> list[str]:
    return [target for link in _LINK.finditer(text) if (target := _target(link[2], here))]


def _target(link: str, here: str) -> str | None:
    """The file of the repository that a link names; None where mkdocs can follow it by itself."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), link))
    if (ROOT / path).is_dir():
        path += "/README.md"
    inside = path.startswith("docs/") and here.startswith("docs/")
    return None if inside or not (ROOT / path).is_file() else path


def _repository_path(uri: str) -> str:
    """Where a page of the site lies in the repository."""
    return uri.removeprefix("repo/") if uri.startswith("repo/") else f"docs/{uri}"


def _site_uri(path: str) -> str:
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repo/{path}.md" if Path(path).suffix in CODE else f"repo/{path}"
