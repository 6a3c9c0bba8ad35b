"""The demo runs, tells what it could not measure, makes one page, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "demo"))

import chart
import demo

DEMO = Path(demo.__file__)
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
    """Tests that run in the background of a shell inherit that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_the_demo_prints_a_table_writes_a_page_and_removes_its_data(tmp_path: Path) -> None:
    pytest.importorskip("lowtide")
    child = start(tmp_path, "--size", "300MiB", "--seconds", "0.5")
    out, err = child.communicate(timeout=180)
    assert child.returncode == 0, out + err
    for word in [*demo.COLUMNS, *(method.title for method in demo.METHODS)]:
        assert word in out
    assert not list((tmp_path / "scratch").iterdir())
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Balance()
    page.feed(text)
    assert not page.faults and not page.open
    assert not page.addresses and "http" not in text and "<script" not in text
    assert text.count("<svg") == text.count("<figure") >= len(demo.METHODS)
    assert str(tmp_path) not in text


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
    lost = demo.Result(method, None, None, None, None, None, [], "it ended early")
    assert lost.cells() == [demo.UNKNOWN] * len(demo.COLUMNS)
    assert "it ended early" in demo.text_table([lost])
    assert not re.search(r"\d", " ".join(lost.cells()))


def test_without_a_cgroup_the_sentences_claim_nothing_about_a_limit() -> None:
    known = [
        demo.Result(method, 1000.0, chart.MIB, 2 * chart.MIB, 3 * chart.MIB, None, [])
        for method in demo.METHODS
    ]
    text = demo.sentences(known, [], None)
    assert "2 MiB of mapped file" in text and "nothing was limited" in text


def test_labels_of_a_panel_do_not_overlap() -> None:
    points = [[(0.0, 0.0), (1.0, height * chart.MIB)] for height in (1.0, 1.5, 2.0)]
    curves = [chart.Curve("heap", str(place), some) for place, some in enumerate(points)]
    drawn = chart.draw(curves, chart.Scale(1.0, 1000.0 * chart.MIB, 250.0 * chart.MIB), [], "t")
    heights = sorted(float(y) for y in re.findall(r'class="name heap" x="\d+" y="([\d.]+)"', drawn))
    assert len(heights) == 3
    assert all(b - a >= chart.LABEL_STEP - 0.1 for a, b in pairwise(heights))
    assert heights[-1] <= chart.HEIGHT - chart.BOTTOM + 4.1


def test_thinning_keeps_the_highest_point() -> None:
    points = [(float(at), 0.0) for at in range(5000)]
    points[2345] = (2345.0, 9.0)
    kept = chart.thin(points)
    assert (2345.0, 9.0) in kept and len(kept) <= chart.MAX_POINTS + 2
