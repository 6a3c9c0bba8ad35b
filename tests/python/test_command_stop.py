"""Ctrl-C and SIGTERM in verbs that take a while: they end, say how far they came, and tidy up."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import command_path, environment, hear_signals, on_terminal

MIB = 1 << 20


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Path]:
    """Sparse: reading it takes much longer than any test."""
    path = tmp_path / "endless.u8"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    yield path
    path.unlink()  # and its pages leave the page cache


def start(*words: object, prepare=hear_signals) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [command_path(), *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=prepare,
    )


def wait_until_read(process: subprocess.Popen[str], size: int) -> None:
    deadline = time.monotonic() + 60
    while read_by(process) < size:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)


def read_by(process: subprocess.Popen[str]) -> int:
    counted = re.search(r"rchar: (\d+)", Path(f"/proc/{process.pid}/io").read_text())
    assert counted is not None
    return int(counted[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_warming_reports_its_progress(endless: Path, tmp_path: Path, number: int) -> None:
    (tmp_path / "other").write_bytes(b"x")
    process = start("cache", "--warm", "--json", endless, tmp_path / "other")
    wait_until_read(process, 32 * MIB)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert re.search(r"endless\.u8: .*stopped after [\d.]+ [MG]iB of 1 TiB", errors)
    assert "stopped: 1 of 2 files were not touched" in errors
    (file,) = json.loads(out)["files"]
    assert file["done"] is False
    assert file["reasons"][0].startswith("stopped after ")


def test_a_stopped_check_reports_its_progress(endless: Path) -> None:
    words = ("check", "--json", "--dtype", "uint8", endless)
    code, text = on_terminal(*words, interrupt_at=" s left", NO_COLOR="1")
    assert code == 130
    told = r"lowtide check: stopped after [\d.]+ [MG]iB of 1 TiB: no fault found so far\n"
    assert re.fullmatch(told, text.rsplit("\r\x1b[K", 1)[1])


def test_a_signal_that_was_ignored_stays_so(endless: Path) -> None:
    process = start(
        "cache", "--warm", endless, prepare=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    )
    wait_until_read(process, 8 * MIB)
    process.send_signal(signal.SIGINT)
    wait_until_read(process, read_by(process) + 32 * MIB)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM


def test_the_line_of_the_progress_is_left_clean(endless: Path) -> None:
    code, text = on_terminal("cache", "--warm", endless, interrupt_at=" s left", NO_COLOR="1")
    assert code == 130
    drawn, left = text.rsplit("\r\x1b[K", 1)
    assert " s left" in drawn
    assert left.startswith(f"{endless}\n  cached")
    assert "stopped after" in left


def test_a_bench_gives_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "any"
    path.write_bytes(bytes(2 * MIB))
    code, text = on_terminal(
        "bench", "--json", "--seconds", "600", path, interrupt_at="random cold device"
    )
    assert code == 130
    report = json.loads(text[text.index('{"path"') :].splitlines()[0])
    assert report["stopped"] is True
    assert report["cells"][-1]["why_not"] == "stopped"
    assert re.search(r"stopped after \d+ of 12 measurements", text.rsplit("\r\x1b[K", 1)[1])
