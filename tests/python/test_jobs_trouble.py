"""lt.jobs: wrong arguments, sources that change, lost folders, Ctrl-C."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest
from conftest import run
from job_files import entries, matrix_file, permutation, some_documents, write_documents
from token_files import write_nanogpt

MANY_TASKS = "1MiB"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    matrix_file(tmp_path / "m.npy", rows=20_000)
    return tmp_path / "m.npy"


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"unit": "rows"}, ValueError, "row.*document.*window"),
        ({"unit": 3}, TypeError, "unit must be a str"),
        ({"unit": "document"}, ValueError, "document"),
        ({"unit": "window", "block_size": 8}, ValueError, "token|window"),
        ({"block_size": 8}, ValueError, "block_size|window"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"seed": 1.5}, TypeError, "seed must be an integer"),
        ({"shards": 0}, ValueError, "shards must be at least 1"),
        ({"shards": 20_001}, ValueError, "20,?001"),
        ({"memory": "lots"}, ValueError, "lots"),
        ({"memory": "1KiB"}, ValueError, "memory"),
        ({"overwrite": 1}, TypeError, "overwrite must be a bool"),
    ],
)
def test_wrong_arguments_leave_nothing(source: Path, arguments: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        lt.jobs.shuffle(source, source.with_name("out.npy"), **arguments)
    assert entries(source.parent) == ["m.npy"]


def test_sources_must_be_files(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out.npy"
    with pytest.raises(TypeError, match="src must be a path"):
        lt.jobs.shuffle(np.zeros(3), out)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dst is empty"):
        lt.jobs.shuffle(source, "")
    with pytest.raises(TypeError, match="dst must be a str"):
        lt.jobs.shuffle(source, ["out.npy"])  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        lt.jobs.shuffle(tmp_path / "none.npy", out)
    with pytest.raises(TypeError, match="sources must be a list"):
        lt.jobs.merge(source, out)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty list"):
        lt.jobs.merge([], out)
    with lt.open(source) as a:
        with pytest.raises(TypeError, match=r"np\.save"):
            lt.jobs.shuffle(lt.ragged(a, [0, 5]), tmp_path / "out")
        with pytest.raises(TypeError, match="one array of values"):
            lt.jobs.shuffle(lt.ragged((a, a), [0, 5]), tmp_path / "out")
    np.save(tmp_path / "other.npy", np.zeros((3, 5), "f4"))
    with pytest.raises(ValueError, match=r"other\.npy"):
        lt.jobs.merge([source, tmp_path / "other.npy"], out)
    assert entries(tmp_path) == ["m.npy", "other.npy"]


def test_documents_are_only_where_the_format_has_them(tmp_path: Path) -> None:
    path = write_nanogpt(tmp_path / "t.bin", np.arange(1000))
    with pytest.raises(ValueError, match="document"):
        lt.jobs.shuffle(path, tmp_path / "out.bin", unit="document")
    with pytest.raises(ValueError, match=r"row|token"):
        lt.jobs.shuffle(path, tmp_path / "out.bin", unit="row")
    with pytest.raises(ValueError, match="block_size"):
        lt.jobs.shuffle(path, tmp_path / "out.npy", unit="window")
    with lt.tokens(write_documents(tmp_path / "d.ds", "datatrove", some_documents())) as t:
        with pytest.raises(ValueError, match="unit='window'"):
            lt.jobs.shuffle(t.documents, tmp_path / "out.npy", unit="window", block_size=4)


def test_format_words_are_checked(tmp_path: Path, source: Path) -> None:
    with pytest.raises(ValueError, match="megatron"):
        lt.jobs.convert(write_nanogpt(tmp_path / "t.bin", [1]), tmp_path / "o.bin", "parquet")
    with pytest.raises(TypeError, match="format must be a str"):
        lt.jobs.convert(source, tmp_path / "o.bin", None)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        lt.jobs.convert(source, tmp_path / "o.bin", "megatron")  # two axes are no tokens


def test_an_id_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    path = write_nanogpt(tmp_path / "t.bin", [1, 2, 300])
    with pytest.raises(ValueError, match="300"):
        lt.convert(path, tmp_path / "o.bin", "megatron", dtype="uint8")
    assert entries(tmp_path) == ["t.bin"]


def changed(path: Path) -> None:
    data = np.load(path)
    time.sleep(0.02)  # the clock of a file system ticks in steps
    np.save(path, data + 1)


def test_a_source_that_changed_since_planning_gives_no_result(tmp_path: Path, source: Path) -> None:
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy", memory=MANY_TASKS)
    changed(source)
    with pytest.raises((OSError, lt.FormatError)) as found:
        plan.run()
    assert "m.npy" in str(found.value)
    assert entries(tmp_path) == ["m.npy"]


@pytest.mark.parametrize("how", ["changed", "shorter", "gone"])
def test_a_source_that_changes_during_a_shuffle_gives_no_result(
    tmp_path: Path, source: Path, how: str
) -> None:
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy", memory=MANY_TASKS)
    first, *rest = plan.stages[0]
    first.run()
    if how == "changed":
        changed(source)
    elif how == "shorter":
        os.truncate(source, 1 << 20)
    else:
        source.unlink()
    with pytest.raises((OSError, lt.FormatError)):
        for task in rest:
            task.run()
    assert not (tmp_path / "out.npy").exists()
    plan.clean()
    assert entries(tmp_path) == ([] if how == "gone" else ["m.npy"])


def test_more_memory_is_asked_for_in_words(tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((4, 1 << 19), "u1"))
    with pytest.raises(ValueError, match="memory") as found:
        lt.jobs.shuffle(tmp_path / "wide.npy", tmp_path / "out.npy", memory="256KiB")
    assert "KiB" in str(found.value)  # what it needs


def test_a_stage_waits_for_the_one_before(tmp_path: Path, source: Path) -> None:
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy", memory=MANY_TASKS)
    scatter, gather = plan.stages
    for task in scatter[:-1]:
        task.run()
    with pytest.raises(FileNotFoundError):
        gather[0].run()
    assert not (tmp_path / "out.npy").exists()
    plan.clean()
    assert entries(tmp_path) == ["m.npy"]
    plan.clean()  # nothing is left to remove


def test_a_worker_that_lost_its_disk_is_an_error(tmp_path: Path, source: Path) -> None:
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy", memory=MANY_TASKS)
    scatter, gather = plan.stages
    for task in scatter:
        task.run()
    (job,) = [name for name in os.listdir(tmp_path) if name.startswith(".out.npy")]
    shutil.rmtree(tmp_path / job)
    with pytest.raises(FileNotFoundError) as found:
        gather[0].run()
    assert job in str(found.value)
    assert not (tmp_path / "out.npy").exists()
    plan.run()  # all of it once more
    order = permutation(tmp_path, 20_000, 0)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.load(source)[order])
    assert entries(tmp_path) == ["m.npy", "out.npy"]


def test_a_task_of_another_version_is_refused(tmp_path: Path, source: Path) -> None:
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy")
    task = plan.tasks[0]
    text = task._text
    assert text.startswith(b"lowtide plan 1\n")
    newer = text.replace(b"plan 1", b"plan 2", 1)
    for other in (
        b"",
        text[: len(text) // 2],
        b"nonsense",
        newer,
        text.replace(b"seed 0", b"seed 1"),
    ):
        stranger = pickle.loads(pickle.dumps(lt.jobs.Task(other, 0, 0)))
        with pytest.raises(ValueError):
            stranger.run()
        assert "unreadable" in repr(stranger)
    with pytest.raises(IndexError):
        lt.jobs.Task(text, 7, 0).run()
    with pytest.raises(IndexError):
        lt.jobs.Task(text, 0, 10**6).run()
    assert entries(tmp_path) == ["m.npy"]


def test_a_killed_run_is_resumed_by_the_same_call(tmp_path: Path, source: Path) -> None:
    program = """
