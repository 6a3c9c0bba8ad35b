"""Samples of different lengths: as a sequence, and as batches of values and offsets."""

from __future__ import annotations

import itertools
import pickle

import lowtide as lt
import numpy as np
import pytest
from column_files import expect_ragged, indexes, made, opened, write_parts
from token_files import write_megatron

LENGTHS = [3, 0, 1, 300, 0, 0, 7, 2, 40, 5, 0]
OFFSETS = np.cumsum([0, *LENGTHS])
COUNT = int(OFFSETS[-1])


def cut(values, offsets=OFFSETS):
    return [values[first:last] for first, last in itertools.pairwise(offsets)]


@pytest.fixture
def values():
    return np.arange(COUNT + 2, dtype="i4")


@pytest.fixture
def array(tmp_path, values):
    with opened(tmp_path, values, "values") as a:
        yield a


def same(one, other):
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def test_a_sequence_of_samples(array, values):
    r = lt.ragged(array, OFFSETS)
    samples = cut(values)
    assert len(r) == len(LENGTHS)
    assert r.values is array
    assert r.offsets.tolist() == OFFSETS.tolist() and r.offsets.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        r.offsets[1] = 5
    for i in range(-len(r), len(r)):
        assert same(r[i], samples[i])
    assert same(r[np.int64(3)], samples[3])
    for part in (slice(2, 5), slice(None, None, -2), slice(50, 60), slice(-3, None)):
        found = r[part]
        assert isinstance(found, list)
        assert len(found) == len(samples[part]) and all(map(same, found, samples[part]))
    assert all(map(same, r, samples)) and len(list(r)) == len(r)
    for wrong in (11, -12):
        with pytest.raises(IndexError, match=f"sample {wrong} is out of range: there are 11"):
            r[wrong]
    for wrong in (1.0, "a", None, [1]):
        with pytest.raises(TypeError, match="integer or a slice"):
            r[wrong]
    assert "11 samples" in repr(r)


def test_the_structure_of_values(tmp_path, array, values):
    other = made("f8", COUNT + 2, 2)
    with opened(tmp_path, other, "other") as b:
        both = lt.ragged((array, b), OFFSETS)
        assert isinstance(both[3], tuple) and same(both[3][1], cut(other)[3])
        named = lt.ragged({"ids": array, "at": b}, OFFSETS)
        assert list(named[3]) == ["ids", "at"] and same(named[3]["ids"], cut(values)[3])
        assert same(named[1:3][1]["at"], cut(other)[2])
        with lt.Loader(both, 3, order="sequential") as loader:
            (ids, at), offsets = loader.next()
            assert ids.tolist() == [0, 1, 2, 3] and same(at, other[:4])
            assert offsets.tolist() == [0, 3, 3, 4]
        with lt.Loader(named, 3, order="sequential") as loader:
            found, offsets = loader.next()
            assert list(found) == ["ids", "at"] and same(found["at"], other[:4])


@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", ">i8", "u8"])
def test_offsets_of_any_integers(tmp_path, array, values, dtype):
    offsets = np.array([0, 2, 2, 100], dtype)
    with opened(tmp_path, offsets, "offsets") as stored:
        for given in (offsets, offsets.tolist(), stored):
            r = lt.ragged(array, given)
            assert r.offsets.tolist() == [0, 2, 2, 100]
            assert same(pickle.loads(pickle.dumps(r))[2], values[2:100])


@pytest.mark.parametrize(
    ("offsets", "error", "match"),
    [
        ([0, 5, 3], lt.FormatError, "offsets: entry 2 is 3, less than entry 1, which is 5"),
        ([0, 5, -1], lt.FormatError, "offsets: entry 2 is -1, less than"),
        ([1, 5], lt.FormatError, "offsets: entry 0 is 1, but must be 0"),
        ([-1, 5], lt.FormatError, "offsets: entry 0 is -1, but must be 0"),
        ([0, 361], lt.FormatError, "offsets: entry 1 is 361, but there are only 360 values"),
        (
            np.array([0, 2**64 - 1], "u8"),
            lt.FormatError,
            "offsets: entry 1 is 18446744073709551615",
        ),
        (np.array([], int), lt.FormatError, "offsets: the list is empty"),
        ([0.0, 5.0], TypeError, "offsets must be integers with one axis, not float64"),
        ([[0, 5]], TypeError, r"one axis, not int64 of shape \(1, 2\)"),
        ([True, True], TypeError, "offsets must be integers"),
        (5, TypeError, "one axis"),
    ],
    ids=str,
)
def test_offsets_that_are_wrong(array, offsets, error, match):
    with pytest.raises(error, match=match) as found:
        lt.ragged(array, offsets)
    assert found.type is error


