"""lt.jobs: what is written, by whom it is run, and what a task knows about itself."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from conftest import run
from job_files import (
    entries,
    matrix_file,
    permutation,
    run_by_hand,
    some_documents,
    write_documents,
)
from token_files import write_nanogpt

MANY_TASKS = "1MiB"


@pytest.mark.parametrize("memory", [MANY_TASKS, None])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_shuffle_is_numpys_permutation(tmp_path: Path, memory: str | None, shards: int) -> None:
    data = matrix_file(tmp_path / "m.npy", rows=20_000)
    out = tmp_path / ("out.npy" if shards == 1 else "out")
    lt.shuffle(tmp_path / "m.npy", out, seed=7, memory=memory, shards=shards)
    with lt.open(out) as a:
        np.testing.assert_array_equal(a[...], data[permutation(tmp_path, 20_000, 7)])
    made = ["m.npy", out.name]
    if shards > 1:
        made += [f"out/part-{part:05d}-of-00003.npy" for part in range(shards)]
    assert entries(tmp_path) == sorted(made)


def test_memory_and_shards_do_not_change_the_order(tmp_path: Path) -> None:
    matrix_file(tmp_path / "m.npy")
    lt.shuffle(tmp_path / "m.npy", tmp_path / "a.npy", seed=3, memory="1MiB")
    lt.shuffle(tmp_path / "m.npy", tmp_path / "b.npy", seed=3, memory="64MiB")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    lt.shuffle(tmp_path / "m.npy", tmp_path / "c.npy", seed=4)
    assert (tmp_path / "a.npy").read_bytes() != (tmp_path / "c.npy").read_bytes()


@pytest.mark.parametrize(
    "data",
    [
        np.arange(3000, dtype=">f8"),
        np.arange(3000 * 6, dtype="u1").reshape(3000, 2, 3),
        np.array([(i, i / 2) for i in range(3000)], [("a", "<i4"), ("b", "<f8")]),
        np.asfortranarray(np.arange(9000, dtype="<i2").reshape(3000, 3)),
        np.arange(5, dtype="<i8"),
        np.zeros((1, 4), "f4"),
    ],
    ids=["1d big-endian", "3d", "fields", "fortran", "few", "one"],
)
def test_rows_of_any_kind_are_shuffled(tmp_path: Path, data: np.ndarray) -> None:
    np.save(tmp_path / "m.npy", data)
    lt.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", seed=1, memory=MANY_TASKS)
    found = np.load(tmp_path / "out.npy")
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data[permutation(tmp_path, len(data), 1)])


def test_a_source_is_named_in_many_ways(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    data = np.arange(900, dtype="<f4").reshape(300, 3)
    np.save(tmp_path / "in" / "part_0.npy", data[:100])
    np.save(tmp_path / "in" / "part_1.npy", data[100:])
    data.tofile(tmp_path / "m.f32")
    parts = [tmp_path / "in" / f"part_{number}.npy" for number in range(2)]
    expected = data[permutation(tmp_path, 300, 0)]
    with lt.open(parts) as a, lt.open(tmp_path / "m.f32", dtype="<f4", shape=(300, 3)) as raw:
        sources = [tmp_path / "in", str(tmp_path / "in" / "part_*.npy"), parts, a, raw]
        for number, source in enumerate(sources):
            lt.shuffle(source, tmp_path / f"out{number}.npy")
            np.testing.assert_array_equal(np.load(tmp_path / f"out{number}.npy"), expected)


def test_a_relative_path_means_the_same_elsewhere(tmp_path: Path, monkeypatch) -> None:
    data = matrix_file(tmp_path / "m.npy")
    monkeypatch.chdir(tmp_path)
    plan = lt.jobs.shuffle("m.npy", "out.npy")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    pickle.loads(pickle.dumps(plan)).run()
    order = permutation(tmp_path, len(data), 0)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), data[order])


@pytest.mark.parametrize(("form", "name"), [("megatron", "t.bin"), ("datatrove", "t.ds")])
@pytest.mark.parametrize("shards", [1, 4])
def test_documents_stay_whole(tmp_path: Path, form: str, name: str, shards: int) -> None:
    documents = some_documents()
    path = write_documents(tmp_path / name, form, documents)
    order = permutation(tmp_path, len(documents), 11)
    out = tmp_path / (f"out{path.suffix}" if shards == 1 else "out")
    with lt.tokens(path) as t:
        plan = lt.jobs.shuffle(t.documents, out, seed=11, memory=MANY_TASKS, shards=shards)
    plan.run()
    with lt.tokens(out) as t:
        assert t.format == form
        found = [document.tolist() for document in t.documents]
    assert found == [documents[place].tolist() for place in order]
    other = tmp_path / (f"other{path.suffix}" if shards == 1 else "other")
    lt.shuffle(path, other, unit="document", seed=11, shards=shards)
    with lt.tokens(other) as t, lt.tokens(out) as u:
        np.testing.assert_array_equal(t[:], u[:])


def test_windows_become_rows(tmp_path: Path) -> None:
    tokens = np.random.default_rng(0).integers(0, 50257, 10_007).astype("<u2")
    path = write_nanogpt(tmp_path / "t.bin", tokens)
    lt.shuffle(path, tmp_path / "out.npy", unit="window", block_size=16, seed=2, memory=MANY_TASKS)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, 17)[::16]
    assert len(windows) == (len(tokens) - 1) // 16
    expected = windows[permutation(tmp_path, len(windows), 2)]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@pytest.mark.parametrize("shards", [1, 3])
def test_ragged_samples_stay_whole(tmp_path: Path, shards: int) -> None:
    samples = some_documents(dtype="i4")
    np.save(tmp_path / "values.npy", np.concatenate(samples))
    np.save(tmp_path / "offsets.npy", np.cumsum([0, *map(len, samples)]))
    r = lt.ragged(lt.open(tmp_path / "values.npy"), lt.open(tmp_path / "offsets.npy"))
    lt.shuffle(r, tmp_path / "out", seed=9, memory=MANY_TASKS, shards=shards)
    suffix = ".npy" if shards == 1 else ""
    found = lt.ragged(
        lt.open(tmp_path / "out" / f"values{suffix}"),
        lt.open(tmp_path / "out" / f"offsets{suffix}"),
    )
    order = permutation(tmp_path, len(samples), 9)
    assert [s.tolist() for s in found] == [samples[place].tolist() for place in order]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("nanogpt", "o.bin"),
        ("llmc", "o.bin"),
        ("megatron", "o.bin"),
        ("olmo", "o.npy"),
        ("datatrove", "o.ds"),
        ("npy", "o.npy"),
    ],
)
def test_tokens_are_converted_to_every_format(tmp_path: Path, form: str, name: str) -> None:
    documents = some_documents()
    path = write_documents(tmp_path / "t.bin", "megatron", documents)
    lt.convert(path, tmp_path / name, form, memory=MANY_TASKS)
    with lt.tokens(tmp_path / name, format=form, dtype="uint16") as t:
        np.testing.assert_array_equal(t[:], np.concatenate(documents))
        if form in ("megatron", "datatrove"):
            found = t.documents
            assert found is not None
            assert [d.tolist() for d in found] == [d.tolist() for d in documents]


def test_an_eot_of_the_source_gives_documents(tmp_path: Path) -> None:
    documents = [[1, 2, 0], [0], [5, 6, 7, 0]]
    path = write_nanogpt(tmp_path / "t.bin", np.concatenate(documents))
    with lt.tokens(path, eot=0) as t:
        lt.convert(t, tmp_path / "o.bin", "megatron", dtype="int32")
    with lt.tokens(tmp_path / "o.bin") as t:
        assert t.dtype == np.int32
        assert t.documents is not None
        assert [d.tolist() for d in t.documents] == documents


def test_arrays_are_converted(tmp_path: Path) -> None:
    data = np.asfortranarray(np.arange(900, dtype="<f4").reshape(300, 3))
    np.save(tmp_path / "f.npy", data)
    lt.convert(tmp_path / "f.npy", tmp_path / "raw.f32", "raw")
    assert (tmp_path / "raw.f32").read_bytes() == data.tobytes("C")
    with lt.open(tmp_path / "raw.f32", dtype="<f4", shape=(300, 3)) as raw:
        lt.convert(raw, tmp_path / "c.npy", "npy")
    np.save(tmp_path / "expected.npy", np.ascontiguousarray(data))
    assert (tmp_path / "c.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()


def test_files_are_merged_in_order(tmp_path: Path) -> None:
    data = matrix_file(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", data[::-1])
    with lt.open(tmp_path / "b.npy") as b:
        lt.merge([tmp_path / "a.npy", b, tmp_path / "a.npy"], tmp_path / "all.npy")
    np.testing.assert_array_equal(
        np.load(tmp_path / "all.npy"), np.concatenate([data, data[::-1], data])
    )
    documents = some_documents()
    first = write_documents(tmp_path / "x.bin", "megatron", documents[:100])
    second = write_documents(tmp_path / "y.bin", "megatron", documents[100:])
    whole = write_documents(tmp_path / "whole.bin", "megatron", documents)
    lt.merge([first, second], tmp_path / "z.bin", memory=MANY_TASKS)
    for suffix in (".bin", ".idx"):
        merged = (tmp_path / "z.bin").with_suffix(suffix)
        assert merged.read_bytes() == whole.with_suffix(suffix).read_bytes()


def test_a_check_finds_the_fault_and_writes_nothing(tmp_path: Path) -> None:
    matrix_file(tmp_path / "m.npy")
    plan = lt.jobs.check(tmp_path / "m.npy")
    assert plan.verb == "check" and plan.destination == ""
    plan.run()
    path = write_documents(tmp_path / "t.bin", "megatron", some_documents())
    plan = lt.jobs.check(path)
    with open(path.with_suffix(".idx"), "r+b") as index:
        index.seek(34 + 4 * 3)
        index.write(b"\xff\xff\xff\x7f")
    with pytest.raises((lt.FormatError, OSError)):
        plan.run()
    assert entries(tmp_path) == ["m.npy", "t.bin", "t.idx"]


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

    from lowtide import _progress

    class Screen(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    screen, now = Screen(), [100.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    bar = _progress.shown(None, "shuffle")
    now[0] = 100.9
    bar.show(_progress.Standing(1 << 20, 8 << 20, "scatter", 0, 4))
    assert screen.getvalue() == ""  # a shorter job draws none
    now[0] = 102.0
    bar.show(_progress.Standing(2 << 20, 8 << 20, "scatter", 1, 4))
    (drawn,) = screen.getvalue().split("\r")[1:]
    assert drawn.startswith("shuffle: scatter  " + "█" * 10 + "░" * 30)
    assert drawn.endswith("  2 MiB of 8 MiB  1 MiB/s  6 s left\x1b[K")
    bar.close()
    assert screen.getvalue().endswith("\r\x1b[K")
    monkeypatch.setenv("TERM", "dumb")
    assert type(_progress.shown(None, "shuffle")) is _progress._Nothing


def test_jobs_are_loaded_when_first_used() -> None:
    code = "import lowtide, sys; print('lowtide.jobs' in sys.modules, lowtide.jobs.__name__)"
    assert run(code).stdout == "False lowtide.jobs\n"
    assert {"jobs", "ray", "shuffle", "convert", "merge"} <= set(dir(lt))
    assert dir(lt.jobs) == ["Plan", "Task", "check", "convert", "merge", "shuffle"]