import os, signal, sys
import lowtide as lt
plan = lt.jobs.shuffle(sys.argv[1], sys.argv[2], memory="1MiB")
for task in plan.stages[0]:
    task.run()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run(program, source, tmp_path / "out.npy").returncode == -signal.SIGKILL
    assert len(entries(tmp_path)) > 2
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy", memory=MANY_TASKS)
    assert all(task.done() for task in plan.stages[0])
    plan.run()
    order = permutation(tmp_path, 20_000, 0)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.load(source)[order])
    assert entries(tmp_path) == ["m.npy", "out.npy"]


def test_an_exception_of_progress_ends_the_run(tmp_path: Path, source: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        lt.shuffle(source, tmp_path / "out.npy", memory=MANY_TASKS, progress=stop)
    assert entries(tmp_path) == ["m.npy"]


def test_ctrl_c_ends_a_run_and_leaves_nothing(tmp_path: Path) -> None:
    with open(tmp_path / "endless.u8", "wb") as file:  # sparse: it takes longer than any test
        file.truncate(1 << 40)
    program = """
import sys
import lowtide as lt
a = lt.open(sys.argv[1], dtype="u1", shape=(1 << 30, 1024))
plan = lt.jobs.merge([a], sys.argv[2])
try:
    plan.run(progress=lambda done, total: done > 1 << 20 and print("going", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    package = Path(lt.__file__).parents[1]
    child = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "endless.u8", tmp_path / "out.npy"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(package)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "going\n"
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=120)
    assert child.returncode == 0 and said.splitlines()[-1] == "interrupted"
    assert entries(tmp_path) == ["endless.u8"]


def test_what_to_run_on_is_checked(tmp_path: Path, source: Path) -> None:
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy")
    for wrong in ("ray", 4, np):
        with pytest.raises(TypeError, match="on must be None"):
            plan.run(wrong)
    with pytest.raises(TypeError, match="progress must be"):
        plan.run(progress="yes")  # type: ignore[arg-type]
    assert entries(tmp_path) == ["m.npy"]
