"""The demo runs, reports what it could not measure, makes one page, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import lowtide as lt
import pytest
from browser import CHROMIUM, run_in_page

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "demo"))

import demo
from page import render

DEMO = Path(demo.__file__)
SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "link", "img"}


class Balance(HTMLParser):
    """Collects tags that were never closed, and every address that a tag refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    scratch = folder / "scratch"
    scratch.mkdir()
    argv = [sys.executable, str(DEMO), "--out", str(folder / "page.html")]
    return subprocess.Popen(
        [*argv, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
        preexec_fn=_hear_ctrl_c,
    )


def _hear_ctrl_c() -> None:
    """A test in the background of a shell inherits an ignored SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_the_demo_prints_a_table_writes_a_page_and_removes_its_data(tmp_path: Path) -> None:
    more = ("--plot", str(tmp_path / "picture.svg"))
    child = start(tmp_path, "--size", "300MiB", "--seconds", "0.5", *more)
    out, err = child.communicate(timeout=180)
    assert child.returncode == 0, out + err
    for word in [*demo.COLUMNS, *(method.title for method in demo.METHODS)]:
        assert word in out
    assert not list((tmp_path / "scratch").iterdir())
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Balance()
    page.feed(text)
    assert not page.faults and not page.open
    named = text.replace(f'xmlns="{SVG[1:-1]}"', "")
    assert not page.addresses and "http" not in named and "<script" not in text
    figures = text.split("<figure")[1:]
    assert len(figures) >= len(demo.METHODS)
    assert all('aria-label="Memory over time' in figure for figure in figures)
    assert str(tmp_path) not in text
    assert len(text) < 500_000
    picture = ElementTree.parse(tmp_path / "picture.svg").getroot()
    titles = [text.text for text in picture.iter(SVG + "text") if text.get("class") == "headline"]
    assert titles == [method.title for method in demo.PICTURED]
    width = float((picture.get("viewBox") or "").split()[2])
    assert 12 * 830 / width >= 11  # px at the width of a README: no text is smaller than 12 units
    assert "prefers-color-scheme: dark" in (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert re.search(r"it requested \d+\.\d bytes per byte delivered", out), out


def test_the_pictures_of_the_page_have_the_same_axes(tmp_path: Path) -> None:
    with lt.profile(interval=0.01) as short:
        pass
    with lt.profile(interval=0.01) as large:
        held = bytearray(b"x") * (96 * demo.MIB)
    assert held
    results = [demo.Result(demo.METHODS[0], 1.0, 0, 0, 0, 0, profile=p) for p in (short, large)]
    panels = demo._part("title", "note", results, None).panels
    ticks = [re.findall(r'class="tick end"[^>]*>([^<]*)<', panel.svg) for panel in panels]
    assert ticks[0] == ticks[1] and len(ticks[0]) >= 3
    assert short.plot(small=True) != panels[0].svg


def test_an_interrupted_demo_removes_its_data(tmp_path: Path) -> None:
    child = start(tmp_path, "--size", "64MiB", "--seconds", "20")
    assert child.stderr is not None
    while "[2/" not in (line := child.stderr.readline()):
        assert line, "the demo ended before it was interrupted"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    assert child.returncode == 130
    assert not list((tmp_path / "scratch").iterdir())


def test_what_could_not_be_measured_is_unknown_and_never_zero() -> None:
    method = demo.METHODS[0]
    lost = demo.Result(method, None, None, None, None, None, reason="it ended early")
    assert lost.cells() == [demo.UNKNOWN] * len(demo.COLUMNS)
    assert "it ended early" in demo.text_table([lost])
    assert not re.search(r"\d", " ".join(lost.cells()))


def test_without_a_cgroup_the_sentences_claim_nothing_about_a_limit() -> None:
    known = [
        demo.Result(method, 1000.0, demo.MIB, 2 * demo.MIB, 3 * demo.MIB, None, merging=17.25)
        for method in demo.METHODS
    ]
    text = demo.sentences(known, [], None)
    assert "2 MiB of mapped file" in text and "nothing was limited" in text
    assert "17.2 bytes per byte delivered" in text


def test_lowtide_stands_beside_np_memmap_with_its_defaults_and_past_the_cache() -> None:
    assert demo.METHODS[:3] == [demo.MAP, demo.OURS, demo.PAST_CACHE]
    assert demo.TIGHT_METHODS[:2] == [demo.MAP, demo.OURS]
    assert demo.OURS.cache == "auto" and demo.PAST_CACHE.cache == "drop"


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_the_page_fits_every_width_and_its_table_is_readable(tmp_path: Path, width: int) -> None:
    results = [
        demo.Result(method, 1234567.0, 50 << 20, 1 << 30, 1 << 30, 10 << 30, delivered=1 << 30)
        for method in demo.METHODS
    ]
    part = demo._part("The file fits", "note", results, None)
    page = render("title", "lead", [part], demo.COLUMNS, "foot")
    script = """
      result.wide = document.documentElement.scrollWidth - innerWidth;
      result.cut = [...document.querySelectorAll('table *')].filter((one) => {
        const box = one.getBoundingClientRect();
        return box.width > 1 && (box.left < 0 || box.right > innerWidth + 0.5);
      }).map((one) => one.textContent);
      result.small = Math.min(...[...document.querySelectorAll('table td')]
        .map((one) => parseFloat(getComputedStyle(one).fontSize)));
      result.named = [...document.querySelectorAll('td')].every((one) => one.dataset.name);
    """
    result, _ = run_in_page(tmp_path, page, script, width)
    assert result["wide"] <= 0 and result["cut"] == []
    assert result["small"] >= 13 and result["named"]
