"""Array.map: what fn returns lands in place, within the budget, or nothing is published."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest
from command import hear_signals


@pytest.fixture
def data() -> Any:
    return np.random.default_rng(0).random((10_007, 13)).astype("f4")


@pytest.fixture
def source(tmp_path: Path, data: Any) -> Path:
    np.save(tmp_path / "a.npy", data)
    return tmp_path / "a.npy"


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("rows", [1, 1000, 10_007, 50_000])
def test_results_are_those_of_numpy(
    tmp_path: Path, source: Path, data: Any, rows: int, workers: int
) -> None:
    few = data[:500] if rows == 1 else data
    np.save(source, few)
    with lt.open(source, memory="64MiB") as a:
        a.map(lambda x: (x[:, ::-1] * 2).astype("f8"), tmp_path / "b.npy", rows, workers)
        assert a.stats()["memory"]["held_by_you"] == 0
    expected = (few[:, ::-1] * 2).astype("f8")
    np.save(tmp_path / "numpy.npy", expected)
    assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()


def test_fn_decides_dtype_and_row_shape(tmp_path: Path, source: Path, data: Any) -> None:
    out = tmp_path / "b.npy"
    with lt.open(source) as a:
        a.map(lambda x: x.sum(axis=1) > 6, out, rows=999)
        assert np.array_equal(np.load(out), data.sum(axis=1) > 6)
        a.map(lambda x: x[:, :12].reshape(-1, 3, 4).astype(">i2"), out, rows=999)
        assert np.load(out).dtype == ">i2" and np.load(out).shape == (10_007, 3, 4)
        a.map(lambda x: [[1, 2]] * len(x), str(out), rows=4000)
        assert np.load(out).tolist() == [[1, 2]] * 10_007


def test_a_chunk_may_be_changed_and_returned(tmp_path: Path, source: Path, data: Any) -> None:
    def negate(x: Any) -> Any:
        np.negative(x, out=x)
        return x

    with lt.open(source, memory="1MiB") as a:
        for workers in (1, 2):
            a.map(negate, tmp_path / "b.npy", rows=300, workers=workers)
            assert np.array_equal(np.load(tmp_path / "b.npy"), -data)
    assert np.array_equal(np.load(source), data)


def test_fortran_order_and_several_files_and_no_rows(tmp_path: Path, data: Any) -> None:
    out = tmp_path / "out" / "b.npy"
    out.parent.mkdir()
    np.save(tmp_path / "f.npy", np.asfortranarray(data))
    lt.open(tmp_path / "f.npy").map(np.sqrt, out, rows=700)
    assert np.array_equal(np.load(out), np.sqrt(data))
    for i in range(3):
        np.save(tmp_path / f"s{i}.npy", data[i * 3000 : (i + 1) * 3000])
    lt.open([tmp_path / f"s{i}.npy" for i in range(3)]).map(np.sqrt, out, rows=700, workers=2)
    assert np.array_equal(np.load(out), np.sqrt(data[:9000]))
    np.save(tmp_path / "empty.npy", data[:0])
    lt.open(tmp_path / "empty.npy").map(lambda x: x[:, :2].astype("i8"), out)
    assert np.load(out).shape == (0, 2) and np.load(out).dtype == "i8"


def test_one_worker_is_the_callers_thread_and_in_order(tmp_path: Path, source: Path) -> None:
    seen: list[tuple[int, float]] = []

    def fn(x: Any) -> Any:
        seen.append((threading.get_ident(), float(x[0, 0])))
        return x

    with lt.open(source) as a:
        a.map(fn, tmp_path / "b.npy", rows=1000)
        assert seen == [(threading.get_ident(), float(a[i, 0])) for i in range(0, 10_007, 1000)]


def test_workers_run_at_the_same_time_and_land_in_place(
    tmp_path: Path, source: Path, data: Any
) -> None:
    together = threading.Barrier(3)
    first = threading.Event()

    def fn(x: Any) -> Any:
        if not first.is_set():  # the first chunk is alone: it decides the shape
            first.set()
            return x
        if threading.get_ident() != caller:
            together.wait(timeout=60)
            time.sleep(float(x[0, 0]) / 100)  # they finish in another order than they began
        return x

    caller = threading.get_ident()
    with lt.open(source) as a, np.errstate(invalid="raise"):
        a.map(fn, tmp_path / "b.npy", rows=1001, workers=3)  # one chunk and three times three
        with pytest.raises(FloatingPointError):
            a.map(
                lambda x: np.sqrt(x if x[0, 0] == data[0, 0] else -x - 1),
                tmp_path / "c.npy",
                rows=1000,
                workers=3,
            )
    assert np.array_equal(np.load(tmp_path / "b.npy"), data)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (
            lambda x: x[:-1],
            ValueError,
            r"one row per input row: for rows 2000:3000 it returned shape",
        ),
        (lambda x: x.sum(), ValueError, r"returned shape \(\), not \(1000, ...\)"),
        (lambda x: x[:, :5], ValueError, r"rows 2000:3000 fn returned rows of shape \(5,\), but"),
        (lambda x: x.astype("f8"), TypeError, "fn returned dtype float64, but before float32"),
        (lambda x: None, TypeError, "not NoneType"),
        (lambda x: [object()] * len(x), TypeError, "not dtype object"),
    ],
)
def test_what_fn_returns_is_checked(
    tmp_path: Path, source: Path, data: Any, wrong: Any, kind: Any, text: str, workers: int
) -> None:
    def fn(x: Any) -> Any:
        return wrong(x) if x[0, 0] == data[2000, 0] else x

    before = threading.active_count()
    with lt.open(source) as a, pytest.raises(kind, match=text):
        a.map(fn, tmp_path / "b.npy", rows=1000, workers=workers)
    assert files(tmp_path) == ["a.npy"]
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("chunk", [0, 3, 10])
def test_an_exception_passes_unchanged_and_publishes_nothing(
    tmp_path: Path, source: Path, data: Any, chunk: int, workers: int
) -> None:
    mine = RuntimeError("mine")

    def fn(x: Any) -> Any:
        if x[0, 0] == data[chunk * 1000, 0]:
            raise mine
        return x

    np.save(tmp_path / "b.npy", np.arange(3))
    with lt.open(source) as a:
        with pytest.raises(RuntimeError) as found:
            a.map(fn, tmp_path / "b.npy", rows=1000, workers=workers)
        assert found.value is mine
        assert a.stats()["memory"]["claims"].get("work beside the batches") is None
    assert np.load(tmp_path / "b.npy").tolist() == [0, 1, 2]
    assert files(tmp_path) == ["a.npy", "b.npy"]


def test_wrong_arguments_leave_nothing(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "b.npy"
    os.symlink(source, tmp_path / "link.npy")
    with lt.open(source) as a:
        for path in (source, tmp_path / "link.npy", os.fsencode(source)):
            with pytest.raises(ValueError, match="is a file of this array"):
                a.map(np.sqrt, path)
        with pytest.raises(TypeError, match="fn must be callable, not int"):
            a.map(3, out)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="path must be"):
            a.map(np.sqrt, 3)  # type: ignore[arg-type]
        for wrong in ({"rows": 0}, {"workers": 0}, {"workers": 10**6}):
            with pytest.raises(ValueError, match=r"rows|workers"):
                a.map(np.sqrt, out, **wrong)
        with pytest.raises(TypeError, match="progress must be"):
            a.map(np.sqrt, out, progress="yes")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"\.npy"):
            a.map(np.sqrt, tmp_path / "b.f32")
        with pytest.raises(FileNotFoundError):
            a.map(np.sqrt, tmp_path / "none" / "b.npy")
    with pytest.raises(ValueError, match="closed"):
        a.map(np.sqrt, out)
    np.save(tmp_path / "scalar.npy", np.float32(3))
    with pytest.raises(TypeError, match="0-d"):
        lt.open(tmp_path / "scalar.npy").map(np.sqrt, out)
    assert files(tmp_path) == ["a.npy", "link.npy", "scalar.npy"]


def test_too_little_memory_is_refused_with_what_would_do(tmp_path: Path, source: Path) -> None:
    with lt.open(source, memory="1MiB") as a:
        with pytest.raises(ValueError, match=r"too small: .* for work beside the batches") as found:
            a.map(np.sqrt, tmp_path / "b.npy", rows=10_000)
        assert files(tmp_path) == ["a.npy"]
        need = str(found.value).rpartition("use at least ")[2].replace(" ", "")
    with lt.open(source, memory=need) as a:
        a.map(np.sqrt, tmp_path / "b.npy", rows=10_000)
        assert np.array_equal(np.load(tmp_path / "b.npy"), np.sqrt(np.load(source)))


def test_the_memory_is_claimed_while_it_runs(tmp_path: Path, source: Path) -> None:
    seen: list[int] = []
    with lt.open(source, memory="4MiB") as a:

        def fn(x: Any) -> Any:
            memory = a.stats()["memory"]
            assert sum(memory["claims"].values()) <= memory["limit"]
            seen.append(memory["claims"].get("work beside the batches", 0))
            return x

        a.map(fn, tmp_path / "b.npy", rows=1000, workers=2)
    # The writer's quarter, three chunks and four results; before the first chunk nothing is known.
    assert seen[0] == 0 and set(seen[1:]) == {(1 << 20) + 7 * 1000 * 13 * 4}


def test_progress_counts_rows_on_the_callers_thread(tmp_path: Path, source: Path) -> None:
    for workers in (1, 3):
        seen: list[tuple[int, int]] = []

        def note(done: int, total: int, seen: Any = seen) -> None:
            assert threading.current_thread() is threading.main_thread()
            seen.append((done, total))

        with lt.open(source) as a:
            a.map(np.sqrt, tmp_path / "b.npy", rows=1000, workers=workers, progress=note)
        assert len(seen) == 11 and seen[-1] == (10_007, 10_007)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with lt.open(source) as a, pytest.raises(KeyboardInterrupt):
        a.map(np.sqrt, tmp_path / "c.npy", rows=1000, progress=stop)
    assert files(tmp_path) == ["a.npy", "b.npy"]


def test_progress_true_prints_a_line_per_tenth(tmp_path: Path, source: Path, capsys) -> None:
    with lt.open(source) as a:
        a.map(np.sqrt, tmp_path / "b.npy", rows=100, progress=True)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 10
        assert lines[0].startswith("map: 1100 of 10007 rows, ")
        whole = lt.info(source)["bytes"] - 128
        assert lines[-1].startswith(f"map: 10007 of 10007 rows, {whole / 1024:.0f} KiB of ")
        a.map(np.sqrt, tmp_path / "b.npy", rows=100)
        a.map(np.sqrt, tmp_path / "b.npy", rows=100, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path, source: Path, workers: int) -> None:
    program = """
import sys, time, threading, lowtide as lt
def fn(x):
    if len(sys.argv) > 3:
        print("here", flush=True)
        sys.argv.pop()
    time.sleep(0.05)
    return x
try:
    lt.open(sys.argv[1]).map(fn, sys.argv[1] + ".b.npy", rows=10, workers=int(sys.argv[2]))
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""
    argv = [sys.executable, "-c", program, str(source), str(workers), "first"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, preexec_fn=hear_signals
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    assert out == "interrupted 1\n" and child.returncode == 0
    assert files(tmp_path) == ["a.npy"]
