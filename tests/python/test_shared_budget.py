"""Several iterators under one budget, many files in it, and long lists beside it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import lowtide as lt
import numpy as np
import pytest
from conftest import run

MIB = 1 << 20


@pytest.fixture
def large(tmp_path):
    data = np.arange(60_000 * 128, dtype=np.float32).reshape(60_000, 128)
    np.save(tmp_path / "large.npy", data)
    return str(tmp_path / "large.npy"), data


@pytest.mark.parametrize("memory", ["8MiB", "16MiB", "64MiB"])
def test_validation_inside_a_training_loop_finds_room(large, memory):
    path, data = large
    with lt.open(path, memory=memory) as a:
        quarter = a.memory // 4 // (128 * 4)  # rows
        seen = []
        for step, (idx, rows) in enumerate(a.batches(1000, seed=1)):
            np.testing.assert_array_equal(rows, data[idx])
            seen.append(idx)
            if step % 20 == 5:
                for inner, (which, values) in enumerate(a.batches(quarter, seed=2)):
                    np.testing.assert_array_equal(values, data[which])
                    if inner == 5:
                        break
                claims = a.stats()["memory"]["claims"]
                assert sum(claims.values()) <= a.stats()["memory"]["limit"]
        np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(len(data)))


def test_a_validation_loader_finds_room_beside_the_training_loader(train, train_data):
    with lt.tokens(train, memory="1MiB") as t:
        training = lt.Loader(t, 12, 64, seed=1)
        for _ in range(20):
            training.next()
        with lt.Loader(t, 200, 64, seed=2, epochs=1) as validation:
            assert sum(1 for _ in validation) == len(validation)
        batch = training.next()
        starts = batch.samples * 64
        np.testing.assert_array_equal(batch.x[:, 0], np.asarray(train_data)[starts])


def test_the_memory_that_a_refusal_names_is_enough(large):
    path, _ = large
    memory = "3MiB"
    for attempt in range(2):
        try:
            with lt.open(path, memory=memory) as a:
                iterators = [a.batches(1500, seed=seed) for seed in range(4)]
                for iterator in iterators:
                    next(iterator)
            break
        except ValueError as error:
            assert attempt == 0, f"{memory} was named and is not enough: {error}"
            memory = re.search(r"; use at least (\d+ \w+)$", str(error))[1]
    assert attempt == 1


def test_the_look_ahead_grows_again_after_a_second_iterator(large):
    path, _ = large
    with lt.open(path, memory="16MiB") as a:
        first = a.batches(1000)
        next(first)
        alone = a.stats()["memory"]["claims"]["batches ahead"]
        second = a.batches(8000)
        next(second)
        assert a.stats()["memory"]["claims"]["batches ahead"] <= 16 * MIB
        second.close()
        for _ in range(20):
            next(first)
        assert a.stats()["memory"]["claims"]["batches ahead"] >= alone * 3 // 4


def test_many_files_count_as_memory(tmp_path):
    for number in range(2000):
        (tmp_path / f"part_{number:05d}.bin").write_bytes(b"\1\0" * 8)
    with lt.tokens(str(tmp_path / "*.bin"), memory="2MiB") as t:
        assert len(t) == 16_000
        claims = t.stats()["memory"]["claims"]
        held = claims["the table of 2000 files"]
        assert 2000 * 24 < held < 2000 * 320
        assert len(t.paths) == 2000
        assert t.paths[7].endswith("part_00007.bin")
    with pytest.raises(ValueError, match=r" for the table of 2000 files.*; use at least "):
        lt.tokens(str(tmp_path / "*.bin"), memory="64KiB")


FILES = """
import resource, sys
import lowtide as lt
sys.path.insert(0, sys.argv[2])
from conftest import status_kib
lt.tokens(sys.argv[1] + "/part_00000.bin").close()
before = status_kib("RssAnon")
t = lt.tokens(sys.argv[1], memory="16MiB")
t.windows([0, 5], 4)
print(status_kib("RssAnon") - before, sum(t.stats()["memory"]["claims"].values()))
"""


def test_what_many_files_hold_is_what_is_claimed(tmp_path):
    for number in range(20_000):
        (tmp_path / f"part_{number:05d}.bin").write_bytes(b"\1\0" * 8)
    done = run(FILES, tmp_path, __file__.rpartition("/")[0])
    assert done.returncode == 0, done.stderr
    grown_kib, claimed = map(int, done.stdout.split())
    assert grown_kib * 1024 <= claimed + 8 * MIB  # the names of the folder, for a moment
    assert claimed <= 16 * MIB


WINDOWS = """
import sys
import numpy as np
import lowtide as lt
sys.path.insert(0, sys.argv[2])
from conftest import status_kib
np.arange(1_000_000, dtype=np.uint16).tofile(sys.argv[1])
t = lt.tokens(sys.argv[1], memory="8MiB")
starts = np.random.default_rng(0).integers(0, 999_000, 4_000_000)
x, y = t.windows(starts[:1000], 2)
before = status_kib("VmRSS")
x, y = t.windows(starts, 2)
print(status_kib("VmHWM") - before, (x.nbytes + y.nbytes) // 1024)
assert (x[:, 0] == starts % 65536).all() and (y[:, 1] == (starts + 2) % 65536).all()
"""


def test_a_long_list_of_windows_holds_little_beside_its_result(tmp_path):
    done = run(WINDOWS, tmp_path / "t.bin", __file__.rpartition("/")[0])
    assert done.returncode == 0, done.stderr
    peak_kib, result_kib = map(int, done.stdout.split())
    assert peak_kib - result_kib <= (8 + 16) * 1024


INTERRUPTED = """
import signal, sys
import numpy as np
import lowtide as lt
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us deaf
np.arange(1_000_000, dtype=np.uint16).tofile(sys.argv[1])
t = lt.tokens(sys.argv[1], memory="8MiB", engine="pread")
starts = np.random.default_rng(0).integers(0, 999_000, 12_000_000)
print("ready", flush=True)
try:
    t.windows(starts, 1)
    print("done")
except KeyboardInterrupt:
    print("heard", t.stats()["bytes_asked"] < len(starts) * 4)
"""


def test_ctrl_c_ends_a_long_list_of_windows(tmp_path):
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "t.bin")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(0.3)
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=120)[0] == "heard True\n", "only after all was read"