def test_values_that_are_wrong(tmp_path, array):
    with opened(tmp_path, np.arange(5), "short") as short, opened(tmp_path, np.array(1), "o") as o:
        for wrong in ([array], [array, array], (), {}, None, "v.npy", {1: array}):
            with pytest.raises(TypeError, match=r"tuple or dict|names"):
                lt.ragged(wrong, [0, 1])
        with pytest.raises(TypeError, match=r"lowtide.open.*not ndarray"):
            lt.ragged((array, np.arange(362)), [0, 1])
        with pytest.raises(TypeError, match="0-d"):
            lt.ragged(o, [0, 0])
        with pytest.raises(ValueError, match="same length, not 360, 5"):
            lt.ragged((array, short), [0, 1])
        many = np.zeros(100_000, int)
        with pytest.raises(ValueError, match=r"offsets need .* more memory"):
            lt.ragged(opened(tmp_path, np.arange(9), "little", memory="1MiB"), many)


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
@pytest.mark.parametrize("batch_size", [1, 3, 11])
def test_batches_of_samples(array, values, order, batch_size):
    r = lt.ragged(array, OFFSETS)
    samples = cut(values)
    with lt.Loader(r, batch_size, order=order, seed=1, drop_last=False) as loader:
        for _ in range(2):
            seen = []
            for batch in loader:
                found, offsets = batch
                expect_ragged(found, offsets, batch.index, samples)
                assert len(batch) == 2 and found.flags.writeable
                seen += batch.index.tolist()
            assert sorted(seen) == list(range(11))
            if order == "sequential":
                assert seen == list(range(11))


@pytest.mark.parametrize("dtype", ["f4", ">i2", "?", [("a", "u1"), ("b", "f8")], "S3"], ids=str)
def test_values_of_any_type_and_shape(tmp_path, engine, dtype):
    for shape in ((), (2,), (3, 2), (0,)):
        data = made(dtype, COUNT, *shape)
        paths = write_parts(tmp_path, f"v{len(shape)}", data, [1, 2, 150, 151])
        with lt.open(paths, memory="1MiB", engine=engine) as a:
            with lt.Loader(lt.ragged(a, OFFSETS), 4, seed=2, drop_last=False) as loader:
                for batch in loader:
                    expect_ragged(*batch, batch.index, cut(data))


def test_a_batch_without_values(array):
    with lt.Loader(lt.ragged(array, [0, 0, 0, 0]), 3) as loader:
        found, offsets = loader.next()
        assert found.shape == (0,) and offsets.tolist() == [0, 0, 0, 0]


def test_ragged_and_plain_columns_together(tmp_path, array, values):
    lengths = np.array([0, 2, 9, 1, 0, 77, 3, 3, 0, 0, 20])
    others = np.cumsum([0, *lengths])
    notes, labels = made("f8", others[-1], 2), np.arange(11)
    with opened(tmp_path, notes, "notes") as b, opened(tmp_path, labels, "labels") as c:
        one, two = lt.ragged(array, OFFSETS), lt.ragged((b,), others)
        for named in (False, True):
            source = {"ids": one, "label": c, "notes": two} if named else (one, c, two)
            with lt.Loader(source, 4, seed=3, drop_last=False) as loader:
                seen = []
                for batch in loader:
                    (ids, at), label, ((note,), note_at) = batch
                    expect_ragged(ids, at, batch.index, cut(values))
                    expect_ragged(note, note_at, batch.index, cut(notes, others))
                    np.testing.assert_array_equal(label, batch.index)
                    seen += batch.index.tolist()
                    if named:
                        assert batch["label"] is label and batch["ids"][0] is ids
                assert sorted(seen) == list(range(11))


def test_many_samples_within_a_small_budget(tmp_path, engine):
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 60, 6000)
    lengths[17] = 9000
    offsets = np.cumsum([0, *lengths])
    data = np.arange(offsets[-1], dtype="i8")
    memory = "8MiB" if engine == "memory" else "1MiB"
    with opened(tmp_path, data, memory=memory, engine=engine) as a:
        r = lt.ragged(a, offsets)
        with lt.Loader(r, 64, seed=2, drop_last=False) as loader:
            seen = []
            for batch in loader:
                found, at = batch
                np.testing.assert_array_equal(np.diff(at), lengths[batch.index])
                starts = np.repeat(offsets[batch.index] - at[:-1], np.diff(at))
                np.testing.assert_array_equal(found, starts + np.arange(len(found)))
                seen.append(batch.index)
            assert sorted(np.concatenate(seen)) == list(range(6000))
            memory = loader.stats()["memory"]
            assert sum(memory["claims"].values()) <= memory["limit"]


