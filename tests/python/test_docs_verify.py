"""docs/verify.md does what it says: its scripts and commands run as they stand, on less data."""

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

pytest.importorskip("memory_profiler")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"
MIB = 1 << 20
SIZE = 80 * MIB
MEMORY = 16 * MIB
MARGIN = 16 * MIB
METHODS = ["memmap", "again", "dontneed", "lowtide"]
NO_LEAK = ["mapped-files", "page-cache"]
# The page's run is longer; of this one a busy machine affords few readings that nobody asks for.
OFTEN_S = 0.02


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory):
    """A folder in which all of the page was run, and what its commands printed."""
    folder = tmp_path_factory.mktemp("verify")
    for script in blocks("python"):
        name = re.match(r"# (\w+\.py)\b", script)
        assert name is not None, script
        (folder / name[1]).write_text(
            script.replace("lt.profile(watch", f"lt.profile(interval={OFTEN_S}, watch")
        )
    commands = "".join(blocks("sh"))
    small = re.sub(r"make\.py \d+", f"make.py {SIZE // MIB}", commands)
    assert small != commands
    often = small.replace("lowtide profile -o", f"lowtide profile --interval {OFTEN_S} -o")
    assert often != small
    beside = os.pathsep.join([str(Path(command_path()).parent), str(Path(sys.executable).parent)])
    run = subprocess.run(
        ["sh"],  # not -e: whether pages can be evicted, and that be seen, is up to the machine
        input=often,
        cwd=folder,
        env=environment(PATH=beside + os.pathsep + os.environ["PATH"]),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0 and "Traceback" not in run.stderr, run.stdout + run.stderr
    yield folder, run.stdout
    (folder / "m.f32").unlink()


def told(page, method: str) -> dict:
    return json.loads((page[0] / f"{method}.json").read_text())


def resident(page, method: str) -> list[float]:
    """What mprof saw, in bytes."""
    lines = (page[0] / f"{method}.dat").read_text().splitlines()
    return [float(line.split()[1]) * MIB for line in lines if line.startswith("MEM")]


@pytest.mark.slow
def test_memory_profiler_blames_the_line_that_reads(page):
    line = re.search(r"^ +\d+ +([\d.]+) MiB +([\d.]+) MiB.*\.sum\(\)$", page[1], re.M)
    assert line is not None, page[1]
    assert float(line[2]) * MIB > 0.8 * SIZE


def test_mprof_shows_one_number_and_it_rises_for_np_memmap(page):
    assert max(resident(page, "memmap")) > 0.8 * SIZE
    assert max(resident(page, "lowtide")) < max(resident(page, "memmap")) - SIZE / 4
    for method in METHODS:
        read = lt.Profile.load(page[0] / f"{method}.dat")
        assert read.peak["anon"] is None  # mprof does not record it
        assert read.verdict.kind != "heap-leak"


def test_lowtide_profile_tells_mapped_pages_from_a_leak(page):
    found = told(page, "memmap")
    assert found["verdict"]["kind"] in NO_LEAK
    assert found["peak"]["file"] > 0.8 * SIZE
    assert found["peak"]["anon"] < 0.8 * SIZE


def test_no_run_is_called_a_leak(page):
    for method in METHODS:
        assert told(page, method)["verdict"]["kind"] != "heap-leak"


def test_lowtide_holds_what_it_was_allowed(page):
    found = told(page, "lowtide")
    start_up = told(page, "memmap")["peak"]["anon"]  # the same imports, and no buffer
    assert found["peak"]["anon"] < start_up + MEMORY + MARGIN
    assert found["peak"]["file"] < 0.5 * SIZE


def test_the_with_block_says_the_same(page):
    assert re.search(rf"^({'|'.join(NO_LEAK)})$", page[1], re.M), page[1]
    assert "<html" in (page[0] / "memory.html").read_text()
