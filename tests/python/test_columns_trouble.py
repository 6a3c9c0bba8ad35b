"""Files that change under a loader of columns, other processes, and threads."""

from __future__ import annotations

import os

import lowtide as lt
import numpy as np
import pytest
from column_files import expect_rows, made, numbered, opened
from conftest import in_threads, wait_for
from loader_runs import expect_goes_on_in_a_child, told
from token_files import write_megatron

N = 20_000


@pytest.fixture
def datas():
    return made("f4", N, 32), numbered(N, dtype="i8")


@pytest.fixture
def columns(tmp_path, datas):
    def open_columns(**options):
        options = {"memory": "1MiB", "engine": "pread", **options}
        return (
            opened(tmp_path, datas[0], **options),
            opened(tmp_path, datas[1], "y", **options),
        )

    return open_columns


@pytest.mark.parametrize("engine", ["pread", "uring"], indirect=True)
@pytest.mark.parametrize("which", [0, 1])
def test_a_column_that_is_truncated_in_mid_epoch(tmp_path, columns, datas, engine, which):
    """The batches before the fault are right, and the error names the file."""
    pair = columns(engine=engine)
    if which == 1:  # too large to be held
        pair = (pair[0], opened(tmp_path, datas[0], "y", memory="1MiB", engine=engine))
        datas = (datas[0], datas[0])
    name = "xy"[which]
    with lt.Loader(pair, 100, order="sequential") as loader:
        count = 0
        for batch in loader:
            expect_rows(batch, *datas)
            count += 1
            if count == 20:
                break
        file = tmp_path / f"{name}.npy"
        os.truncate(file, file.stat().st_size // 2)
        with pytest.raises((lt.FormatError, OSError), match=rf"{name}\.npy") as found:
            for batch in loader:
                expect_rows(batch, *datas)
                count += 1
        assert (
            "truncated" in str(found.value)
            or "changed" in str(found.value)
            or ("ends" in str(found.value))
        )
        assert 20 <= count <= 101


def test_a_held_column_that_is_truncated_before_it_is_read(tmp_path, columns, datas):
    pair = columns(memory="2MiB")
    with lt.Loader(pair, 100) as loader:
        assert "held columns" in loader.stats()["memory"]["claims"]
        whole = (tmp_path / "y.npy").read_bytes()
        os.truncate(tmp_path / "y.npy", 1000)
        for _ in range(2):
            with pytest.raises((lt.FormatError, OSError), match=r"y\.npy"):
                loader.next()
        assert loader.step == 0
        with open(tmp_path / "y.npy", "r+b") as file:
            file.write(whole)
        expect_rows(loader.next(), *datas)


def test_a_column_that_was_replaced_before_the_loader(tmp_path, columns, datas):
    """The array holds the old file: its bytes or an error, never those of the new file."""
    for memory in ("1MiB", "2MiB"):  # read, and held
        pair = columns(memory=memory)
        np.save(tmp_path / "new.npy", -datas[1])
        os.replace(tmp_path / "new.npy", tmp_path / "y.npy")
        with pytest.raises(OSError, match=r"y\.npy"):
            lt.Loader(pair, 100).next()


def rest_of(loader, results):
    results.put([told(batch) for batch in loader])


def sources(tmp_path, pair):
    r = lt.ragged(pair, np.linspace(0, N, 301).astype(int))
    t = lt.tokens(write_megatron(tmp_path / "d", [[7] * (n % 9) for n in range(300)]))
    return {
        "columns": lt.Loader(pair, 2000, seed=4),
        "held": lt.Loader(pair, 2000, seed=4, memory="2MiB"),
        "weights": lt.Loader(pair, 2000, seed=4, rows=slice(3, None), weights=np.arange(N - 3)),
        "ragged": lt.Loader(r, 20, seed=4),
        "documents": lt.Loader(t.documents, 20, seed=4),
        "mixture": lt.Loader([({"a": pair[0]}, 1), ({"a": pair[0]}, 2)], 2000, seed=4),
    }


@pytest.mark.parametrize("way", ["fork", "spawn"])
@pytest.mark.parametrize("kind", ["columns", "held", "weights", "ragged", "documents", "mixture"])
def test_a_loader_goes_on_in_a_child(tmp_path, columns, kind, way):
    with sources(tmp_path, columns(memory="8MiB"))[kind] as loader:
        expect_goes_on_in_a_child(loader, way, 3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_goes_on_though_the_arrays_are_closed(columns, datas):
    pair = columns(memory="2MiB")
    with lt.Loader(pair, 500) as loader:
        loader.next()
        for array in pair:
            array.close()
        child = os.fork()
        if child == 0:
            try:
                for batch in loader:
                    expect_rows(batch, *datas)
                os._exit(0)
            finally:
                os._exit(1)
        for batch in loader:
            expect_rows(batch, *datas)
        assert wait_for(child) == 0


def test_two_loaders_at_once_in_threads(columns, datas):
    pair = columns(memory="4MiB")
    seen = [[], [], []]
    wrong = []

    def work(number):
        options = ({}, {"memory": "2MiB"}, {"rows": slice(None, None, -1)})[number]
        try:
            with lt.Loader(pair, 250, seed=number, epochs=2, **options) as loader:
                for batch in (batch for _ in range(2) for batch in loader):
                    expect_rows(batch, *datas)
                    seen[number].append(batch.index)
        except BaseException as error:
            wrong.append(error)

    in_threads(work, 3)
    assert wrong == []
    for found in seen:
        assert np.bincount(np.concatenate(found)).tolist() == [2] * N


def test_threads_share_one_loader(columns, datas):
    seen = []

    def work(number):
        for batch in iterators[number]:
            expect_rows(batch, *datas)
            seen.append(batch.index)

    with lt.Loader(columns(memory="2MiB"), 200) as loader:
        iterators = [iter(loader) for _ in range(4)]
        in_threads(work, 4)
        assert loader.epoch == 1
    assert np.bincount(np.concatenate(seen)).tolist() == [1] * N
