"""`lowtide doctor` and `lowtide bench` as a user runs them: text, JSON, exit codes, other users."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from command import copy_command, lowtide

MACHINE = ["build", "kernel", "io_uring", "cachestat", "memory", "memory_limit"]
MACHINE += ["default_memory", "open_files", "locked_memory", "huge_pages"]
OF_PATH = ["path", "file_system", "device", "read_ahead", "direct_io", "residency", "large_folios"]
STATES = {"good", "note", "bad", "unknown"}
CELLS = [
    ("cold", "device"),
    ("cold", "uring"),
    ("cold", "pread"),
    ("hot", "pread"),
    ("hot", "uring"),
    ("hot", "memory"),
]


def facts_of(*words: str | Path) -> dict[str, dict[str, str]]:
    done = lowtide("doctor", "--json", *words)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)["facts"]
    for fact in facts:
        assert set(fact) == {"name", "state", "value", "detail", "advice"}
        assert fact["state"] in STATES
        assert fact["value"]
    return {fact["name"]: fact for fact in facts}


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "m.npy"
    np.save(path, np.arange(6_000 * 162, dtype=np.float32).reshape(6_000, 162))
    return path


def test_doctor_describes_the_machine():
    facts = facts_of()
    assert list(facts) == [*MACHINE, "choice"]
    assert facts["kernel"]["value"] == os.uname().release


def test_doctor_describes_a_file_and_its_folder(matrix: Path):
    facts = facts_of(matrix)
    assert list(facts) == [*MACHINE, *OF_PATH, "choice"]
    assert facts["path"]["value"] == str(matrix)
    assert facts["choice"]["value"].startswith("engine memory, cache ")
    assert facts_of("--memory", "1MiB", matrix)["default_memory"]["value"] == "1 MiB"
    folder = facts_of(matrix.parent)
    assert folder["file_system"]["value"] == facts["file_system"]["value"]
    assert folder["direct_io"]["state"] == "unknown"


def test_doctor_prints_every_fact_as_text(matrix: Path):
    done = lowtide("doctor", matrix)
    assert done.returncode == 0
    assert done.stderr == ""
    for name in [*MACHINE, *OF_PATH, "choice"]:
        assert f" {name}: " in done.stdout
    assert "\x1b" not in done.stdout


def test_doctor_begins_with_its_conclusion(matrix: Path):
    for words in [(), (matrix,), (matrix.parent,), ("--memory", "1MiB", matrix)]:
        told = lowtide("doctor", *words)
        first, blank, rest = told.stdout.split("\n", 2)
        assert first.startswith("Lowtide will use engine ")
        assert "make it faster" in first
        assert blank == ""
        assert rest.split()[0] in STATES
        found = json.loads(lowtide("doctor", "--json", *words).stdout)
        assert found["conclusion"].startswith("Lowtide will use engine ")
    (matrix.parent / "empty.bin").touch()
    told = lowtide("doctor", matrix.parent / "empty.bin").stdout
    assert told.startswith("What Lowtide would use here is unknown: ")


def test_doctor_refuses_only_a_missing_path(tmp_path: Path):
    done = lowtide("doctor", tmp_path / "missing")
    assert done.returncode == 2
    assert done.stderr.startswith("lowtide doctor: no such file: ")
    assert lowtide("doctor", "").returncode == 2
    (tmp_path / "empty.bin").touch()
    assert facts_of(tmp_path / "empty.bin")["choice"]["state"] == "unknown"
    os.mkfifo(tmp_path / "fifo")
    assert facts_of(tmp_path / "fifo")["path"]["state"] == "bad"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be another user")
def test_doctor_says_what_another_user_cannot_know(matrix: Path, request: pytest.FixtureRequest):
    folder = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(folder))
    folder.chmod(0o755)
    shared = Path(shutil.copy(matrix, folder))
    shared.chmod(0o444)
    command = copy_command(folder, ".")
    done = subprocess.run(
        [command, "doctor", "--json", shared],
        capture_output=True,
        text=True,
        timeout=120,
        user=65534,
        group=65534,
        extra_groups=[],
    )
    assert done.returncode == 0, done.stderr
    facts = {fact["name"]: fact for fact in json.loads(done.stdout)["facts"]}
    known = facts["residency"]
    assert known["state"] == "unknown", known  # cachestat needs the right to write
    assert "cachestat" in known["detail"]
    assert facts["choice"]["value"].startswith("engine memory")


def test_bench_measures_every_cell_or_says_why_not(matrix: Path):
    done = lowtide("bench", "--json", "--seconds", "0.05", "--memory", "64MiB", "--warm", matrix)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["format"], report["unit"]) == ("npy", "row")
    assert (report["sample_bytes"], report["samples"]) == (648, 6_000)
    assert report["bytes"] == matrix.stat().st_size
    cells = report["cells"]
    expected = [(order, *cell) for order in ("random", "sequential") for cell in CELLS]
    assert [(c["pattern"], c["state"], c["engine"]) for c in cells] == expected
    for cell in cells:
        if cell["why_not"] is not None:
            assert cell["samples"] == 0
            assert cell["samples_per_second"] is None
            continue
        assert cell["samples"] >= 1
        assert cell["bytes_per_second"] > 0
        if cell["engine"] != "device":
            assert cell["bytes"] == 648 * cell["samples"]
        cold = cell["state"] == "cold"
        assert (cell["percent_of_device"] is not None) == cold


def test_bench_prints_a_table_and_its_reasons(matrix: Path):
    done = lowtide("bench", "--seconds", "0.02", "--memory", "2MiB", matrix)
    assert done.returncode == 0, done.stderr
    assert "rows/s" in done.stdout
    assert "of the device" in done.stdout
    assert "not measured: hot memory: " in done.stdout
    assert "\x1b" not in done.stdout


def test_bench_reports_that_a_small_file_shows_nothing(matrix: Path, tmp_path: Path):
    words = ["--seconds", "0.02", "--memory", "4MiB"]
    told = "a file of 3.71 MiB is too small to say anything about this disk"
    assert told in lowtide("bench", *words, matrix).stdout
    assert told in json.loads(lowtide("bench", "--json", *words, matrix).stdout)["too_small"]
    large = tmp_path / "large"
    with open(large, "wb") as file:
        file.truncate(64 << 20)
    assert "too small" not in lowtide("bench", *words, large).stdout
    report = json.loads(lowtide("bench", "--json", *words, large).stdout)
    assert (report["too_small"], report["stopped"]) == (None, False)


def test_bench_reads_any_file_as_blocks_or_rows(tmp_path: Path):
    path = tmp_path / "any thing"
    path.write_bytes(bytes(2 << 20))
    report = json.loads(lowtide("bench", "--json", "--seconds", "0.02", path).stdout)
    assert (report["format"], report["unit"], report["sample_bytes"]) == ("raw", "block", 4096)
    words = ["--row-bytes", "1000", "--batch", "3"]
    report = json.loads(lowtide("bench", "--json", "--seconds", "0.02", *words, path).stdout)
    assert (report["unit"], report["sample_bytes"], report["batch"]) == ("row", 1000, 3)


def test_bench_reads_a_raw_file_as_described(tmp_path: Path):
    path = tmp_path / "m.f32"
    np.zeros((8 + 6_000 * 162), dtype=np.float32).tofile(path)
    words = ["--json", "--seconds", "0.02", "--memory", "2MiB"]
    shaped = [*words, "--dtype", "float32", "--shape", "6000,162", "--offset", "32", path]
    done = lowtide("bench", *shaped)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["format"], report["unit"]) == ("raw", "row")
    assert (report["sample_bytes"], report["samples"]) == (648, 6_000)
    tokens = json.loads(lowtide("bench", *words, "--tokens", "--dtype", "uint16", path).stdout)
    assert (tokens["format"], tokens["unit"], tokens["sample_bytes"]) == ("nanogpt", "window", 2050)
    wrong = lowtide("bench", *words, "--dtype", "float32", "--shape", "9000000,162", path)
    assert wrong.returncode == 1  # not what it was said to be: never quietly something else
    both = lowtide("bench", *words, "--dtype", "float32", "--row-bytes", "100", path)
    assert both.returncode == 2


def test_bench_refuses_politely(tmp_path: Path, matrix: Path):
    tiny = tmp_path / "tiny.bin"
    tiny.write_bytes(b"xyz")
    done = lowtide("bench", tiny)
    assert done.returncode == 1
    assert "too small to measure: expected at least 1 MiB, found 3 B" in done.stderr
    tiny.write_bytes(b"")
    assert "the file is empty" in lowtide("bench", tiny).stderr
    assert lowtide("bench", tmp_path).returncode == 1
    assert lowtide("bench", tmp_path / "missing").returncode == 2
    assert lowtide("bench").returncode == 2
    for words in (
        ["--memory", "much"],
        ["--seconds", "0"],
        ["--batch", "0"],
        ["--batch", "-1"],
        ["--row-bytes", "x"],
    ):
        done = lowtide("bench", *words, matrix)
        assert done.returncode == 2, words
        assert done.stdout == ""
