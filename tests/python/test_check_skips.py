"""tools/check_skips.py: a skipped test fails the run only where the machine could run it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "check_skips.py"

CTEST = """[ RUN      ] EveryEngine/EngineSuite.Reads/memory
tests/engine/engine_suite_test.cc:114: Skipped
the memory engine needs room for the data

[  SKIPPED ] EveryEngine/EngineSuite.Reads/memory (0 ms)
"""
PYTEST = "SKIPPED [3] tests/python/test_x.py:12: {}\n===== 7 passed, 3 skipped in 1.0s =====\n"


def check(folder, log):
    (folder / "log").write_text(log)
    words = [sys.executable, TOOL, folder / "summary", folder / "log"]
    return subprocess.run(words, capture_output=True, text=True)


def test_a_case_that_no_machine_runs_is_counted_and_passes(tmp_path):
    assert check(tmp_path, CTEST).returncode == 0
    told = subprocess.run(
        [sys.executable, TOOL, "--sum", tmp_path / "summary"], capture_output=True, text=True
    )
    assert told.stdout.split() == "skipped tests 1: 1 not for this engine".split()


def test_what_this_machine_has_may_not_be_skipped(tmp_path):
    result = check(tmp_path, PYTEST.format("ldd is missing"))
    assert result.returncode == 1
    assert "this machine could run it: ldd is missing" in result.stdout


def test_a_reason_that_nobody_wrote_down_fails(tmp_path):
    assert check(tmp_path, PYTEST.format("the moon is full")).returncode == 1


@pytest.mark.parametrize("log", [PYTEST.format("needs root"), PYTEST.format("only root can")])
def test_root_is_asked_for_by_what_the_process_is(tmp_path, log):
    assert check(tmp_path, log).returncode == (1 if os.geteuid() == 0 else 0)


def test_a_log_without_skips_passes(tmp_path):
    assert check(tmp_path, "===== 7 passed in 1.0s =====\n").returncode == 0
    assert (tmp_path / "summary").read_text() == ""
