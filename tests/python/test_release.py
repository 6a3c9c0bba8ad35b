"""lt.release: the pages of any map, counted as they leave."""

from __future__ import annotations

import ctypes
import mmap
import pathlib

import lowtide as lt
import numpy as np
import pytest

MIB = 1 << 20


@pytest.fixture
def path(tmp_path):
    np.full(8 * MIB, 7, np.uint8).tofile(tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("kind", [np.memmap, lt.memmap])
def test_release_returns_what_left_the_process(path, kind):
    m = kind(path, np.uint8, "r")
    assert lt.release(m) == 0
    assert m.sum() == 7 * 8 * MIB
    assert lt.release(m) == 8 * MIB
    assert lt.release(m) == 0
    assert m[5] == 7


VIEWS = [
    lambda m: m[5:10],
    lambda m: np.asarray(m),
    lambda m: m[::2].reshape(2, -1),
    lambda m: m.view("<i4"),
]


@pytest.mark.parametrize("view_of", VIEWS)
def test_any_view_leads_to_its_map(path, view_of):
    m = np.memmap(path, np.uint8, "r")
    view = view_of(m)
    m.sum()
    assert lt.release(view) == 8 * MIB


def test_an_array_over_a_plain_mmap(path):
    with open(path, "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    a = np.frombuffer(whole, np.uint8)
    a.sum()
    assert lt.release(a) == 8 * MIB


def test_what_was_written_stays(path):
    m = lt.memmap(path, np.uint8, "r+")
    m[1000] = 99
    assert lt.release(m) > 0
    assert m[1000] == 99


@pytest.mark.parametrize("kind", [np.memmap, lt.memmap])
def test_a_private_map_is_refused_and_keeps_its_writes(path, kind):
    m = kind(path, np.uint8, "c")
    m[1000] = 99
    with pytest.raises(ValueError, match=r"private and writable.*discard"):
        lt.release(m)
    assert m[1000] == 99


def test_a_private_map_that_was_written_to_is_refused_though_it_is_read_only_now(path):
    m = np.memmap(path, np.uint8, "c")
    m[1000] = 99
    libc = ctypes.CDLL(None, use_errno=True)
    at = ctypes.c_void_p(m.ctypes.data)
    assert libc.mprotect(at, ctypes.c_size_t(8 * MIB), mmap.PROT_READ) == 0
    with pytest.raises(ValueError, match=r"private and writable.*discard"):
        lt.release(m)
    assert m[1000] == 99


def test_what_has_no_map_behind_it_is_a_type_error(path):
    m = np.memmap(path, np.uint8, "r")
    for other in (np.zeros(5), m.copy(), m + 1, b"abc", None, [m]):
        with pytest.raises(TypeError, match="no map behind"):
            lt.release(other)
    with pytest.raises(TypeError, match="dump"):
        lt.release(m, dump=1)


def test_a_closed_map_is_a_value_error(path):
    m = np.memmap(path, np.uint8, "r")
    m._mmap.close()
    with pytest.raises(ValueError, match="closed"):
        lt.release(m)


def test_locked_pages_are_reported(path):
    m = lt.memmap(path, np.uint8, "r")
    libc = ctypes.CDLL(None, use_errno=True)
    at = ctypes.c_void_p(m.ctypes.data)
    if libc.mlock(at, ctypes.c_size_t(4096)) != 0:
        pytest.skip("pages cannot be locked here")
    with pytest.raises(OSError, match=r"locked \(mlock\)") as found:
        lt.release(m)
    assert found.value.filename == str(path)
    libc.munlock(at, ctypes.c_size_t(4096))
    assert lt.release(m) >= 0


def in_dumps(address):
    """Whether the map at this address is part of a core dump, as the kernel reports it."""
    here = False
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        if line.startswith(f"{address:x}-"):
            here = True
        if here and line.startswith("VmFlags:"):
            return " dd" not in line
    raise LookupError(hex(address))


def test_dump_false_leaves_core_dumps(path):
    m = np.memmap(path, np.uint8, "r")
    m.sum()
    assert lt.release(m) == 8 * MIB
    assert in_dumps(m.ctypes.data)
    m.sum()
    assert lt.release(m, dump=False) == 8 * MIB
    assert not in_dumps(m.ctypes.data)
