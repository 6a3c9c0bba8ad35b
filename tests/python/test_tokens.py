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
from token_files import (
    nanogpt_batch,
    write_llmc,
    write_megatron,
    write_nanogpt,
    write_shards,
)

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tokens"
TYPES = ["int64", "int32", "uint16", "uint32", "uint64"]


@pytest.fixture
def data():
    return np.random.default_rng(0).integers(0, 50257, 20_000).astype(np.uint16)


@pytest.fixture
def train(tmp_path, data):
    return write_nanogpt(tmp_path / "train.bin", data)


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
def test_an_index_gives_what_numpy_gives(train, data, index):
    with lt.tokens(train, memory="1MiB") as t:
        found, expected = t[index], data[index]
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


def test_a_list_of_tokens_is_one_call_and_few_reads(train, data):
    with lt.tokens(train, memory="4MiB", engine="pread") as t:
        t._source._core = counting = Counting(t._core)
        index = np.random.default_rng(5).integers(-20_000, 20_000, 4000)
        index[:3] = 7, 7, -20_000
        np.testing.assert_array_equal(t[index], data[index])
        np.testing.assert_array_equal(t[index.tolist()], data[index])
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
def test_an_index_that_numpy_refuses_is_refused(train, data, index):
    with lt.tokens(train) as t:
        with pytest.raises(IndexError):
            data[index]
        with pytest.raises(IndexError):
            t[index]


def test_what_tokens_say_of_themselves(train, data):
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
    assert [int(token) for token in lt.tokens(train)] == data.tolist()


@pytest.mark.parametrize("dtype", TYPES)
def test_windows_are_those_of_nanogpt(train, data, dtype, engine):
    starts = np.random.default_rng(1).integers(0, len(data) - 257, 12)
    starts[:3] = 0, len(data) - 257, len(data) - 257
    with lt.tokens(train, memory="1MiB", engine=engine) as t:
        for block_size in (1, 2, 31, 256):
            x, y = t.windows(starts, block_size, dtype=dtype)
            expected_x, expected_y = nanogpt_batch(data, starts, block_size)
            np.testing.assert_array_equal(x, expected_x)
            np.testing.assert_array_equal(y, expected_y)
            for part in (x, y):
                assert part.dtype == dtype
                assert part.shape == (12, block_size)
                assert part.flags.c_contiguous and part.flags.writeable and part.flags.aligned


def as_numpy_bytes(dtype):
    return np.array([3, 100, 7]).astype(dtype)


@pytest.mark.parametrize(
    "starts",
    [
        [3, 100, 7], (3, 100, 7), range(3, 300, 50), np.array([3, 9, 100, 9, 7])[::2],
        *[as_numpy_bytes(kind) for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">i4")],
    ],
    ids=repr,
)  # fmt: skip
def test_starts_of_any_integer_type(train, data, starts):
    with lt.tokens(train) as t:
        x, y = t.windows(starts, 8)
        expected_x, expected_y = nanogpt_batch(data, list(starts), 8)
        np.testing.assert_array_equal(x, expected_x)
        np.testing.assert_array_equal(y, expected_y)


@pytest.mark.parametrize("dtype", [np.int64, np.dtype("int32"), "int64", int, "<u2", "i4"])
def test_a_dtype_as_numpy_takes_it(train, dtype):
    with lt.tokens(train) as t:
        assert t.windows([0], 8, dtype=dtype)[0].dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("entry", "kind"),
    [(-1, "i8"), (-1, "i4"), (19_992, "i8"), (19_992, "u4"), (2**62, "i8"), (2**63 + 5, "u8")],
)
def test_a_start_outside_names_the_entry(train, entry, kind):
    with lt.tokens(train) as t:
        with pytest.raises(IndexError, match=f"entry 2 is {entry}"):
            t.windows(np.array([0, 19_991, entry], kind), 8)
        assert t.windows([19_991], 8)[1][0, -1] == t[-1]


@pytest.mark.parametrize("starts", [[0.5], ["a"], [None], np.array([True]), [[0]], 0, []])
def test_starts_that_are_no_list_of_integers(train, starts):
    with lt.tokens(train) as t, pytest.raises((TypeError, ValueError), match="starts"):
        t.windows(starts, 8)


def test_a_start_beyond_64_bits_is_an_index_error(train):
    with lt.tokens(train) as t, pytest.raises(IndexError):
        t.windows([2**70], 8)


