"""`lowtide demo` as a user runs it: the table, JSON, reports, and that nothing is left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import command_path, environment, hear_signals, lowtide

MIB = 1 << 20
METHODS = ["mmap", "lowtide", "lowtide-drop", "mmap-dontneed", "pread"]


def test_it_prints_one_table_and_removes_its_data(tmp_path: Path) -> None:
    done = lowtide("demo", "--size", "8MiB", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("rows/s", "peak heap", "peak mapped", "page cache growth", "MADV_DONTNEED"):
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
    mapped, ours, past, let_go, plain = told["methods"]
    if mapped["rows"] >= told["rows"]:
        assert mapped["peak"]["file"] > 64 * MIB
    assert past["peak"]["file"] < 32 * MIB
    assert ours["peak"]["file"] < 32 * MIB and plain["peak"]["file"] < 32 * MIB
    assert let_go["peak"]["anon"] < 32 * MIB
    for one in (ours, past):
        assert one["peak"]["anon"] < 64 * MIB and one["read_per_byte"] >= 1
    assert mapped["read_per_byte"] is None
    assert not list(tmp_path.iterdir())


def test_reports_are_those_of_the_map_and_of_ours(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    out.mkdir()
    done = lowtide("demo", "--size", "8MiB", "--folder", data, "-o", out / "memory.html")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "memory-lowtide.html",
        "memory-mmap.html",
    ]
    assert "matrix.f32" in (out / "memory-mmap.html").read_text()
    assert not list(data.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_its_data_is_removed(tmp_path: Path, number: int) -> None:
    child = subprocess.Popen(
        [command_path(), "demo", "--size", "64MiB", "--seconds", "600", "--folder", tmp_path],
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
        ("--folder", "/no/such/folder"),
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
