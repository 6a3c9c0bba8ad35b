"""`lowtide guard` on the command line: whose words are whose, and its JSON."""

from __future__ import annotations

import json

import pytest
from command import lowtide


@pytest.mark.parametrize("mark", [(), ("--",)])
def test_all_words_from_the_program_on_are_its_own(mark):
    told = lowtide("guard", "--limit", "64MiB", *mark, "echo", "--limit", "--json", "--", "-o")
    assert told.returncode == 0, told.stderr
    assert told.stdout == "--limit --json -- -o\n"
    assert told.stderr.startswith("lowtide guard: ")


def test_json_is_the_last_line_of_stdout():
    told = lowtide("guard", "--json", "--limit", "64MiB", "sh", "-c", "echo mine; exit 3")
    assert told.returncode == 3
    assert told.stderr == ""
    mine, last = told.stdout.splitlines()
    assert mine == "mine"
    found = json.loads(last)
    assert found["command"] == ["sh", "-c", "echo mine; exit 3"]
    assert (found["exit"], found["limit"], found["tree"]) == (3, 64 << 20, False)
    assert (found["peak"], found["trims"], found["maps"], found["released"]) == (0, 0, 0, 0)
    assert found["not_covered"] == []
    assert found["error"] is None


def test_a_missing_program_is_reported_in_json_too():
    told = lowtide("guard", "--json", "--limit", "64MiB", "/no/such/program")
    assert told.returncode == 127
    found = json.loads(told.stdout)
    assert found["exit"] == 127
    assert found["error"] in told.stderr
