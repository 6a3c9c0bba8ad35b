"""Wrong arguments raise errors that name them: names, sizes, types, engines."""

from __future__ import annotations

import pathlib

import lowtide as lt
import numpy as np
import pytest
from conftest import run


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"dtype": "<f4"}, r"<f4|<i4"),
        ({"dtype": ">i4"}, r">i4|<i4"),
        ({"shape": (37, 1000)}, r"\(37, 1000\)"),
        ({"order": "F"}, r"order"),
    ],
)
def test_an_argument_that_contradicts_the_header_is_refused(matrix, given, text):
    with pytest.raises(ValueError, match=text) as caught:
        lt.open(matrix[0], **given)
    assert "m.npy" in str(caught.value)


def test_files_that_do_not_match_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4)))
    np.save(tmp_path / "b.npy", np.zeros((3, 5)))
    np.save(tmp_path / "c.npy", np.zeros((3, 4), np.float32))
    for other in "bc":
        with pytest.raises(ValueError, match=rf"{other}\.npy"):
            lt.open([tmp_path / "a.npy", tmp_path / f"{other}.npy"])


@pytest.mark.parametrize(
    ("memory", "error", "text"),
    [
        ("lots", ValueError, 'memory: "lots" is not a size in bytes'),
        ("", ValueError, "memory|size"),
        ("-1MiB", ValueError, "-1MiB"),
        ("nan", ValueError, "nan"),
        ("12 parsecs", ValueError, "12 parsecs"),
        (0, ValueError, "not 0"),
        (-5, ValueError, "not -5"),
        (2**63, ValueError, "2\\*\\*63"),
        (True, ValueError, "not True"),
        (1e6, ValueError, "not 1000000.0"),
        (float("nan"), ValueError, "not nan"),
        ([1 << 20], TypeError, "not list"),
        (b"1MiB", TypeError, "not bytes"),
    ],
)
def test_an_invalid_budget_is_refused(matrix, memory, error, text):
    with pytest.raises(error, match=text):
        lt.open(matrix[0], memory=memory)


def test_a_budget_too_small_says_what_is_needed(matrix):
    with pytest.raises(ValueError, match="1 KiB") as caught:
        lt.open(matrix[0], memory=1024)
    assert "B" in str(caught.value).split("1 KiB", 1)[1]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"engine": "turbo"}, ValueError, "turbo.*(auto|pread)|(auto|pread).*turbo"),
        ({"engine": None}, TypeError, "engine must be a str, not NoneType"),
        ({"cache": "maybe"}, ValueError, "maybe"),
        ({"cache": 1}, TypeError, "cache must be a str, not int"),
        ({"order": "K"}, ValueError, "order must be 'C' or 'F', not 'K'"),
        ({"order": 3}, TypeError, "order must be a str"),
        ({"shape": -1}, ValueError, "an entry of shape must be at least 0, not -1"),
        ({"shape": (3, True)}, TypeError, "an entry of shape must be an integer, not bool"),
        ({"shape": (3, 2.0)}, TypeError, "an entry of shape must be an integer, not float"),
        ({"shape": (3, [2])}, TypeError, "an entry of shape must be an integer, not list"),
        ({"shape": (2**63,)}, ValueError, "an entry of shape must be at most"),
        ({"shape": (2**62, 2**62)}, ValueError, "m.bin"),
        ({"shape": "12"}, TypeError, "an entry of shape must be an integer, not str"),
        ({"offset": -1}, ValueError, "offset must be at least 0, not -1"),
        ({"offset": 1.5}, TypeError, r"offset must be an integer, not float \(1.5\)"),
        ({"offset": float("nan")}, TypeError, "offset must be an integer, not float"),
        ({"dtype": "float99"}, TypeError, "dtype must be a NumPy dtype such as .*float99"),
        ({"dtype": "V0"}, ValueError, "m.bin"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, arguments, error, text):
    path = tmp_path / "m.bin"
    path.write_bytes(bytes(64))
    with pytest.raises(error, match=text):
        lt.open(path, **{"dtype": "u1", **arguments})


@pytest.mark.parametrize(
    ("path", "error", "text"),
    [
        (None, TypeError, "not NoneType"),
        (3, TypeError, "not int"),
        ([], ValueError, "empty list"),
        ([3], TypeError, r"path\[0\] must be a str or an os.PathLike, not int"),
        (["a", None], TypeError, r"path\[1\] must be a str or an os.PathLike, not NoneType"),
        ("a\0b", ValueError, "null byte"),
        ("", OSError, "No such file"),
    ],
)
def test_an_invalid_path_is_refused(path, error, text):
    with pytest.raises(error, match=text):
        lt.open(path)


def test_an_engine_that_is_forbidden_is_an_error_and_auto_does_without(matrix):
    code = """
import sys
sys.path.insert(0, sys.argv[2])
from seccomp import forbid_io_uring
forbid_io_uring()
import lowtide as lt
try:
    lt.open(sys.argv[1], engine="uring")
except OSError as error:
    print(error)
a = lt.open(sys.argv[1], memory="128KiB", cache="drop")
print(a.engine, a.stats()["engine_reason"], int(a[7, 0]))
"""
    scenarios = pathlib.Path(__file__).parents[2] / "bench" / "scenarios"
    found = run(code, matrix[0], scenarios)
    if "seccomp filter was refused" in found.stderr:
        pytest.skip("seccomp filters are refused here")
    assert found.returncode == 0, found.stderr
    refused, chosen = found.stdout.splitlines()
    assert "engine uring" in refused
    assert "Operation not permitted" in refused or "built without liburing" in refused
    assert "the engines auto and pread work without it" in refused
    assert chosen.startswith("pread ") and "no io_uring here" in chosen
    assert chosen.endswith(" 259")  # row 7 of 37 columns


def test_the_memory_engine_for_more_than_the_budget(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((1000, 1000)))
    with pytest.raises(ValueError, match="memory"):
        lt.open(tmp_path / "m.npy", engine="memory", memory="1MiB")