def test_a_batch_is_a_pure_function_of_its_seed(train, data):
    with lt.tokens(train) as t, lt.tokens(train, memory="1MiB", engine="pread") as other:
        x, y = t.batch(12, 64, seed=7)
        again = other.batch(12, 64, seed=7)
        np.testing.assert_array_equal(x, again[0])
        np.testing.assert_array_equal(y, again[1])
        np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
        assert not np.array_equal(x, t.batch(12, 64, seed=8)[0])
        assert t.batch(3, 8, seed=2**64 - 1, dtype="uint16")[0].dtype == np.uint16
        rows = {row.tobytes() for row in np.lib.stride_tricks.sliding_window_view(data, 64)}
        assert all(row.astype(np.uint16).tobytes() in rows for row in x)


def test_random_windows_are_uniform_over_all_starts(tmp_path):
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", np.arange(20)), format="nanogpt") as t:
        firsts = t.batch(20_000, 4, seed=0)[0][:, 0]
        counts = np.bincount(firsts, minlength=20)
        assert (counts[:16] > 0).all() and not counts[16:].any()
        assert np.abs(counts[:16] - 1250).max() < 6 * np.sqrt(1250)


def test_a_kept_batch_never_changes(train):
    t = lt.tokens(train, memory="1MiB")
    kept = [t.windows([i, i + 1], 64) for i in range(50)]
    t.close()
    del t
    data = np.fromfile(train, np.uint16)
    for i, (x, y) in enumerate(kept):
        expected = nanogpt_batch(data, [i, i + 1], 64)
        np.testing.assert_array_equal(x, expected[0])
        np.testing.assert_array_equal(y, expected[1])


def test_x_and_y_are_apart_and_outlive_each_other(train, data):
    with lt.tokens(train) as t:
        x, y = t.windows([5], 16)
        x[:] = -1
        np.testing.assert_array_equal(y[0], data[6:22])
        del x
        for _ in range(20):
            t.windows([100], 16)
        np.testing.assert_array_equal(y[0], data[6:22])


@pytest.mark.parametrize("sizes", [[1] * 40, [7, 1, 300, 2], [10_000], [0, 5, 0, 0, 100]])
def test_windows_cross_shards(tmp_path, data, sizes):
    paths = write_shards(tmp_path, data[:1000], sizes)
    for named in (paths, str(tmp_path / "shard_*.bin"), tmp_path):
        with lt.tokens(named, dtype="uint16", memory="1MiB") as t:
            np.testing.assert_array_equal(t[:], data[:1000])
            starts = np.arange(0, 1000 - 65, 3)
            x, y = t.windows(starts, 64)
            expected_x, expected_y = nanogpt_batch(data[:1000], starts, 64)
            np.testing.assert_array_equal(x, expected_x)
            np.testing.assert_array_equal(y, expected_y)
            np.testing.assert_array_equal(t[::-7], data[:1000][::-7])


def test_ten_thousand_shards_under_256_descriptors(tmp_path, data):
    """Also the pickle of them: what was named travels, not what was found."""
    paths = write_shards(tmp_path, np.tile(data, 1)[:20_000], [2] * 10_000)
    assert len(paths) == 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with lt.tokens(tmp_path / "shard_*.bin", dtype="uint16", memory="8MiB") as t:
            np.testing.assert_array_equal(t[:], data)
            x, _ = t.windows([0, 9_999, 19_000], 512)
            np.testing.assert_array_equal(x, nanogpt_batch(data, [0, 9_999, 19_000], 512)[0])
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


def test_documents_of_megatron(tmp_path):
    rng = np.random.default_rng(2)
    documents = [rng.integers(0, 1000, length) for length in (5, 1, 0, 12, 300, 0, 2)]
    path = write_megatron(tmp_path / "data", documents)
    for named in (path, path.replace(".bin", ".idx"), path.replace(".bin", "")):
        with lt.tokens(named, memory="1MiB") as t:
            found = t.documents
            assert len(found) == 7
            assert found.offsets.tolist() == [0, 5, 6, 6, 18, 318, 318, 320]
            for i in range(-7, 7):
                np.testing.assert_array_equal(found[i], documents[i])
                assert found[i].dtype == np.uint16
            for one, expected in zip(found, documents):
                np.testing.assert_array_equal(one, expected)
            assert "7" in repr(found)
            for wrong in (7, -8):
                with pytest.raises(IndexError, match=f"document {wrong} .*there are 7"):
                    found[wrong]
            for wrong in (slice(0, 2), 1.0, "a", None):
                with pytest.raises(TypeError, match="integer"):
                    found[wrong]


