"""cache_dir: objects are kept on a local disk as they are read, and never asked for again."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core
from range_server import SECRET, RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)

MIB = 1 << 20
ROWS, WIDTH = 20_000, 162  # 12.4 MiB
BLOCKS = 13


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    data = np.random.default_rng(0).random((ROWS, WIDTH), dtype="float32")
    np.save(folder / "m.npy", data)
    np.save(folder / "labels.npy", np.arange(ROWS))
    np.random.default_rng(1).integers(0, 50257, 3_000_000).astype("uint16").tofile(folder / "t.bin")
    with RangeServer(folder) as server:
        yield folder, server, data


def epoch(a: lt.Array, data: np.ndarray, number: int = 0) -> None:
    seen = 0
    for idx, rows in a.batches(256, seed=3, epoch=number):
        np.testing.assert_array_equal(rows, data[idx])
        seen += len(idx)
    assert seen == ROWS


def kept(cache: Path) -> int:
    """Bytes on the disk below `cache`."""
    return sum(path.stat().st_blocks * 512 for path in cache.rglob("*") if path.is_file())


def wait_until_kept(a: lt.Array) -> None:
    for _ in range(1000):
        if a.stats()["engine_reason"].startswith(f"{BLOCKS} of {BLOCKS} MiB"):
            return
        time.sleep(0.01)
    raise AssertionError(a.stats()["engine_reason"])


def test_the_second_epoch_comes_from_the_disk(served, tmp_path):
    _, server, data = served
    with lt.open(server.url("m.npy"), memory="4MiB", cache_dir=tmp_path / "cache") as a:
        server.requests.clear()
        epoch(a, data)
        assert BLOCKS <= len(server.requests) <= BLOCKS + 2  # a slow one may be sent twice
        wait_until_kept(a)
        assert a.stats()["engine"].startswith("cache+")
        server.requests.clear()
        epoch(a, data, 1)
        np.testing.assert_array_equal(a[[5, 19_999, 0]], data[[5, 19_999, 0]])
        assert server.requests == []
    with lt.open(server.url("m.npy"), memory="4MiB", cache_dir=tmp_path / "cache") as again:
        server.requests.clear()  # opening is one request: it asks for the version
        epoch(again, data, 2)
        assert server.requests == []


def test_tokens_and_columns_are_kept_too(served, tmp_path):
    folder, server, data = served
    options = {"memory": "4MiB", "cache_dir": tmp_path}
    with lt.tokens(server.url("t.bin"), **options) as t, lt.tokens(folder / "t.bin") as local:
        for _ in range(2):
            server.requests.clear()
            theirs = lt.Loader(t, batch_size=8, block_size=512, seed=1)
            ours = lt.Loader(local, batch_size=8, block_size=512, seed=1)
            for _ in range(300):
                np.testing.assert_array_equal(theirs.next()[0], ours.next()[0])
            theirs.close(), ours.close()
        assert len(server.requests) <= 1
    options["memory"] = "16MiB"
    columns = (
        lt.open(server.url("m.npy"), **options),
        lt.open(server.url("labels.npy"), **options),
    )
    with lt.Loader(columns, batch_size=256, epochs=2) as loader:
        for x, y in loader:
            np.testing.assert_array_equal(x, data[y])


def test_a_damaged_block_is_fetched_again(served, tmp_path):
    _, server, data = served
    with lt.open(server.url("m.npy"), memory="4MiB", cache_dir=tmp_path) as a:
        epoch(a, data)
        wait_until_kept(a)
    (copy,) = tmp_path.glob("*.data")
    with open(copy, "r+b") as file:
        file.seek(5 * MIB + 17)
        byte = file.read(1)
        file.seek(5 * MIB + 17)
        file.write(bytes([byte[0] ^ 255]))
    with lt.open(server.url("m.npy"), memory="4MiB", cache_dir=tmp_path) as a:
        server.requests.clear()
        epoch(a, data)
        assert 1 <= len(server.requests) <= 2


def test_a_new_version_of_the_object_is_another_object(tmp_path):
    old, new = np.zeros((1000, 500)), np.ones((1000, 500))
    np.save(tmp_path / "m.npy", old)
    with RangeServer(tmp_path) as server:
        with lt.open(server.url("m.npy"), memory="4MiB", cache_dir=tmp_path / "c") as a:
            assert a.sum() == 0
        np.save(tmp_path / "m.npy", new)
        server.versions["m.npy"] = 1
        with lt.open(server.url("m.npy"), memory="4MiB", cache_dir=tmp_path / "c") as a:
            assert a.sum() == 500_000
    assert len(list((tmp_path / "c").glob("*.blocks"))) == 2


def test_the_limit_holds_and_reading_goes_on(served, tmp_path):
    _, server, data = served
    options = {"memory": "4MiB", "cache_dir": tmp_path, "cache_bytes": "3MiB"}
    with lt.open(server.url("m.npy"), **options) as a:
        for number in range(2):
            epoch(a, data, number)
            assert kept(tmp_path) <= 3 * MIB + 64 * 1024
        assert "no more are kept: the cache folder is full" in a.stats()["engine_reason"]


def test_what_nobody_reads_makes_room(served, tmp_path):
    _, server, data = served
    options = {"memory": "4MiB", "cache_dir": tmp_path, "cache_bytes": "14MiB"}
    with lt.tokens(server.url("t.bin"), **options) as t:
        assert int(t[:].sum()) > 0
    with lt.open(server.url("m.npy"), **options) as a:
        epoch(a, data)
        wait_until_kept(a)
    assert len(list(tmp_path.glob("*.blocks"))) == 1
    assert kept(tmp_path) <= 14 * MIB + 64 * 1024


def test_a_folder_that_cannot_be_written_to_is_an_error_at_once(served, tmp_path):
    _, server, _ = served
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", tmp_path / "absent" / "deeper"):
        with pytest.raises(OSError):
            lt.open(server.url("m.npy"), cache_dir=folder)


def test_arguments(served, tmp_path):
    folder, server, _ = served
    with pytest.raises(ValueError, match="cache_dir is for objects on servers"):
        lt.open(folder / "m.npy", cache_dir=tmp_path)
    with pytest.raises(ValueError, match="cache_bytes must be from 1"):
        lt.open(server.url("m.npy"), cache_dir=tmp_path, cache_bytes=0)
    with pytest.raises(ValueError, match="cache_bytes needs cache_dir"):
        lt.open(server.url("m.npy"), cache_bytes=10)
    with pytest.raises(TypeError, match="cache_dir must be a str"):
        lt.open(server.url("m.npy"), cache_dir=3)
    with pytest.raises(ValueError, match="cache_dir is empty"):
        lt.tokens(server.url("t.bin"), cache_dir="")


def test_no_secret_reaches_the_folder(served, tmp_path):
    _, server, data = served
    address = server.url(f"signed/m.npy?key={SECRET}", user=f"user:{SECRET}@")
    with lt.open(address, memory="4MiB", cache_dir=tmp_path) as a:
        epoch(a, data)
        wait_until_kept(a)
        assert SECRET not in a.stats()["engine_reason"]
    for path in tmp_path.rglob("*"):
        assert SECRET not in str(path)
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes()


def test_a_pickle_and_a_fork_use_the_same_folder(served, tmp_path, monkeypatch):
    _, server, data = served
    monkeypatch.chdir(tmp_path)
    with lt.open(server.url("m.npy"), memory="4MiB", cache_dir="cache") as a:
        epoch(a, data)
        wait_until_kept(a)
        copy = pickle.dumps(a)
        child = multiprocessing.get_context("fork").Process(target=epoch, args=(a, data, 1))
        child.start()
        child.join()
        assert child.exitcode == 0
    monkeypatch.chdir("/")
    with pickle.loads(copy) as again:
        server.requests.clear()
        epoch(again, data)
        assert server.requests == []


READER = """
import sys
import lowtide as lt
with lt.open(sys.argv[1], memory="4MiB", cache_dir=sys.argv[2]) as a:
    for epoch in range(3):
        for idx, rows in a.batches(256, seed=int(sys.argv[3]), epoch=epoch):
            assert (rows[:, 0] == idx).all() and (rows[:, -1] == idx).all()
print("ok")
"""


def test_processes_share_a_folder_and_a_kill_does_no_harm(tmp_path):
    data = np.repeat(np.arange(ROWS, dtype="float32")[:, None], WIDTH, axis=1)
    np.save(tmp_path / "m.npy", data)
    cache = tmp_path / "cache"
    with RangeServer(tmp_path) as server:

        def start(seed: int) -> subprocess.Popen[str]:
            command = [
                sys.executable,
                "-c",
                READER,
                server.url("late=2/m.npy"),
                str(cache),
                str(seed),
            ]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        victim = start(0)
        while len(server.requests) < 4:
            time.sleep(0.002)
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        readers = [start(seed) for seed in (1, 2)]
        assert [reader.communicate()[0] for reader in readers] == ["ok\n", "ok\n"]
        server.requests.clear()
        last = start(3)
        assert last.communicate()[0] == "ok\n"
        assert len(server.requests) <= 1  # the one that opens
    assert len(list((cache / "users").iterdir())) <= 1  # that of the process that was killed
