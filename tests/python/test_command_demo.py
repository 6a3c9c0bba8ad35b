"""`lowtide demo` and `./dev demo`, which runs it: the table, JSON, the page, and that nothing is
left behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import CHROMIUM, run_in_page
from command import command_path, environment, hear_signals, lowtide

MIB = 1 << 20
METHODS = ["mmap", "lowtide", "mmap-again", "lowtide-drop", "mmap-dontneed", "pread"]
DEV_DEMO = Path(__file__).parents[2] / "bench" / "scenarios" / "demo.py"
SVG = "{http://www.w3.org/2000/svg}"


def test_it_prints_one_table_and_removes_its_data(tmp_path: Path) -> None:
    done = lowtide("demo", "--size", "8MiB", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    for word in (
        "rows/s",
        "peak heap",
        "peak mapped",
        "page cache growth",
        "read per byte",
        "DONTNEED",
    ):
        assert word in done.stdout
    assert "Lowtide held" in done.stdout
    assert "bytes per byte delivered" in " ".join(done.stdout.split())
    assert not list(tmp_path.iterdir())


def test_the_map_holds_the_file_and_lowtide_its_budget(tmp_path: Path) -> None:
    done = lowtide("demo", "--size", "96MiB", "--seconds", "20", "--folder", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["bytes"] == 96 * MIB // 648 * 648 and told["memory"] == 32 * MIB
    assert [method["method"] for method in told["methods"]] == METHODS
    for method in told["methods"]:
        assert method["exit"] == 0 and 0 < method["rows"] <= 2 * told["rows"]
        assert method["rows_per_second"] > 0
    mapped, ours, _again, past, let_go, plain = told["methods"]
    if mapped["rows"] >= told["rows"]:
        assert mapped["peak"]["file"] > 64 * MIB
    assert past["peak"]["file"] < 32 * MIB
    assert ours["peak"]["file"] < 32 * MIB and plain["peak"]["file"] < 32 * MIB
    assert let_go["peak"]["anon"] < 32 * MIB
    for one in (ours, past):
        assert one["peak"]["anon"] < 64 * MIB and one["read_per_byte"] >= 1
    assert mapped["read_per_byte"] is None
    assert not list(tmp_path.iterdir())


@pytest.fixture
def written(tmp_path: Path) -> tuple[str, ElementTree.Element]:
    """The page and the picture."""
    data = tmp_path / "data"
    data.mkdir()
    page, picture = tmp_path / "memory.html", tmp_path / "memory.svg"
    words = ("--size", "8MiB", "--folder", data, "-o", page, "-o", picture)
    done = lowtide("demo", *words)
    assert done.returncode == 0, done.stderr
    assert not list(data.iterdir())
    return page.read_text(encoding="utf-8"), ElementTree.parse(picture).getroot()


def test_the_page_shows_every_method_on_the_same_axes(written) -> None:
    page, picture = written
    figures = page.split("<figure")[1:]
    assert len(figures) == len(METHODS) and page.count('class="ours"') == 4
    assert all('aria-label="Memory over time' in figure for figure in figures)
    ticks = [re.findall(r'class="tick end"[^>]*>([^<]*)<', figure) for figure in figures]
    assert len(ticks[0]) >= 3 and all(one == ticks[0] for one in ticks)
    assert "mapped: matrix.f32" in page and "Measured on Linux" in page
    named = page.replace(f'xmlns="{SVG[1:-1]}"', "")
    assert "http" not in named and "<script" not in page and "src=" not in named
    titles = [text.text for text in picture.iter(SVG + "text") if text.get("class") == "headline"]
    assert len(titles) == 4 and titles[0] == "a map, as np.memmap makes it"
    width = float((picture.get("viewBox") or "").split()[2])
    assert 12 * 830 / width >= 11  # px at the width of a README: no text is smaller than 12 units


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_the_page_fits_every_width_and_its_table_is_readable(
    tmp_path: Path, written, width: int
) -> None:
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
    result, _ = run_in_page(tmp_path, written[0], script, width)
    assert result["wide"] <= 0 and result["cut"] == []
    assert result["small"] >= 13 and result["named"]


def test_dev_demo_writes_a_page_and_a_picture(tmp_path: Path) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "picture.svg"
    argv = [sys.executable, DEV_DEMO, "--size", "16MiB", "--seconds", "0.2", "--out", page]
    argv += ["--plot", picture, "--folder", tmp_path, "--no-scale"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    limited = "Everything limited to 256 MiB"
    allowed = "Nothing is measured under a memory limit" not in done.stderr
    assert (limited in done.stdout) == allowed and (limited in page.read_text()) == allowed
    assert "bytes per byte delivered" in done.stdout and picture.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "picture.svg"]


@pytest.mark.slow
def test_dev_demo_draws_a_file_that_outgrows_memory(tmp_path: Path) -> None:
    picture = tmp_path / "scale.svg"
    code = "import sys, demo; demo.draw(sys.argv[1], sys.argv[2], (64, 384))"
    argv = [sys.executable, "-c", code, picture, tmp_path]
    paths = environment(PYTHONPATH=str(DEV_DEMO.parent))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, env=paths)
    if "skipped: " in done.stderr:
        pytest.skip(done.stderr.partition("skipped: ")[2].splitlines()[0])
    assert done.returncode == 0, done.stderr
    words = {text.text for text in ElementTree.parse(picture).iter(f"{SVG}text")}
    assert {"64 MiB", "384 MiB", "np.memmap", 'lowtide, memory="32MiB"'} <= words
    assert [path.name for path in tmp_path.iterdir()] == ["scale.svg"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("dev", [False, True])
def test_a_signal_ends_it_and_its_data_is_removed(tmp_path: Path, number: int, dev: bool) -> None:
    program = [sys.executable, str(DEV_DEMO)] if dev else [command_path(), "demo"]
    child = subprocess.Popen(
        [*program, "--size", "64MiB", "--seconds", "600", "--folder", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=hear_signals,
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob("*/matrix.f32")):
        assert child.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    child.send_signal(number)
    child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("--size", "1KiB"),
        ("--size", "much"),
        ("--seconds", "0"),
        ("--seconds", "nan"),
        ("-o", "memory.png"),
        ("-o", "/no/such/folder/memory.html"),
        ("-o", "memory.json"),
        ("--folder", "/no/such/folder"),
        ("--group", "/no/such/group"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_made(words: tuple[str, ...]) -> None:
    done = lowtide("demo", *words)
    assert done.returncode == 2 and done.stderr.startswith("lowtide demo: ")
    assert words[0].lstrip("-") in done.stderr or words[1] in done.stderr


def test_what_it_calls_itself_with_is_not_shown() -> None:
    for words in (("demo", "--help"), ("--man",), ("completion", "bash")):
        shown = lowtide(*words).stdout.replace("\\-", "-")
        assert "--size" in shown and "--inside" not in shown and "--method" not in shown
