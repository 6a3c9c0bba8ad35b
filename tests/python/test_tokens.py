"""Tokens as an ndarray on disk: every result against NumPy over the same bytes."""

from __future__ import annotations

import os
import pathlib
import pickle
import resource

import lowtide as lt
import numpy as np
import pytest
from conftest import run
from token_files import nanogpt_batch, write_llmc, write_nanogpt, write_shards

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tokens"


def golden_lines():
    return [line.split("\t") for line in (GOLDEN / "expected.txt").read_text().splitlines()]


@pytest.mark.parametrize("line", golden_lines(), ids=lambda line: line[0])
def test_files_of_the_real_tools_are_read_as_they_read_them(line):
    name, form, given, descr, count, checksum, documents = line
    with lt.tokens(GOLDEN / name, dtype=None if given == "-" else given) as t:
        assert t.format == form
        assert t.dtype == np.dtype(descr.strip("'"))
        assert len(t) == int(count)
        places = np.arange(1, len(t) + 1, dtype=object)
        assert int((places * t[:].astype(object)).sum()) % 2**64 == int(checksum)
        if documents == "-":
            assert t.documents is None
        else:
            offsets = [int(offset) for offset in documents.split(",")]
            assert t.documents.offsets.tolist() == offsets
            assert t.documents.offsets.dtype == np.int64


@pytest.mark.parametrize(
    "index",
    [
        0, 19_999, -1, -20_000, np.int16(7),
        slice(None), slice(100, 200), slice(-5, None), slice(None, None, -1), slice(200, 100),
        slice(19_990, 5, -7), slice(3, 19_000, 9_001), slice(50_000, 60_000), slice(None, None, 3),
        slice(-1, None, -19_999), Ellipsis, None, [5, 3, -1, 3], np.array([[1, 2], [3, 4]]),
    ],
    ids=repr,
)  # fmt: skip
def test_an_index_gives_what_numpy_gives(train, train_data, index):
    with lt.tokens(train, memory="1MiB") as t:
        found, expected = t[index], train_data[index]
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
        if isinstance(found, np.ndarray):
            found[...] = 0
            np.testing.assert_array_equal(t[index], expected)


class Counting:
    """A core of which every call is written down."""

    def __init__(self, core):
        self.core, self.calls = core, []

    def __getattr__(self, name):
        self.calls.append(name)
        return getattr(self.core, name)


def test_a_list_of_tokens_is_one_call_and_few_reads(train, train_data):
    with lt.tokens(train, memory="4MiB", engine="pread") as t:
        t._source._core = counting = Counting(t._core)
        index = np.random.default_rng(5).integers(-20_000, 20_000, 4000)
        index[:3] = 7, 7, -20_000
        np.testing.assert_array_equal(t[index], train_data[index])
        np.testing.assert_array_equal(t[index.tolist()], train_data[index])
        assert counting.calls == ["take", "take"]
        now = t.stats()
        assert now["bytes_asked"] == 2 * 4000 * 2
        assert now["reads"] <= 20
        assert now["reads"] + now["merged"] == 2 * 4000


@pytest.mark.parametrize("index", [20_000, -20_001, [0, 20_000]])
def test_an_index_outside_is_an_index_error(train, index):
    with lt.tokens(train) as t, pytest.raises(IndexError, match=r"20000|20001"):
        t[index]


@pytest.mark.parametrize("index", [1.5, "a", (1, 2), [0.5]])
def test_an_index_that_numpy_refuses_is_refused(train, train_data, index):
    with lt.tokens(train) as t:
        with pytest.raises(IndexError):
            train_data[index]
        with pytest.raises(IndexError):
            t[index]


def test_what_tokens_say_of_themselves(train, train_data):
    with lt.tokens(train, memory="1MiB") as t:
        assert len(t) == t.size == 20_000
        assert t.shape == (20_000,)
        assert t.dtype == np.uint16
        assert t.nbytes == 40_000
        assert t.format == "nanogpt"
        assert t.documents is None
        assert t.memory == 1 << 20
        assert t.paths == [os.path.abspath(train)]
        for word in ("20000 tokens", "uint16", "nanogpt", "train.bin", "1 MiB"):
            assert word in repr(t)
    assert t.closed
    assert repr(t).endswith("closed>")
    assert [int(token) for token in lt.tokens(train)] == train_data.tolist()


