"""A bad file or a wrong call raises a clear error, and never crashes or returns wrong data."""

from __future__ import annotations

import errno
import os
import socket
import struct

import lowtide as lt
import numpy as np
import pytest
from conftest import run


def header(text: bytes, data: bytes = b"", version: int = 1) -> bytes:
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def test_a_missing_file(tmp_path):
    path = tmp_path / "no.npy"
    with pytest.raises(FileNotFoundError) as caught:
        lt.open(path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(path))
    assert caught.value.strerror == "No such file or directory"
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{path}'"


def test_a_message_shows_what_is_hidden_in_a_name(tmp_path):
    path = tmp_path / "a\u202egpj\x1b[31m\u009b.npy"
    path.write_bytes(b"not an array")
    with pytest.raises(lt.FormatError) as caught:
        lt.open(path)
    assert str(caught.value).isprintable()
    assert "a\\xe2\\x80\\xaegpj\\x1b[31m\\xc2\\x9b.npy" in str(caught.value)
    path.unlink()
    with pytest.raises(FileNotFoundError) as missing:
        lt.open(path)
    assert missing.value.filename == str(path)
    assert str(missing.value).isprintable()


def test_memory_that_cannot_be_allocated_is_named_with_its_size(tmp_path):
    path = tmp_path / "m.f32"
    with open(path, "wb") as file:
        file.truncate(1 << 42)  # sparse
    wide = lt.open(path, dtype="u1", shape=(4, 1 << 40), memory="100TiB", engine="pread")
    with pytest.raises(MemoryError, match=r"out of memory: .* TiB for "):
        for _ in wide.batches(4):
            pass


def test_a_thread_that_cannot_be_started_is_an_os_error(matrix):
    code = """
import os, resource, sys
import lowtide as lt
a = lt.open(sys.argv[1], memory="1MiB", engine="pread", cache="drop")
if os.geteuid() == 0:  # root meets no such limit
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
for begin in (
    lambda: next(a.batches(4)),
    lambda: lt.profile().start(),
    lambda: a.take(range(0, 1000, 3)),
):
    try:
        begin()
    except OSError as error:
        print(error.errno, error.strerror, error.filename)
"""
    found = run(code, matrix[0])
    assert found.returncode == 0, found.stderr
    ahead, measures, reads = found.stdout.splitlines()
    limit = "Resource temporarily unavailable; the limit on processes and threads (ulimit -u, "
    assert ahead.startswith(f"{errno.EAGAIN} cannot start the thread that reads ahead: {limit}")
    assert measures.startswith(f"{errno.EAGAIN} cannot start the thread that measures ")
    assert reads.startswith(f"{errno.EAGAIN} cannot start a thread to read: {limit}")
    assert reads.endswith(f" {matrix[0]}")


