"""lt.create: wrong arguments, exceptions, lost writers, forks, crashes."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.npy"


def files(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({}, ValueError, "dtype is missing"),
        ({"dtype": "f4", "shape": (None, None)}, ValueError, "only the first entry of shape"),
        ({"dtype": "f4", "shape": (3, None)}, ValueError, "only the first entry of shape"),
        ({"dtype": "f4", "shape": ()}, ValueError, "at least one entry"),
        ({"dtype": "f4", "shape": (-1, 3)}, ValueError, "at least 0"),
        ({"dtype": "f4", "shape": (2.5, 3)}, TypeError, "an entry of shape must be an integer"),
        ({"dtype": "f4", "shape": (2**62, 3)}, ValueError, "2"),
        ({"dtype": "f4", "order": "F"}, ValueError, "the number of rows must be known"),
        ({"dtype": "f4", "order": "A"}, ValueError, "order must be 'C' or 'F'"),
        ({"dtype": "f4", "memory": "1KiB"}, ValueError, "memory: 1 KiB is too small: 32 KiB for"),
        ({"dtype": "f4", "memory": "lots"}, ValueError, "lots"),
        ({"dtype": "f4", "append": 1}, TypeError, "append must be a bool"),
        ({"append": True}, ValueError, "no such file to append to"),
        ({"dtype": object}, ValueError, "Python objects"),
        ({"dtype": "nonsense"}, TypeError, "dtype must be a NumPy dtype"),
    ],
)
def test_wrong_arguments_leave_nothing(path: Path, arguments: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        lt.create(path, **arguments)
    assert files(path) == []


def test_targets_are_refused_at_once(path: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError):
        lt.create(tmp_path / "folder.npy", dtype="f4")
    with pytest.raises(FileNotFoundError, match="create the folder first") as missing:
        lt.create(tmp_path / "none" / "a.npy", dtype="f4")
    assert missing.value.filename == str(tmp_path / "none" / "a.npy")
    with pytest.raises(NotADirectoryError):
        (tmp_path / "file").touch()
        lt.create(tmp_path / "file" / "a.npy", dtype="f4")
    with pytest.raises(ValueError, match=r"use the name .*/x\.f32\.npy"):
        lt.create(tmp_path / "x.f32", dtype="f4")
    with pytest.raises(TypeError, match="path must be"):
        lt.create(["a.npy"], dtype="f4")  # type: ignore[arg-type]
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(PermissionError):
            lt.create(path, dtype="f4")
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("index", "rows", "kind", "text"),
    [
        (slice(0, 2), np.zeros((2, 4), "f4"), ValueError, r"shape \(2, 3\), not \(2, 4\)"),
        (slice(0, 2), np.zeros((2, 1), "f4"), ValueError, r"shape \(2, 3\), not \(2, 1\)"),
        (slice(0, 2), np.zeros(3, "f4"), ValueError, "shape"),
        (0, np.zeros((1, 3), "f4"), ValueError, r"shape \(3,\), not \(1, 3\)"),
        (slice(0, 2), np.zeros((2, 3), "f8"), TypeError, r"astype\('float32'\)"),
        (slice(0, 2), np.zeros((2, 3), "c8"), TypeError, "may not fit"),
        (slice(0, 2), [["a"] * 3] * 2, TypeError, "may not fit"),
        (slice(0, 11), np.zeros((11, 3), "f4"), IndexError, "slice bound 11"),
        (slice(9, 12), 0, IndexError, "slice bound 12"),
        (10, np.zeros(3, "f4"), IndexError, "row 10"),
        (-11, np.zeros(3, "f4"), IndexError, "row -11"),
        ([0, 10], np.zeros((2, 3), "f4"), IndexError, "row 10"),
        ([True] * 9, 0, IndexError, "one entry per row: 10, not 9"),
        ((0, 1), 0, IndexError, "whole rows"),
        ("a", 0, IndexError, "not str"),
        (1.5, 0, IndexError, "not float"),
        (None, 0, IndexError, "not NoneType"),
        ([[0]], 0, IndexError, "one-dimensional"),
    ],
)
def test_wrong_rows_change_nothing(path: Path, index: Any, rows: Any, kind: Any, text: str) -> None:
    with lt.create(path, dtype="f4", shape=(10, 3)) as w:
        w[...] = 1
        with pytest.raises(kind, match=text):
            w[index] = rows
    assert (np.load(path) == 1).all()


def test_wrong_appends_are_refused(path: Path) -> None:
    with lt.create(path, dtype="u1") as w:
        with pytest.raises(ValueError, match="at least one axis"):
            w.append(3)
        w.append(np.zeros((2, 3), "u1"))
        with pytest.raises(ValueError, match=r"shape \(5, 3\), not \(5, 4\)"):
            w.append(np.zeros((5, 4), "u1"))
        with pytest.raises(ValueError, match="256, which does not fit into uint8"):
            w.append([[1, 2, 256]])
        with pytest.raises(IndexError):
            w[2:3] = np.zeros((1, 3), "u1")
    with pytest.raises(ValueError, match="the writer is closed"):
        w.append(np.zeros((1, 3), "u1"))
    with pytest.raises(ValueError, match="the writer is closed"):
        w[0] = 0
    with pytest.raises(ValueError, match="the writer is closed"):
        w.commit()
    w.close()
    assert repr(w) == "<lowtide.Writer 'a.npy' (closed)>"
    assert np.load(path).shape == (2, 3)


@pytest.mark.parametrize(
    ("dtype", "rows"),
    [
        ("i4", [2**40]),
        ("i4", np.int64(2**40)),
        ("i8", [2**63]),
        ("u8", [-1]),
        ("u1", np.uint16(300)),
        ("f2", [70000]),
        ("f4", [1e300]),
        ("c8", [1e300j]),
        ("U3", ["long text"]),
        ("S3", [b"long text"]),
        ("M8[s]", [np.datetime64("2020-01-01T00:00:00.500")]),
    ],
    ids=str,
)
def test_numbers_and_text_are_never_cut_to_fit(path: Path, dtype: str, rows: Any) -> None:
    with lt.create(path, dtype=dtype, shape=1) as w:
        with pytest.raises(ValueError, match=r"rows contain .*, which does not fit into"):
            w[:] = rows
    assert (np.load(path) == np.zeros(1, dtype)).all()


@pytest.mark.parametrize(
    ("dtype", "rows"),
    [
        ("f4", [0.1, float("inf"), float("nan")]),
        ("i2", [1, -1, True]),
        ("U3", ["a", "bc", "def"]),
        ("M8[s]", [np.datetime64("2020-01-01"), np.datetime64("NaT"), np.datetime64(0, "s")]),
    ],
    ids=str,
)
def test_lists_are_converted_as_numpy_does(path: Path, dtype: str, rows: Any) -> None:
    with lt.create(path, dtype=dtype) as w:
        w.append(rows)
        w.append([])
    assert np.load(path).tobytes() == np.array(rows, dtype).tobytes()


def test_a_tensor_is_converted_only_if_nothing_can_be_lost(path: Path) -> None:
    torch = pytest.importorskip("torch")
    with lt.create(path, dtype="i4", shape=(None, 2)) as w:
        with pytest.raises(TypeError, match=r"rows have dtype int64, which may not fit"):
            w.append(torch.tensor([[2**40, 1]]))
        w.append(torch.tensor([[1, 2]], dtype=torch.int16))
    assert np.load(path).tolist() == [[1, 2]]


def test_committed_rows_cannot_be_overwritten(path: Path) -> None:
    with lt.create(path, dtype="u1", shape=(4,)) as w:
        w[1] = 1
        w.commit()
        for index in (0, slice(1, 3), [3, 1]):
            with pytest.raises(ValueError, match="is committed"):
                w[index] = 9
        w[2:] = 2
    assert np.load(path).tolist() == [0, 1, 2, 2]


def test_an_exception_leaves_the_old_file(path: Path) -> None:
    with pytest.raises(RuntimeError), lt.create(path, dtype="u1", shape=(4,)) as w:
        w[:] = 1
        raise RuntimeError
    assert files(path) == [] and w.closed
    np.save(path, np.arange(3))
    with pytest.raises(KeyboardInterrupt), lt.create(path, dtype="u1", shape=(4,)) as w:
        raise KeyboardInterrupt
    assert np.load(path).tolist() == [0, 1, 2] and files(path) == ["a.npy"]
    with pytest.raises(RuntimeError), lt.create(path, append=True) as w:
        w.append([3, 4])
        raise RuntimeError
    assert np.load(path).tolist() == [0, 1, 2]


def test_a_lost_writer_leaves_nothing_and_says_so(path: Path) -> None:
    w = lt.create(path, dtype="u1", shape=(4,))
    w[:] = 1
    with pytest.warns(ResourceWarning, match="unclosed writer of .*a.npy"):
        del w
        gc.collect()
    assert files(path) == []


def test_a_path_has_one_writer(path: Path) -> None:
    with lt.create(path, dtype="u1") as w:
        for append in (False, True):
            with pytest.raises(OSError, match="another writer has it open") as busy:
                lt.create(path, dtype="u1", append=append)
            assert busy.value.errno == errno.EBUSY
        w.append([1])
    with lt.create(path, append=True), pytest.raises(OSError, match="another writer"):
        lt.create(path, dtype="u1")


def test_append_must_agree_with_the_file(path: Path) -> None:
    np.save(path, np.zeros((5, 3), "f4"))
    for arguments in ({"dtype": "f8"}, {"shape": (None, 4)}, {"shape": (4, 3)}, {"order": "F"}):
        with pytest.raises(ValueError, match=r"append|order F"):
            lt.create(path, append=True, **arguments)  # type: ignore[arg-type]
    path.write_bytes(b"not an array")
    with pytest.raises(lt.FormatError):
        lt.create(path, append=True)
    assert path.read_bytes() == b"not an array" and files(path) == ["a.npy"]


def test_a_writer_stays_in_its_process(path: Path) -> None:
    with lt.create(path, dtype="u1", shape=(2,)) as w:
        for spread in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                spread(w)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                w[0] = 9
            except ValueError as error:
                code = 0 if "forked" in str(error) and w.closed and repr(w) else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        w[:] = 1
    assert np.load(path).tolist() == [1, 1]


def test_a_killed_writer_leaves_its_commits(path: Path) -> None:
    program = """