def test_ten_thousand_shards_under_256_descriptors(tmp_path, train_data):
    """Also the pickle of them: what was named travels, not what was found."""
    paths = write_shards(tmp_path, np.tile(train_data, 1)[:20_000], [2] * 10_000)
    assert len(paths) == 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with lt.tokens(tmp_path / "shard_*.bin", dtype="uint16", memory="8MiB") as t:
            np.testing.assert_array_equal(t[:], train_data)
            x, _ = t.windows([0, 9_999, 19_000], 512)
            np.testing.assert_array_equal(x, nanogpt_batch(train_data, [0, 9_999, 19_000], 512)[0])
            with lt.Loader(t, batch_size=10, block_size=100, seed=1) as loader:
                seen = np.concatenate([batch.samples for batch in loader])
            assert np.array_equal(np.sort(seen), np.sort(np.unique(seen)))
            assert len(pickle.dumps(t)) < 4096
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_tokens_than_32_bits_count(tmp_path):
    path = tmp_path / "huge.bin"
    count = 2**32 + 1000
    with open(path, "wb") as file:
        file.truncate(count * 2)
        file.seek((2**32 - 2) * 2)
        file.write(np.arange(1, 5, dtype="<u2").tobytes())
        file.seek((count - 3) * 2)
        file.write(np.array([7, 8, 9], "<u2").tobytes())
    with lt.tokens(path, dtype="uint16", memory="4MiB") as t:
        assert len(t) == count
        assert t[2**32 - 3 : 2**32 + 3].tolist() == [0, 1, 2, 3, 4, 0]
        assert t[-3:].tolist() == [7, 8, 9]
        assert t[-1] == 9
        x, y = t.windows([2**32 - 2, count - 5], 4)
        assert x.tolist() == [[1, 2, 3, 4], [0, 0, 7, 8]]
        assert y.tolist() == [[2, 3, 4, 0], [0, 7, 8, 9]]
        with lt.Loader(t, batch_size=2, block_size=1024, order="sequential") as loader:
            assert len(loader) == (count - 1) // 1024 // 2
            loader.seek(2**32 // 1024 // 2 - 1)
            assert loader.next().x[1, -2:].tolist() == [1, 2]
        with pytest.raises(ValueError, match=r"t\.windows"):
            np.asarray(t)


def test_a_shuffled_loader_starts_in_a_file_of_a_terabyte(tmp_path):
    path = tmp_path / "huge.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with lt.tokens(path, dtype="uint16", memory="4MiB") as t:
        with lt.Loader(t, batch_size=4, block_size=512, seed=3) as loader:
            loader.seek(len(loader) // 2)
            batch = loader.next()
            assert not batch.x.any()
            found = loader.when(int(batch.samples[1]) * 512)
            assert (found.step, found.row) == (batch.step, 1)


def test_asarray_of_what_fits(train, train_data):
    with lt.tokens(train) as t:
        np.testing.assert_array_equal(np.asarray(t), train_data)
        assert np.asarray(t, dtype=np.int64).dtype == np.int64
        with pytest.raises(ValueError, match="without a copy"):
            t.__array__(copy=False)


def test_asarray_of_more_than_memory_is_refused(tmp_path):
    path = tmp_path / "t.bin"
    write_nanogpt(path, np.zeros(1 << 20))
    with lt.tokens(path, dtype="uint16", memory="1MiB") as t:
        with pytest.raises(ValueError, match="2 MiB, more than their memory of 1 MiB"):
            np.asarray(t)
        assert t[:].nbytes == 2 << 20


def test_llmc_files(tmp_path):
    for magic, version, dtype in ((20240520, 1, "<u2"), (20240801, 7, "<u4")):
        tokens = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, 500)
        path = write_llmc(tmp_path / "t.bin", tokens, magic, version, dtype=dtype)
        with lt.tokens(path) as t:
            assert (t.format, t.dtype) == ("llmc", np.dtype(dtype))
            np.testing.assert_array_equal(t[:], tokens)
            np.testing.assert_array_equal(t.windows([7], 20)[1][0], tokens[8:28])


def test_stats_have_the_documented_keys(train):
    with lt.tokens(train, memory="1MiB", engine="pread") as t:
        t.windows([0, 1000], 64)
        now = t.stats()
    assert {"bytes_asked", "bytes_read", "reads", "merged", "wait_ns", "engine", "engine_reason",
            "cache", "memory"} <= set(now)  # fmt: skip
    assert set(now["memory"]) == {"limit", "claims", "held_by_you"}
    assert now["memory"]["limit"] == 1 << 20
    assert now["reads"] > 0


def test_a_slice_is_read_in_pieces_so_that_ctrl_c_is_heard(tmp_path):
    path = tmp_path / "t.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 33)
    code = """
import signal, sys
import lowtide as lt
t = lt.tokens(sys.argv[1], dtype="uint16", memory="8MiB")
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    while True:
        t[::1000000007 % 8191]
except KeyboardInterrupt:
    print("heard")
"""
    found = run(code, path)
    assert found.stdout == "heard\n", found.stderr


def test_everything_public_has_a_docstring():
    for kind in (lt.Tokens, lt.Documents, lt.Loader, lt.Batch, lt.When):
        assert kind.__doc__
        for name, value in vars(kind).items():
            if not name.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{kind.__name__}.{name}"
    assert lt.tokens.__doc__
    for name in ("Batch", "Documents", "Loader", "Tokens", "When", "tokens"):
        assert name in lt.__all__
