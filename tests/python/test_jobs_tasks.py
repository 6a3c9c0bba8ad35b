"""lt.jobs: what a task knows about itself, who runs it, and how far it is."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import lowtide as lt
import numpy as np
from conftest import run
from job_files import (
    entries,
    matrix_file,
    permutation,
    run_by_hand,
)

MANY_TASKS = "1MiB"


def test_tasks_are_small_and_run_anywhere(tmp_path: Path) -> None:
    data = matrix_file(tmp_path / "m.npy", rows=20_000)
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out", memory=MANY_TASKS, shards=2)
    assert plan.tasks == [task for stage in plan.stages for task in stage]
    assert len(plan.stages[0]) > 1 and len(plan.stages[1]) > 1
    pickles = [[pickle.dumps(task) for task in stage] for stage in plan.stages]
    assert max(len(text) for stage in pickles for text in stage) < 4096
    for stage in pickles:
        for text in reversed(stage):  # each in a process of its own
            program = "import pickle, sys; pickle.load(sys.stdin.buffer).run()"
            subprocess.run([sys.executable, "-c", program], input=text, check=True)
    order = permutation(tmp_path, len(data), 0)
    with lt.open(tmp_path / "out") as a:
        np.testing.assert_array_equal(a[...], data[order])
    assert all(task.done() for task in plan.tasks)
    assert [name for name in entries(tmp_path) if name.startswith(".")] == []


def test_a_task_knows_what_it_reads_and_writes(tmp_path: Path) -> None:
    matrix_file(tmp_path / "m.npy", rows=20_000)
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", memory=MANY_TASKS)
    scatter, gather = plan.stages
    assert scatter[0].inputs == [str(tmp_path / "m.npy")]
    made = [path for task in scatter for path in task.outputs]
    assert made and len(set(made)) == len(made)
    assert all(Path(path).relative_to(tmp_path).parts[0].startswith(".out.npy") for path in made)
    read = {path for task in gather for path in task.inputs}
    assert set(made) <= read <= {*made, str(tmp_path / "m.npy")}
    assert {path for task in gather for path in task.outputs} == {str(tmp_path / "out.npy")}
    name = f"scatter 1/{len(scatter)}"
    assert (scatter[1].name, scatter[1].stage, scatter[1].number) == (name, 0, 1)
    assert repr(scatter[1]) == f"<lowtide.jobs.Task shuffle {name}>"
    told = f"tasks: scatter {len(scatter)}, gather {len(gather)}"
    assert repr(plan) == f"<lowtide.jobs.Plan shuffle to {str(tmp_path / 'out.npy')!r}, {told}>"
    assert scatter[0] == pickle.loads(pickle.dumps(scatter[0])) != scatter[1]
    assert len({*plan.tasks, *plan.tasks}) == len(plan.tasks)


def test_a_task_that_is_done_is_skipped(tmp_path: Path) -> None:
    data = matrix_file(tmp_path / "m.npy", rows=20_000)
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", memory=MANY_TASKS)
    first = plan.stages[0][0]
    assert not first.done()
    first.run()
    assert first.done()
    times = {path: Path(path).stat().st_mtime_ns for path in first.outputs}
    first.run()
    assert times == {path: Path(path).stat().st_mtime_ns for path in first.outputs}
    plan.run()  # goes on with what is there
    order = permutation(tmp_path, len(data), 0)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), data[order])
    assert entries(tmp_path) == ["m.npy", "out.npy"]


def test_tasks_run_by_hand_give_the_same_bytes(tmp_path: Path) -> None:
    matrix_file(tmp_path / "m.npy", rows=20_000)
    lt.shuffle(tmp_path / "m.npy", tmp_path / "a.npy", seed=5, memory=MANY_TASKS)
    run_by_hand(lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "b.npy", seed=5, memory=MANY_TASKS))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    assert entries(tmp_path) == ["a.npy", "b.npy", "m.npy"]


def test_progress_counts_bytes(tmp_path: Path) -> None:
    matrix_file(tmp_path / "m.npy", rows=20_000)
    seen: list[tuple[int, int]] = []
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", memory=MANY_TASKS)
    plan.run(progress=lambda done, total: seen.append((done, total)))
    done, total = zip(*seen)
    assert set(total) == {2 * 20_000 * 37 * 4}
    assert list(done) == sorted(done) and done[-1] == total[-1]
    assert len(set(done)) == len(done)


def test_progress_true_prints_a_line_per_task(tmp_path: Path, capsys) -> None:
    matrix_file(tmp_path / "m.npy", rows=20_000)
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", memory=MANY_TASKS)
    plan.run(progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == len(plan.tasks)
    assert lines[0].startswith(f"shuffle: scatter: 1 of {len(plan.stages[0])} tasks done, ")
    assert lines[-1].split(", ")[1].startswith("5.65 MiB of 5.65 MiB")
    lt.shuffle(tmp_path / "m.npy", tmp_path / "quiet.npy")
    assert capsys.readouterr().err == ""


def test_a_bar_shows_rate_bytes_and_time_left(monkeypatch) -> None:
    import io

    from lowtide._job import progress

    class Screen(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    screen, now = Screen(), [100.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = progress.shown(None, "shuffle")
    now[0] = 100.9
    bar.show(progress.Standing(1 << 20, 8 << 20, "scatter", 0, 4))
    assert screen.getvalue() == ""  # a shorter job draws none
    now[0] = 102.0
    bar.show(progress.Standing(2 << 20, 8 << 20, "scatter", 1, 4))
    (drawn,) = screen.getvalue().split("\r")[1:]
    assert drawn.startswith("shuffle: scatter  " + "█" * 10 + "░" * 30)
    assert drawn.endswith("  2 MiB of 8 MiB  1 MiB/s  6 s left\x1b[K")
    bar.close()
    assert screen.getvalue().endswith("\r\x1b[K")
    monkeypatch.setenv("TERM", "dumb")
    assert type(progress.shown(None, "shuffle")) is progress._Nothing


def test_jobs_are_loaded_when_first_used() -> None:
    code = "import lowtide, sys; print('lowtide.jobs' in sys.modules, lowtide.jobs.__name__)"
    assert run(code).stdout == "False lowtide.jobs\n"
    assert {"jobs", "ray", "shuffle", "convert", "merge"} <= set(dir(lt))
    assert dir(lt.jobs) == ["Plan", "Task", "check", "convert", "merge", "shuffle"]
