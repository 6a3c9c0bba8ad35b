"""When the files of a TokenWriter appear, who may write to it, and what it holds."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading

import lowtide as lt
import numpy as np
import pytest


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read_documents(t):
    return [d.tolist() for d in t.documents]


def test_files_appear_at_close_only(tmp_path):
    path = tmp_path / "t.bin"
    w = lt.TokenWriter(path, "megatron", "uint16")
    w.append([1, 2])
    assert "t.bin" not in names(tmp_path)
    assert repr(w).endswith("megatron, uint16, 2 tokens in 1 documents>")
    w.close()
    assert names(tmp_path) == ["t.bin", "t.idx"]
    assert w.closed and repr(w).endswith("closed>")
    w.close()
    with pytest.raises(ValueError, match="this writer is closed"):
        w.append([3])


def test_an_exception_leaves_the_old_files(tmp_path):
    path = tmp_path / "t.bin"
    with lt.TokenWriter(path, "megatron", "uint16") as w:
        w.append([1, 2])
    with pytest.raises(ZeroDivisionError), lt.TokenWriter(path, "megatron", "uint16") as w:
        w.append([3])
        raise ZeroDivisionError
    with lt.tokens(path) as t:
        assert read_documents(t) == [[1, 2]]
    assert names(tmp_path) == ["t.bin", "t.idx"]


def test_a_lost_writer_leaves_nothing(tmp_path):
    w = lt.TokenWriter(tmp_path / "t.bin", "llmc", "uint16")
    w.append([1])
    with pytest.warns(ResourceWarning, match="unclosed writer"):
        del w
        gc.collect()
    assert names(tmp_path) == []


def test_an_interpreter_that_ends_leaves_nothing(tmp_path):
    code = """
        import lowtide as lt, sys
        w = lt.TokenWriter(sys.argv[1], "megatron", "uint16")
        w.append([1])
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), tmp_path / "t.bin"], check=True)
    assert names(tmp_path) == []


def test_a_killed_writer_is_cleared_away_by_the_next(tmp_path):
    code = """
        import lowtide as lt, os, signal, sys
        w = lt.TokenWriter(sys.argv[1], "megatron", "uint16")
        w.extend([[i] * 100_000 for i in range(20)])
        os.kill(os.getpid(), signal.SIGKILL)
    """
    path = tmp_path / "t.bin"
    with lt.TokenWriter(path, "megatron", "uint16") as w:
        w.append([1])
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), path], check=False)
    assert len(names(tmp_path)) == 4
    with lt.tokens(path) as t:
        assert t[:].tolist() == [1]
    with lt.TokenWriter(path, "megatron", "uint16") as w:
        w.append([2])
    assert names(tmp_path) == ["t.bin", "t.idx"]


def test_a_path_has_one_writer(tmp_path):
    with lt.TokenWriter(tmp_path / "t.bin", "nanogpt", "uint16"):
        with pytest.raises(OSError, match="another writer") as error:
            lt.TokenWriter(tmp_path / "t.bin", "nanogpt", "uint16")
        assert error.value.errno == errno.EBUSY


def test_an_index_of_another_format_is_in_the_way(tmp_path):
    with lt.TokenWriter(tmp_path / "t.bin", "megatron", "uint16") as w:
        w.append([1])
    with pytest.raises(ValueError, match=r"t\.idx for the index of this file"):
        lt.TokenWriter(tmp_path / "t.bin", "nanogpt", "uint16")


def test_a_full_disk_is_an_error_that_stays():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with pytest.raises(OSError):
        lt.TokenWriter("/dev/full", "nanogpt", "uint16")


def test_no_copy_and_no_pickle(tmp_path):
    with lt.TokenWriter(tmp_path / "t.bin", "nanogpt", "uint16") as w:
        for make in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled"):
                make(w)


def test_a_forked_child_is_refused(tmp_path):
    w = lt.TokenWriter(tmp_path / "t.bin", "nanogpt", "uint16")
    w.append([1])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            w.append([2])
        except ValueError as error:
            status = 0 if "forked" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    w.close()
    assert np.fromfile(tmp_path / "t.bin", "u2").tolist() == [1]


def test_extend_takes_a_document_when_the_one_before_is_written(tmp_path):
    seen = []

    def documents():
        for i in range(10):
            seen.append(w.documents)
            yield [i]

    with lt.TokenWriter(tmp_path / "t.bin", "megatron", "uint16") as w:
        w.extend(documents())
        w.extend(t for t in ())
        with pytest.raises(TypeError, match="iterable of documents"):
            w.extend("text")
    assert seen == list(range(10))
    with lt.tokens(tmp_path / "t.bin") as t:
        copied = tmp_path / "copy.bin"
        with lt.TokenWriter(copied, "megatron", "int32") as w:
            w.extend(t.documents)
        with lt.tokens(copied) as again:
            assert read_documents(again) == read_documents(t)


def test_threads_write_whole_documents(tmp_path):
    path = tmp_path / "t.bin"

    def write(thread):
        for i in range(200):
            w.append(np.full(1 + i, thread * 1000 + i))

    with lt.TokenWriter(path, "megatron", "uint16", memory="256KiB") as w:
        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert w.documents == 800
    with lt.tokens(path) as t:
        documents = read_documents(t)
    assert all(set(d) == {d[0]} and len(d) == d[0] % 1000 + 1 for d in documents)
    for n in range(4):
        assert [d[0] for d in documents if d[0] // 1000 == n] == [n * 1000 + i for i in range(200)]


def test_memory_is_flat_in_the_number_of_documents(tmp_path):
    """Two million documents: their index alone is 38 MiB."""
    code = """
        import sys
        import lowtide as lt
        import numpy as np

        def held():
            with open("/proc/self/status") as status:
                return next(int(l.split()[1]) for l in status if l.startswith("RssAnon")) << 10

        document = np.arange(10, dtype="u2")
        w = lt.TokenWriter(sys.argv[1], "megatron", "uint16", memory="1MiB")
        w.append(document)
        before = held()
        for _ in range(1_999_999):
            w.append(document)
        claims = sum(w.stats()["memory"]["claims"].values())
        assert claims <= w.memory == 1 << 20, claims
        w.close()
        print(held() - before)
    """
    path = tmp_path / "t.bin"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), path], check=True, capture_output=True
    )
    assert int(done.stdout) < 4 << 20
    assert (tmp_path / "t.idx").stat().st_size == 34 + 2_000_000 * 20 + 8
    with lt.tokens(path) as t:
        assert len(t.documents) == 2_000_000
        assert t.documents[1_234_567].tolist() == list(range(10))
