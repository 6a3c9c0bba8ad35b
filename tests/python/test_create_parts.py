"""Writer.part: several processes write the rows of one array."""

from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest

ROWS, COLUMNS = 10_007, 13  # rows of 52 bytes: parts begin and end inside pages


def rows_of(start: int, stop: int) -> Any:
    return np.arange(start * COLUMNS, stop * COLUMNS, dtype="<i4").reshape(-1, COLUMNS)


def work(part: lt.Part) -> int:
    with part.open(memory="1MiB") as w:
        middle = (part.start + part.stop) // 2
        w[middle : part.stop] = rows_of(middle, part.stop)
        index = np.random.default_rng(part.start).permutation(np.arange(part.start, middle))
        for some in np.array_split(index, 3):
            w[some] = rows_of(0, ROWS)[some]
    return len(part)


def die(part: lt.Part) -> None:
    w = part.open()
    w[part.start] = 1
    os.kill(os.getpid(), signal.SIGKILL)


def fail(part: lt.Part) -> None:
    with part.open() as w:
        w[part.start] = 1
        raise RuntimeError("no luck")


def parts_of(w: lt.Writer, count: int) -> list[lt.Part]:
    bounds = [ROWS * i // count for i in range(count + 1)]
    return [w.part(start, stop) for start, stop in itertools.pairwise(bounds)]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_write_parts_of_one_array(tmp_path: Path, method: str) -> None:
    path = tmp_path / "a.npy"
    with lt.create(path, "<i4", (ROWS, COLUMNS), memory="2MiB") as w:
        parts = parts_of(w, 7)
        with multiprocessing.get_context(method).Pool(3) as pool:
            assert sum(pool.map(work, parts)) == ROWS
        assert os.listdir(tmp_path) == [".a.npy.lowtide-part"]
    np.save(tmp_path / "numpy.npy", rows_of(0, ROWS))
    assert path.read_bytes() == (tmp_path / "numpy.npy").read_bytes()


@pytest.mark.parametrize(
    ("task", "text"),
    [(die, "its process ended without close"), (fail, "abandoned after an error")],
)
def test_a_failed_process_is_reported_and_its_part_written_again(
    tmp_path: Path, task: Any, text: str
) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3))
    with (
        pytest.raises(ValueError, match=rf"1 of 2 parts are not closed \(rows 5003:10007: {text}"),
        lt.create(path, "<i4", (ROWS, COLUMNS)) as w,
    ):
        first, second = parts_of(w, 2)
        work(first)
        child = multiprocessing.get_context("fork").Process(target=task, args=(second,))
        child.start()
        child.join()
        assert child.exitcode != 0
    assert w.closed and os.listdir(tmp_path) == ["a.npy"]
    assert np.load(path).tolist() == [0, 1, 2]  # the with block published nothing

    w = lt.create(path, "<i4", (ROWS, COLUMNS))
    first, second = parts_of(w, 2)
    work(first)
    with pytest.raises(ValueError, match="rows 5003:10007: never opened"):
        w.close()
    assert not w.closed
    work(second)
    w.close()
    assert np.array_equal(np.load(path), rows_of(0, ROWS))


def test_a_part_is_data_until_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with lt.create(path, [("x", "<f4"), ("y", "<i8", (2,))], (10,)) as w:
        part = w.part(3, 7)
        assert (part.start, part.stop, len(part)) == (3, 7, 4)
        assert repr(part) == f"<lowtide.Part of {str(path)!r}: rows 3:7>"
        part = pickle.loads(pickle.dumps(part))
        w[[0, 9]] = np.ones(2, w.dtype)
        with part.open() as mine:
            assert mine.shape == (10,) and mine.dtype == w.dtype
            two = np.zeros(2, w.dtype)
            two["x"] = 5
            mine.append(two)
            with pytest.raises(OSError, match="another process has this part open") as busy:
                part.open()
            assert busy.value.errno == errno.EBUSY
            with pytest.raises(IndexError, match="outside this part, which has rows 3:7"):
                mine[7] = np.ones((), w.dtype)
            with pytest.raises(ValueError, match="commit is not possible with parts"):
                mine.commit()
    assert np.load(path)["x"].tolist() == [1, 0, 0, 5, 5, 0, 0, 0, 0, 1]
    with pytest.raises(OSError, match="published or abandoned") as gone:
        part.open()
    assert gone.value.errno == errno.ESTALE


def test_wrong_parts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with lt.create(path, "f4", (10, 2)) as w:
        for start, stop in ((0, 11), (4, 4), (5, 3)):
            with pytest.raises(IndexError, match="not a range within an array of 10 rows"):
                w.part(start, stop)
        with pytest.raises(ValueError, match="start"):
            w.part(-1, 3)
        with pytest.raises(TypeError, match="stop"):
            w.part(0, 2.5)  # type: ignore[arg-type]
        part = w.part(2, 6)
        with pytest.raises(ValueError, match="rows 2:6 already belong to another part"):
            w.part(5, 8)
        with pytest.raises(ValueError, match="rows 2:6 belong to a part"):
            w[0:3] = 0
        with pytest.raises(ValueError, match="memory"):
            part.open(memory="1KiB")
        with part.open() as mine:
            mine[2:6] = 1
    with pytest.raises(ValueError, match="closed"):
        w.part(0, 1)
    with lt.create(path, "f4") as w, pytest.raises(ValueError, match=r"shape .* must be known"):
        w.part(0, 1)
    with lt.create(path, "f4", (4, 2), order="F") as w, pytest.raises(ValueError, match="order F"):
        w.part(0, 1)


def test_a_child_of_a_fork_uses_a_part_and_not_the_writer(tmp_path: Path) -> None:
    with lt.create(tmp_path / "a.npy", "u1", (4,)) as w:
        part = w.part(0, 2)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                w[3] = 9
            except ValueError as error:
                if "part" in str(error):
                    with part.open() as mine:
                        mine[0:2] = 7
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        w[2:] = 1
    assert np.load(tmp_path / "a.npy").tolist() == [7, 7, 1, 1]
