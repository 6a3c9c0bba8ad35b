"""tools/soak: its schedule, a short run, and whether it would find a wrong byte."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest

SOAK = pathlib.Path(__file__).parents[2] / "tools" / "soak"
ACTORS = (
    *("tokens", "columns", "ragged", "sparse", "remote"),
    *("create", "token_writer", "shuffle", "maps", "guard"),
)


def soak(*words, **environment):
    return subprocess.run(
        [sys.executable, str(SOAK), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, **environment},
    )


def schedule(*words):
    lines = soak("--schedule", *words).stdout.splitlines()
    return [tuple(json.loads(line).values()) for line in lines]


def table_of(text):
    """The rows of the summary: actor -> lives, cycles, batches, MiB, peak, faults by kind."""
    rows = {}
    for line in text.splitlines():
        name, *cells = line.split(maxsplit=6)
        if name in ACTORS and len(cells) >= 5 and cells[0].isdigit():
            faults = (word.rsplit(" ", 1) for word in cells[5].split(", ")) if cells[5:] else ()
            numbers = [float(cell.replace(",", "")) for cell in cells[:5]]
            rows[name] = (*numbers, {kind: int(count) for kind, count in faults})
    return rows


def test_the_faults_are_a_pure_function_of_the_seed():
    faults = schedule("--minutes", 5, "--seed", 7)
    assert faults == schedule("--minutes", 5, "--seed", 7)
    assert faults != schedule("--minutes", 5, "--seed", 8)
    assert faults == sorted(faults)
    assert {actor for _, actor, _, _ in faults} == set(ACTORS)
    assert {kind for _, _, kind, _ in faults} >= {
        *("evict", "usr1", "alarm", "int", "stop", "fork", "exit", "kill"),
        *("truncate", "replace", "outage", "term"),
    }


def test_an_actor_has_the_same_faults_alone_and_in_a_longer_run():
    faults = schedule("--minutes", 5, "--seed", 7)
    alone = schedule("--minutes", 2, "--seed", 7, "--only", "ragged,maps")
    assert alone == [fault for fault in faults if fault[0] < 120 and fault[1] in ("ragged", "maps")]


def test_an_unknown_actor_is_wrong_usage():
    done = soak("--only", "tokens,liars")
    assert done.returncode == 2
    assert "'liars' is not one of tokens, columns" in done.stderr


@pytest.mark.slow
def test_a_short_run_finds_nothing_and_counts_everything(tmp_path):
    log = tmp_path / "log"
    words = ("--minutes", 0.2, "--seed", 5)
    done = soak(*words, "--log", log, "--dir", tmp_path)
    assert done.returncode == 0, done.stdout
    rows = table_of(done.stdout)
    assert set(rows) == set(ACTORS)
    for name, (lives, _, batches, _, peak, _) in rows.items():
        assert lives >= 1 and batches >= 1 and peak > 0, name
    planned = collections.Counter(fault[1:] for fault in schedule(*words))
    lines = [line.split() for line in log.read_text().splitlines()]
    brought = collections.Counter(
        (line[1], line[2], int(line[3])) for line in lines if len(line) == 4 and line[1] in ACTORS
    )
    assert brought and brought <= planned
    kinds = collections.Counter((name, kind) for name, kind, _ in brought.elements())
    for name, (*_, faults) in rows.items():
        for kind, count in faults.items():
            assert 1 <= count <= kinds[name, kind], (name, kind)
    assert os.listdir(tmp_path) == ["log"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tokens", "create"])
def test_one_wrong_byte_is_found_and_named(tmp_path, name):
    words = ("--minutes", 0.1, "--seed", 5, "--only", name, "--dir", tmp_path)
    done = soak(*words, LOWTIDE_SOAK_LIE=f"{name}:2")
    assert done.returncode == 1
    assert f"the first: {name}: " in done.stdout
    assert "1 of " in done.stdout and "bytes are wrong; the first is byte" in done.stdout
    assert f"repeat: ./dev soak --minutes 0.1 --seed 5 --only {name}" in done.stdout