def test_a_glob_without_a_match(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        lt.open(str(tmp_path / "no_*.npy"))
    assert "no_*.npy" in str(caught.value)


def test_a_missing_file_among_others(matrix, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        lt.open([matrix[0], tmp_path / "no.npy"])
    assert caught.value.filename == str(tmp_path / "no.npy")


def test_a_directory(tmp_path):
    with pytest.raises(OSError, match="irectory") as caught:
        lt.open(tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "f")
    with pytest.raises(OSError, match=r"FIFO|regular file") as caught:
        lt.open(tmp_path / "f", dtype="u1")
    assert caught.value.filename == str(tmp_path / "f")


def test_a_socket_is_refused_at_once(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(OSError) as caught:
            lt.open(tmp_path / "s", dtype="u1")
    assert caught.value.filename == str(tmp_path / "s")


def test_an_except_clause_catches_the_error_by_its_own_class(tmp_path):
    """Python 3.10 compares the class that was set, and pytest.raises that of the object."""
    try:
        lt.open(tmp_path / "none.npy")
    except FileNotFoundError as error:
        assert error.errno == errno.ENOENT
    except OSError:
        pytest.fail("it was an OSError only")


def test_no_permission_as_another_user(matrix):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    path, _ = matrix
    path.chmod(0o600)
    for folder in list(path.parents)[:4]:
        if str(folder) not in ("/", "/tmp"):
            folder.chmod(folder.stat().st_mode | 0o111)
    code = """
import os, sys
import lowtide as lt
os.setgid(65534); os.setuid(65534)
try:
    lt.open(sys.argv[1])
except PermissionError as error:
    print(error.errno, error.filename, error.strerror)
"""
    found = run(code, path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(f"{errno.EACCES} {path} ")
    assert "Permission denied" in found.stdout


def test_an_empty_file(tmp_path):
    (tmp_path / "m.npy").touch()
    with pytest.raises(lt.FormatError, match=r"m\.npy.*empty"):
        lt.open(tmp_path / "m.npy")


def test_a_file_without_a_header_needs_a_dtype(tmp_path):
    (tmp_path / "m.bin").write_bytes(bytes(64))
    with pytest.raises(lt.FormatError, match=r"m\.bin.*dtype"):
        lt.open(tmp_path / "m.bin")


def test_a_size_that_is_not_a_multiple_of_the_item(tmp_path):
    (tmp_path / "m.bin").write_bytes(bytes(63))
    with pytest.raises(
        lt.FormatError, match=r"m\.bin: expected a multiple of the item size 4 .* found 63 bytes"
    ):
        lt.open(tmp_path / "m.bin", dtype="<f4")


def test_a_file_smaller_than_its_shape(tmp_path):
    (tmp_path / "m.bin").write_bytes(bytes(64))
    with pytest.raises(lt.FormatError, match=r"m\.bin.*64"):
        lt.open(tmp_path / "m.bin", dtype="<f4", shape=(5, 5))
    with pytest.raises(lt.FormatError, match=r"m\.bin"):
        lt.open(tmp_path / "m.bin", dtype="<f4", offset=65)


def test_an_npy_that_ends_early(matrix):
    path, _ = matrix
    os.truncate(path, 5000)
    with pytest.raises(lt.FormatError, match=r"m\.npy.*5000"):
        lt.open(path)


@pytest.mark.parametrize("engine_word", ["auto", "pread"])
def test_truncated_after_open(tmp_path, engine_word):
    path = tmp_path / "m.npy"
    np.save(path, np.zeros((1000, 1000)))
    with lt.open(path, memory="1MiB", engine=engine_word) as a:
        os.truncate(path, 100_000)
        with pytest.raises((lt.FormatError, OSError), match=r"m\.npy"):
            a[900:]
        with pytest.raises((lt.FormatError, OSError), match=r"m\.npy"):
            list(a.batches(50))


def test_replaced_by_rename_gives_old_bytes_or_an_error(tmp_path):
    path, other = tmp_path / "m.npy", tmp_path / "n.npy"
    np.save(path, np.zeros((1000, 100)))
    np.save(other, np.ones((1000, 100)))
    with lt.open(path, memory="1MiB") as a:
        other.rename(path)
        try:
            assert (a[:] == 0).all()
            for _, rows in a.batches(100):
                assert (rows == 0).all()
        except (lt.FormatError, OSError) as error:
            assert "m.npy" in str(error)


def test_deleted_while_open_gives_old_bytes_or_an_error(matrix):
    path, data = matrix
    with lt.open(path, memory="1MiB") as a:
        path.unlink()
        try:
            np.testing.assert_array_equal(a[:], data)
            for idx, rows in a.batches(100):
                np.testing.assert_array_equal(rows, data[idx])
        except (lt.FormatError, OSError) as error:
            assert "m.npy" in str(error)


GOOD = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n"


@pytest.mark.parametrize(
    "content",
    [
        header(GOOD, bytes(12))[:9],
        header(GOOD, bytes(12))[:30],
        b"\x93NUMPY\x09\x00" + bytes(100),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100),
        header(b"(" * 60_000),
        header(b"[" * 900_000, version=2),
        header(GOOD.replace(b"(3,)", b"(-3,)"), bytes(12)),
        header(GOOD.replace(b"(3,)", b"(True,)"), bytes(12)),
        header(GOOD.replace(b"(3,)", b"[3]"), bytes(12)),
        header(GOOD.replace(b"(3,)", b"(3.0,)"), bytes(12)),
        header(GOOD.replace(b"(3,)", b"(9223372036854775807, 9223372036854775807)"), bytes(12)),
        header(GOOD.replace(b"(3,)", b"(99999999999999999999999999,)"), bytes(12)),
        header(GOOD.replace(b"False", b"0"), bytes(12)),
        header(GOOD.replace(b"'<f4'", b"'<f5'"), bytes(20)),
        header(b"{'descr': '<f4', 'shape': (3,)}\n", bytes(12)),
        header(b"__import__('os').abort()\n", bytes(12)),
        header(b"\xff\xfe not a dict\n", bytes(12)),
    ],
    ids=range(17),
)  # fmt: skip
def test_a_hostile_header(tmp_path, content):
    path = tmp_path / "m.npy"
    path.write_bytes(content)
    with pytest.raises(lt.FormatError, match=r"m\.npy"):
        lt.open(path)


@pytest.mark.parametrize(
    "descr", [b"'|O'", b"[('a', '<f4'), ('b', '|O')]", b"[('n', [('o', '|O')])]"]
)
def test_objects_are_refused_and_never_unpickled(tmp_path, descr):
    path = tmp_path / "m.npy"
    path.write_bytes(header(GOOD.replace(b"'<f4'", descr), bytes(100)))
    with pytest.raises(lt.FormatError, match=r"m\.npy.*object"):
        lt.open(path)
    with pytest.raises(lt.FormatError, match="object"):
        lt.open(path, dtype=object)
