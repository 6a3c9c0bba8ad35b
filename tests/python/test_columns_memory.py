"""What a loader over arrays holds: small columns, one budget for all, flat memory."""

from __future__ import annotations

import gc
import json

import lowtide as lt
import numpy as np
import pytest
from column_files import expect_rows, made, numbered, opened, write_parts
from conftest import run

MIB = 1 << 20


@pytest.fixture
def pair(tmp_path):
    """A column of 4 MiB and one of 64 KiB."""
    n = 8192
    x, y = made("f4", n, 128), made("i8", n, seed=1)

    def open_both(**options):
        options = {"memory": "1MiB", "engine": "pread", **options}
        paths = write_parts(tmp_path, "y", y, [10, 4000])
        return opened(tmp_path, x, **options), lt.open(paths, **options)

    return open_both, (x, y)


def memory_of(loader):
    found = loader.stats()["memory"]
    assert sum(found["claims"].values()) <= found["limit"]
    return found


def test_a_small_column_is_held_and_read_once(pair, tmp_path):
    open_both, (x, y) = pair
    x.tofile(tmp_path / "x.f4")  # without a header, so that every batch is whole pages
    _, b = open_both()
    a = lt.open(tmp_path / "x.f4", dtype="f4", shape=x.shape, memory="1MiB", engine="pread")
    with lt.Loader((a, b), 256, order="sequential", epochs=3) as loader:
        assert memory_of(loader)["claims"]["held columns"] == y.nbytes
        assert loader.stats()["bytes_read"] == 0
        read = [0]
        for _ in range(3):
            for batch in loader:
                expect_rows(batch, x, y)
            read.append(loader.stats()["bytes_read"])
        assert y.nbytes + x.nbytes <= read[1] <= read[3] <= y.nbytes + 3 * x.nbytes + 32 * 1024
        assert loader.stats()["bytes_asked"] == 3 * (x.nbytes + y.nbytes) + y.nbytes


def test_a_loader_goes_back_without_reading_what_it_holds(pair):
    open_both, (x, y) = pair
    with lt.Loader(open_both(), 64) as loader:
        for epoch in (3, 0, 3):
            loader.seek(5, epoch)
            expect_rows(loader.next(), x, y)
            assert memory_of(loader)["claims"]["held columns"] == y.nbytes


def test_what_is_not_held(pair, tmp_path):
    """Nothing if memory has room for all, and no column beyond its share."""
    open_both, (x, y) = pair
    with lt.Loader(open_both(memory="64MiB"), 256) as loader:
        expect_rows(loader.next(), x, y)
        assert "held columns" not in memory_of(loader)["claims"]
    with lt.Loader(open_both(memory="200KiB"), 16) as loader:
        expect_rows(loader.next(), x, y)
        assert "held columns" not in memory_of(loader)["claims"]
    both = np.asfortranarray(made("u1", 8192, 2))
    with lt.Loader((*open_both(), opened(tmp_path, both, "f")), 64) as loader:
        expect_rows(loader.next(), x, y, both)
        assert memory_of(loader)["claims"]["held columns"] == y.nbytes


def test_columns_that_fit_the_budget_are_held_by_the_engine(pair):
    """The first array held itself in its budget, and leaves the room to the loader."""
    open_both, (x, y) = pair
    for memory in ("4800KiB", "6MiB"):
        a, b = open_both(memory=memory, engine="auto")
        assert a.stats()["engine"] == "memory"
        with lt.Loader((a, b), 64) as loader:
            for batch in loader:
                expect_rows(batch, x, y)
            memory_of(loader)
            if memory == "6MiB":
                assert loader.stats()["engine"] == "memory"
                assert "held columns" not in memory_of(loader)["claims"]
            assert a[7].tobytes() == x[7].tobytes()


def test_a_small_column_is_held_if_the_first_array_took_the_room(pair):
    """Both fit the budget, but the first array holds itself in it and is being read."""
    open_both, (x, y) = pair
    a, b = open_both(memory="6MiB", engine="auto")
    reading = a.batches(64)
    next(reading)
    with lt.Loader((a, b), 64) as loader:
        assert (a.stats()["engine"], loader.stats()["engine"]) == ("memory", "pread")
        assert memory_of(loader)["claims"]["held columns"] == y.nbytes
        for batch in loader:
            expect_rows(batch, x, y)
        memory_of(loader)
    assert len(list(reading)) == len(reading) - 1


def test_holding_a_column_never_refuses_a_batch_that_fits(pair, tmp_path):
    """As large a batch as with a column in Fortran order, which is never held."""
    open_both, (x, y) = pair
    a, b = open_both()
    with opened(tmp_path, np.asfortranarray(y.view("i4").reshape(-1, 2)), "f") as f:
        most = next(rows for rows in range(2048, 0, -8) if fits((a, f), rows))
    assert most > 1000
    with lt.Loader((a, b), most) as loader:
        expect_rows(loader.next(), x, y)
        assert "held columns" not in memory_of(loader)["claims"]


def fits(source, rows):
    try:
        lt.Loader(source, rows).close()
    except ValueError:
        return False
    return True


