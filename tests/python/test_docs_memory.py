"""docs/memory.md does what it says: its commands run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import command_path, environment

PAGE = Path(__file__).resolve().parents[2] / "docs" / "memory.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
# Stands for the reader's program: long enough for a verdict, and it holds little.
TRAIN = "import time\ntime.sleep(2)\n"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the commands of the page were run, and what they printed."""
    folder = tmp_path_factory.mktemp("memory-page")
    (folder / "train.py").write_text(TRAIN)
    languages, texts = zip(*FENCE.findall(PAGE.read_text(encoding="utf-8")), strict=True)
    assert set(languages) == {"sh"}
    beside = os.pathsep.join([str(Path(command_path()).parent), str(Path(sys.executable).parent)])
    run = subprocess.run(
        ["sh", "-e"],
        input="".join(texts),
        cwd=folder,
        env=environment(PATH=beside + os.pathsep + os.environ["PATH"], PID=str(os.getpid())),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder, run.stdout + run.stderr


def test_the_kernel_names_every_part_of_rss_that_the_table_explains(printed) -> None:
    explained = re.findall(r"^\| `((?:Rss|Vm)\w+)`", PAGE.read_text(encoding="utf-8"), re.M)
    assert explained == ["RssFile", "RssAnon", "RssShmem", "VmPTE"]
    for name in [*explained, "VmRSS"]:
        assert re.search(rf"^{name}:\s+\d+ kB$", printed[1], re.M), printed[1]


def test_lowtide_profile_says_in_words_what_grew(printed) -> None:
    # Other programs of the same memory group may add page cache meanwhile, which is no leak either.
    assert "flat" in printed[1] or "No leak: only the page cache grew" in printed[1], printed[1]
    assert "<html" in (printed[0] / "memory.html").read_text()