def test_documents_of_several_megatron_files_are_one_sequence(tmp_path):
    first = [[1, 2, 3], [4]]
    second = [[5, 6], [], [7, 8, 9]]
    paths = [write_megatron(tmp_path / "a", first), write_megatron(tmp_path / "b", second)]
    with lt.tokens(paths) as t:
        assert [one.tolist() for one in t.documents] == first + second
        assert t.documents.offsets.tolist() == [0, 3, 4, 6, 6, 9]


def test_many_documents_within_a_small_budget(tmp_path):
    lengths = np.random.default_rng(0).integers(0, 6, 300_000)
    documents = np.split(np.arange(lengths.sum()) % 60_000, np.cumsum(lengths)[:-1])
    path = write_megatron(tmp_path / "data", documents)
    with lt.tokens(path, memory="1MiB") as t:
        expected = np.concatenate([[0], np.cumsum(lengths)])
        np.testing.assert_array_equal(t.documents.offsets, expected)
        for i in (0, 77_777, 299_999):
            np.testing.assert_array_equal(t.documents[i], documents[i])


def test_asarray_of_what_fits(train, data):
    with lt.tokens(train) as t:
        np.testing.assert_array_equal(np.asarray(t), data)
        assert np.asarray(t, dtype=np.int64).dtype == np.int64
        with pytest.raises(ValueError, match="uncopied"):
            t.__array__(copy=False)


def test_asarray_of_more_than_memory_is_refused(tmp_path):
    path = tmp_path / "t.bin"
    write_nanogpt(path, np.zeros(1 << 20))
    with lt.tokens(path, dtype="uint16", memory="1MiB") as t:
        with pytest.raises(ValueError, match="2 MiB, more than their memory=1 MiB"):
            np.asarray(t)
        assert t[:].nbytes == 2 << 20


def test_pickles_travel_by_reference(tmp_path, train, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = write_shards(tmp_path, data, [9_000])
    for named in ("train.bin", pathlib.Path("train.bin"), shards, "shard_*.bin", b"train.bin"):
        with lt.tokens(named, memory="1MiB", engine="pread", cache="keep") as t:
            text = pickle.dumps(t)
            assert len(text) < 4096
            monkeypatch.chdir("/")
            with pickle.loads(text) as again:
                np.testing.assert_array_equal(again[:], data)
                assert again.memory == 1 << 20
                assert again.stats()["engine"] == "pread"
                assert again.paths == t.paths
                assert pickle.dumps(again) == text
            monkeypatch.chdir(tmp_path)


def test_relative_shards_are_found_from_another_folder(tmp_path, data, monkeypatch):
    """More of them than stay open: most are opened when they are read."""
    write_shards(tmp_path, data, [10] * 2000)
    monkeypatch.chdir(tmp_path)
    with lt.tokens("shard_*.bin", dtype="uint16") as t:
        monkeypatch.chdir("/")
        np.testing.assert_array_equal(t[:], data)


def test_a_pattern_in_a_folder_named_like_one(tmp_path, data, monkeypatch):
    folder = tmp_path / "run[1]*"
    folder.mkdir()
    write_shards(folder, data, [9_000])
    monkeypatch.chdir(folder)
    with lt.tokens("shard_*.bin") as t:
        text = pickle.dumps(t)
    monkeypatch.chdir("/")
    with pickle.loads(text) as again:
        np.testing.assert_array_equal(again[:], data)


def test_a_pickle_of_files_that_have_changed_is_refused(train):
    with lt.tokens(train) as t:
        text = pickle.dumps(t)
    write_nanogpt(train, np.zeros(5000) + 3)
    with pytest.raises(lt.FormatError, match=r"20000 tokens.*5000 tokens"):
        pickle.loads(text)


def test_reopen_has_a_budget_of_its_own(train, data):
    with lt.tokens(train, memory="4MiB", engine="pread") as t:
        with t.reopen(memory="1MiB") as other, t.reopen() as same:
            assert (other.memory, same.memory) == (1 << 20, 4 << 20)
            assert other.stats()["engine"] == "pread"
        np.testing.assert_array_equal(t[:10], data[:10])


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