import lowtide as lt, numpy as np, os, signal, sys
w = lt.create(sys.argv[1], dtype="i8", shape=(None, 100), memory="1MiB")
w.append(np.ones((500, 100), "i8"))
w.commit()
w.append(np.ones((5000, 100), "i8"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert np.load(path).shape == (500, 100)
    with lt.create(path, append=True) as w:
        assert len(w) == 500
    assert path.stat().st_size == 128 + 500 * 800


def test_a_file_size_limit_is_an_error_and_leaves_nothing(path: Path) -> None:
    program = """
import lowtide as lt, numpy as np, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
w = lt.create(sys.argv[1], dtype="i8", memory="1MiB")
try:
    w.append(np.ones(1 << 20, "i8"))
    w.close()
except OSError as error:
    first = error.errno
try:
    w.close()
except OSError as error:
    print(first == error.errno, "an earlier write failed" in str(error), w.closed)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True True True\n"
    assert files(path) == []


def test_stats_count_and_name_the_memory(path: Path) -> None:
    with lt.create(path, dtype="u1", shape=(None, 1000), memory="8MiB") as w:
        for _ in range(100):
            w.append(np.zeros((7, 1000), "u1"))
        stats = w.stats()
        assert stats["bytes_given"] == 700_000
        assert set(stats["memory"]["claims"]) == {
            "gathered rows", "pages on their way to the disk", "sorted row numbers",
        }  # fmt: skip
        assert sum(stats["memory"]["claims"].values()) <= stats["memory"]["limit"] == 8 << 20
        assert repr(w) == "<lowtide.Writer 'a.npy': uint8 (700, 1000), 700 rows written>"
    stats = w.stats()
    assert stats["bytes_written"] == 700_000 and stats["writes"] <= 5
    assert stats["memory"]["claims"] == {}