def test_loaders_share_the_budget_of_the_first_array(pair):
    open_both, (x, y) = pair
    a, b = open_both()
    with lt.Loader((a, b), 128) as one, lt.Loader((a, b), 128, seed=1) as two:
        for _ in range(3):
            for loader in (one, two):
                expect_rows(loader.next(), x, y)
                found = memory_of(loader)
                assert found["limit"] == MIB
                assert found["claims"] == a.stats()["memory"]["claims"]
        assert memory_of(one)["claims"]["held columns"] in (y.nbytes, 2 * y.nbytes)
        with pytest.raises(ValueError, match="use at least"):
            lt.Loader((a, b), 1600)
        expect_rows(one.next(), x, y)
    gc.collect()
    assert "held columns" not in a.stats()["memory"]["claims"]


def test_a_loader_with_memory_of_its_own(pair):
    open_both, (x, y) = pair
    a, b = open_both()
    before = a.stats()["memory"]["claims"]
    with lt.Loader((a, b), 1600, memory="3MiB") as loader:
        expect_rows(loader.next(), x, y)
        assert memory_of(loader)["limit"] == 3 * MIB
        assert a.stats()["memory"]["claims"] == before


def test_a_loader_survives_its_arrays(pair):
    open_both, (x, y) = pair
    a, b = open_both()
    loader = lt.Loader({"a": a, "b": b}, 512)
    loader.next()
    a.close()
    b.close()
    del a, b
    gc.collect()
    seen = []
    for _ in range(2):
        for batch in loader:
            expect_rows(batch, x, y)
            seen.append(batch.index)
    assert len(np.concatenate(seen)) == 2 * len(x) - 512
    loader.seek(0)
    expect_rows(loader.next(), x, y)
    loader.close()


@pytest.mark.parametrize("end", ["close", "del"])
def test_kept_batches_never_change(pair, end):
    open_both, (x, y) = pair
    loader = lt.Loader(open_both(), 64, seed=1)
    kept = []
    for batch in loader:
        if batch.step % 16 == 0:
            kept.append((batch.index, batch[0][3:], batch[1]))  # the views alone hold the lease
    assert loader.stats()["memory"]["held_by_you"] > 0
    if end == "close":
        loader.close()
    del loader, batch
    for index, xs, ys in kept:
        assert xs.tobytes() == x[index[3:]].tobytes() and ys.tobytes() == y[index].tobytes()


def test_offsets_of_ragged_data_count(tmp_path):
    offsets = np.arange(20_001) * 10
    with opened(tmp_path, np.arange(200_000), memory="1MiB", engine="pread") as a:
        with lt.Loader(lt.ragged(a, offsets), 16) as loader:
            assert memory_of(loader)["claims"]["offsets"] == offsets.nbytes
            loader.next()


JOB = """
import json, sys, threading, time
import numpy as np
import lowtide as lt

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

folder, kind = sys.argv[1:3]
x = lt.open(folder + "/x.npy", memory="8MiB", cache="drop")
y = lt.open(folder + "/y.npy", memory="8MiB")
rows = len(x)
warm = lt.Loader((x, y), 16, rows=slice(0, 64), memory="2MiB", epochs=1)
for batch in warm:
    pass
del warm, batch
if kind == "columns":
    source = (x, y)
    options = {}
elif kind == "selection":
    source = {"x": x, "y": y}
    options = {"rows": slice(None, None, 1), "weights": np.ones(rows)}
else:
    source = lt.ragged((x, y), np.linspace(0, rows, rows // 8 + 1).astype(int))
    options = {}
peak, stop = [0], threading.Event()
before = status("RssAnon")

def sample():
    while not stop.is_set():
        peak[0] = max(peak[0], status("RssAnon"))
        time.sleep(0.002)

thread = threading.Thread(target=sample)
thread.start()
seen = 0
with lt.Loader(source, 256 if kind != "ragged" else 32, seed=1, **options) as loader:
    for epoch in range(2):
        for batch in loader:
            if kind == "ragged":
                (xb, yb), offsets = batch
            else:
                xb, yb = batch
            assert (xb[:, 0] == yb).all()
            seen += len(yb)
            peak[0] = max(peak[0], status("RssAnon")) if batch.step % 8 == 0 else peak[0]
stop.set()
thread.join()
print(json.dumps([peak[0] - before, seen]))
"""


@pytest.mark.parametrize("kind", ["columns", "selection", "ragged"])
def test_two_epochs_stay_within_the_budget(folder, kind):
    rows = 32 * MIB // 512
    if not (folder / "x.npy").exists():
        np.save(folder / "x.npy", numbered(rows, 128))
        np.save(folder / "y.npy", np.arange(rows))
    done = run(JOB, folder, kind)
    assert done.returncode == 0, done.stderr
    grown, seen = json.loads(done.stdout)
    assert seen >= 2 * rows - 2 * 256
    assert grown <= 8 * MIB + 16 * MIB
    assert (folder / "x.npy").stat().st_size > 4 * 8 * MIB
