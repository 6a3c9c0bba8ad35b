"""Windows at your own starts and at random, against those that NumPy cuts."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest
from token_files import nanogpt_batch, write_nanogpt, write_shards

TYPES = ["int64", "int32", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", TYPES)
def test_windows_are_those_of_nanogpt(train, train_data, dtype, engine):
    starts = np.random.default_rng(1).integers(0, len(train_data) - 257, 12)
    starts[:3] = 0, len(train_data) - 257, len(train_data) - 257
    with lt.tokens(train, memory="1MiB", engine=engine) as t:
        for block_size in (1, 2, 31, 256):
            x, y = t.windows(starts, block_size, dtype=dtype)
            expected_x, expected_y = nanogpt_batch(train_data, starts, block_size)
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
def test_starts_of_any_integer_type(train, train_data, starts):
    with lt.tokens(train) as t:
        x, y = t.windows(starts, 8)
        expected_x, expected_y = nanogpt_batch(train_data, list(starts), 8)
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
def test_starts_that_are_not_a_list_of_integers(train, starts):
    with lt.tokens(train) as t, pytest.raises((TypeError, ValueError), match="starts"):
        t.windows(starts, 8)


def test_a_start_beyond_64_bits_is_an_index_error(train):
    with lt.tokens(train) as t, pytest.raises(IndexError):
        t.windows([2**70], 8)


def test_a_batch_is_a_pure_function_of_its_seed(train, train_data):
    with lt.tokens(train) as t, lt.tokens(train, memory="1MiB", engine="pread") as other:
        x, y = t.batch(12, 64, seed=7)
        again = other.batch(12, 64, seed=7)
        np.testing.assert_array_equal(x, again[0])
        np.testing.assert_array_equal(y, again[1])
        np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
        assert not np.array_equal(x, t.batch(12, 64, seed=8)[0])
        assert t.batch(3, 8, seed=2**64 - 1, dtype="uint16")[0].dtype == np.uint16
        rows = {row.tobytes() for row in np.lib.stride_tricks.sliding_window_view(train_data, 64)}
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
    train_data = np.fromfile(train, np.uint16)
    for i, (x, y) in enumerate(kept):
        expected = nanogpt_batch(train_data, [i, i + 1], 64)
        np.testing.assert_array_equal(x, expected[0])
        np.testing.assert_array_equal(y, expected[1])


def test_x_and_y_are_apart_and_outlive_each_other(train, train_data):
    with lt.tokens(train) as t:
        x, y = t.windows([5], 16)
        x[:] = -1
        np.testing.assert_array_equal(y[0], train_data[6:22])
        del x
        for _ in range(20):
            t.windows([100], 16)
        np.testing.assert_array_equal(y[0], train_data[6:22])


@pytest.mark.parametrize("sizes", [[1] * 40, [7, 1, 300, 2], [10_000], [0, 5, 0, 0, 100]])
def test_windows_cross_shards(tmp_path, train_data, sizes):
    paths = write_shards(tmp_path, train_data[:1000], sizes)
    for named in (paths, str(tmp_path / "shard_*.bin"), tmp_path):
        with lt.tokens(named, dtype="uint16", memory="1MiB") as t:
            np.testing.assert_array_equal(t[:], train_data[:1000])
            starts = np.arange(0, 1000 - 65, 3)
            x, y = t.windows(starts, 64)
            expected_x, expected_y = nanogpt_batch(train_data[:1000], starts, 64)
            np.testing.assert_array_equal(x, expected_x)
            np.testing.assert_array_equal(y, expected_y)
            np.testing.assert_array_equal(t[::-7], train_data[:1000][::-7])