def test_a_sample_longer_than_the_budget(tmp_path):
    with opened(tmp_path, np.arange(200_000), memory="1MiB") as a:
        r = lt.ragged(a, [0, 10, 199_999, 200_000])
        with pytest.raises(ValueError, match=r"a batch of 1 rows.*; use at least "):
            lt.Loader(r, 1)
        with lt.Loader(r, 1, memory="4MiB") as loader:
            assert sorted(len(batch[0]) for batch in loader) == [1, 10, 199_989]


def test_a_batch_longer_than_usual(tmp_path):
    """It comes if the budget has room for it alone, else the error names it."""
    lengths = np.full(1000, 10)
    lengths[500:508] = 18_700  # 1.2 MiB of values, 585 KiB of them in each of two batches
    offsets = np.cumsum([0, *lengths])
    data = np.arange(offsets[-1])
    with opened(tmp_path, data, engine="pread") as a:
        r = lt.ragged(a, offsets)
        for memory in ("2MiB", "4MiB"):
            with lt.Loader(r, 8, order="sequential", memory=memory) as loader:
                assert b"".join(batch[0].tobytes() for batch in loader) == data.tobytes()
        with lt.Loader(r, 8, order="sequential", memory="512KiB") as loader:
            for _ in range(62):
                loader.next()
            for _ in range(2):
                match = r"the batch of epoch 0, step 62 has 585 KiB, but only .*smaller batch_size"
                with pytest.raises(ValueError, match=match):
                    loader.next()
            loader.seek(64)
            assert loader.next()[0][0] == offsets[512]


def test_rows_weights_and_mixtures_of_samples(array, values):
    r, samples = lt.ragged(array, OFFSETS), cut(values)
    with lt.Loader(r, 2, rows=[3, 6, -3], drop_last=False) as loader:
        batches = list(loader)
        assert sorted(indexes(batches)) == [3, 6, 8]
        for batch in batches:
            expect_ragged(*batch, batch.index, samples)
    with lt.Loader(r, 2, weights=np.isin(LENGTHS, [300, 7, 40]) * 1.0) as loader:
        batches = [loader.next() for _ in range(40)]
        assert set(indexes(batches)) == {3, 6, 8}
    other = lt.ragged(array, [0, 100, 101])
    with lt.Loader([(r, 1), (other, 1)], 1) as loader:
        for batch in [loader.next() for _ in range(30)]:
            (row,) = batch.index
            one, two = samples[row], cut(values, [0, 100, 101])[row] if row < 2 else None
            assert same(batch[0], one) or same(batch[0], two)


def test_documents_of_tokens(tmp_path):
    rng = np.random.default_rng(2)
    parts = [[rng.integers(0, 1000, n) for n in lengths] for lengths in (LENGTHS, LENGTHS[::-1])]
    paths = [write_megatron(tmp_path / name, docs) for name, docs in zip("ab", parts)]
    with lt.tokens(paths, memory="1MiB") as t:
        samples = [t.documents[i] for i in range(22)]
        assert samples[0].dtype == np.uint16
        for source in (t.documents, (t.documents,)):
            with lt.Loader(source, 5, seed=1, drop_last=False) as loader:
                batches = list(loader)
            for batch in batches:
                found, offsets = batch if source is t.documents or len(batch) == 2 else batch[0]
                expect_ragged(found, offsets, batch.index, samples)
            assert sorted(indexes(batches)) == list(range(22))
        with pickle.loads(pickle.dumps(lt.Loader(t.documents, 3))) as loader:
            expect_ragged(*(batch := loader.next()), batch.index, samples)


def test_the_same_documents_twice(tmp_path):
    """Columns with the same offsets, beside a source of a mixture where they differ."""
    one = write_megatron(tmp_path / "one", [[1, 2], [3], [], [4, 5, 6]])
    two = write_megatron(tmp_path / "two", [[7], [8, 9, 10], [11, 12], []])
    with lt.tokens(one) as t, lt.tokens(two) as u:
        ts, us = list(t.documents), list(u.documents)
        with lt.Loader((t.documents, t.documents), 4) as loader:
            batch = loader.next()
            for values, offsets in batch:
                expect_ragged(values, offsets, batch.index, ts)
        mixture = [((t.documents, t.documents), 1), ((t.documents, u.documents), 1)]
        with lt.Loader(mixture, 1) as loader:
            seen = []
            for _ in range(16):
                batch = loader.next()
                (a, _), (b, _) = batch
                row = batch.index[0]
                assert same(a, ts[row]) and (same(b, ts[row]) or same(b, us[row]))
                seen.append(same(b, us[row]))
            assert 0 < sum(seen) < 16
