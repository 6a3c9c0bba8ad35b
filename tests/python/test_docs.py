"""README and docs do what they say: their code runs, and their links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import lowtide as lt
import pytest
from command import command_path, environment

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import docs_blocks  # noqa: E402
import docs_headers  # noqa: E402

# Run by test_docs_verify.py and test_docs_memory.py, which look at what the pages find.
ELSEWHERE = {"docs/verify.md", "docs/memory.md"}
README_LINES = 150
PAGES = docs_blocks.pages()
TEXTS = [
    *PAGES,
    *ROOT.glob("[A-Z]*.md"),
    *ROOT.glob("docs/*.??.md"),
    *ROOT.glob("examples/**/*.md"),
]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def run_page(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    package = Path(lt.__file__).parents[1]
    path = [Path(command_path()).parent, Path(sys.executable).parent, os.environ["PATH"]]
    return subprocess.run(
        [sys.executable, str(Path(__file__).with_name("docs_runner.py")), str(page)],
        cwd=folder,
        env=environment(PATH=os.pathsep.join(map(str, path)), PYTHONPATH=str(package)),
        capture_output=True,
        text=True,
        timeout=300,
    )


def runs_here(page: Path) -> bool:
    found = [block for block in docs_blocks.blocks(page) if block.runs]
    return any(block.language != "cpp" for block in found) and name(page) not in ELSEWHERE


@pytest.mark.parametrize("page", [page for page in PAGES if runs_here(page)], ids=name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    if re.search(r"\b(import|lowtide\.|lt\.) ?torch\b", page.read_text()):
        pytest.importorskip("torch")
    done = run_page(page, tmp_path)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_a_block_that_fails_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\na = 1\n```\n\n```sh\ntest 1 = 1\nfalse\ntrue\n```\n")
    done = run_page(page, tmp_path)
    assert done.returncode == 1
    assert "page.md:8: this sh block fails" in done.stderr
    page.write_text("```python\na = 1\n```\n\n<!-- setup: b = 2 -->\n```python\na / (b - 2)\n```\n")
    assert 'page.md", line 7' in run_page(page, tmp_path).stderr


def test_a_block_that_would_change_the_machine_does_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\ntouch ran\npip install lowtide\n```\n")
    assert "it would change the machine" in run_page(page, tmp_path).stderr
    page.write_text("<!-- page not run: it installs -->\n\n" + page.read_text())
    assert run_page(page, tmp_path).returncode == 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    for block in docs_blocks.blocks(page):
        assert block.language in docs_blocks.RUN + docs_blocks.OTHERS, block.place
        assert block.not_run is None or len(block.not_run.split()) >= 3, f"{block.place}: why?"
        assert block.is_safe or not block.runs, f"{block.place}: mark it with <!-- not run: why -->"
        if block.language == "json":
            json.loads(block.code)
        if block.language == "cmake" and block.not_run is None:
            built = (ROOT / "tests/consumer/project/CMakeLists.txt").read_text()
            for line in filter(None, block.code.splitlines()):
                assert re.sub(r"(?<=lowtide).* REQUIRED", " REQUIRED", line) in re.sub(
                    r"(?<=lowtide).* REQUIRED", " REQUIRED", built
                ).replace("consumer", "my_program"), block.place


def anchors(page: Path) -> set[str]:
    """The ids of its headings where GitHub and the site make the same of them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        kept = (
            re.sub(r"[^\w\s-]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)).strip().lower()
        )
        if re.sub(r"[-\s]+", "-", kept) == re.sub(r"\s", "-", kept):
            found.add(kept.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", sorted(set(TEXTS)), ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)}: {link}"
        assert not anchor or anchor in anchors(target), f"{name(page)}: {link}"


def test_the_cpp_reference_has_every_declaration() -> None:
    page = docs_headers.page(ROOT / "include/lowtide")
    headings = set(re.findall(r"\w+", " ".join(re.findall(r"^### (.*)$", page, re.M))))
    for header in (ROOT / "include/lowtide").glob("*.h"):
        text = header.read_text()
        types = re.findall(r"^(?:class|struct|enum class) (\w+)[^;]*\{", text, re.M)
        functions = re.findall(
            r"^(?:\[\[nodiscard\]\] )?(?:const )?[\w:<>]+[*&]? (\w+)\(", text, re.M
        )
        assert types + functions and set(types + functions) <= headings, header.name
    assert "Impl" not in page and "private:" not in page


def test_the_readme_stays_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) < README_LINES
    assert not [line for line in lines if len(line) > 120 and not line.startswith("|")]
