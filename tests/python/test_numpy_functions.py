"""NumPy's functions on arrays on disk: streamed, loaded if they fit, or refused with words."""

from __future__ import annotations

import io
import os

import lowtide as lt
import numpy as np
import pytest
from lowtide._compute import blocks


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ITEMS", 64)


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(400, 7)).astype("f4")


@pytest.fixture
def a(tmp_path, data):
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", memory="1MiB") as array:
        yield array


@pytest.fixture
def large(tmp_path):
    """An array of zeros that is larger than its memory."""
    np.save(tmp_path / "large.npy", np.zeros((1000, 1000)))
    with lt.open(tmp_path / "large.npy", memory="1MiB") as array:
        yield array


HISTOGRAMS = [
    {}, {"bins": 7}, {"bins": [-2, -0.5, 0, 3]}, {"bins": 5, "range": (-1, 1)}, {"density": True},
    {"bins": [0, 1, 5], "density": True}, {"bins": 3, "range": (100, 200)},
]  # fmt: skip


@pytest.mark.parametrize("told", HISTOGRAMS, ids=str)
@pytest.mark.parametrize("dtype", ["f4", ">f8", "i4", "u1", "bool"])
def test_histogram(tmp_path, told, dtype):
    data = (np.random.default_rng(0).normal(size=(400, 7)) * 3 + 9).astype(dtype)
    weights = np.random.default_rng(1).random(data.shape)
    np.save(tmp_path / "m.npy", data)
    np.save(tmp_path / "w.npy", weights)
    if dtype == "bool":
        data = data.view("u1")  # np.histogram does so itself, and warns
    with lt.open(tmp_path / "m.npy") as a, lt.open(tmp_path / "w.npy") as w:
        for own, theirs in ((None, None), (weights, weights), (w, weights)):
            with np.errstate(invalid="ignore"):
                found = np.histogram(a, weights=own, **told)
                wanted = np.histogram(data, weights=theirs, **told)
            for one, other in zip(found, wanted):
                assert one.dtype == other.dtype or dtype == "bool"
                np.testing.assert_allclose(one, other, rtol=1e-12)
        edges = np.histogram_bin_edges(a, told.get("bins", 10), told.get("range"))
        np.testing.assert_allclose(edges, wanted[1])


def test_histogram_reads_twice_only_without_a_range(tmp_path, data):
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", engine="pread") as a:
        np.histogram(a, 10, (-3, 3))
        assert a.stats()["bytes_asked"] == data.nbytes
        np.histogram(a, 10)
        assert a.stats()["bytes_asked"] == 3 * data.nbytes


def test_histogram_refuses_what_numpy_refuses(a, tmp_path, data):
    with pytest.raises(TypeError, match="bins='auto' needs all elements"):
        np.histogram(a, "auto")
    with pytest.raises(ValueError, match="same shape"):
        np.histogram(a, weights=np.ones(3))
    for told in ({"bins": 0}, {"bins": [3, 1]}, {"range": (3, 1)}, {"range": (0, np.inf)}):
        with pytest.raises(ValueError):
            np.histogram(a, **told)
    data[3, 3] = np.nan
    np.save(tmp_path / "nan.npy", data)
    np.save(tmp_path / "none.npy", data[:0])
    with lt.open(tmp_path / "nan.npy") as b, pytest.raises(ValueError, match="autodetected range"):
        np.histogram(b)
    with lt.open(tmp_path / "none.npy") as b:
        for one, other in zip(np.histogram(b), np.histogram(data[:0])):
            np.testing.assert_array_equal(one, other)


REFUSED = [
    "median", "nanmedian", "sort", "argsort", "unique", "partition", "argpartition",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_elements_is_refused_with_words(a, name):
    arguments = (3,) if "partition" in name else ()
    with pytest.raises(TypeError, match=rf"np\.{name} needs all elements.*np\.{name}\(a\[\.\.\.\]"):
        getattr(np, name)(a, *arguments)
    assert a.stats()["bytes_asked"] == 0


def test_a_quantile_is_pointed_to_the_histogram(a):
    for function in (np.percentile, np.quantile, np.nanpercentile):
        with pytest.raises(TypeError, match=r"np\.histogram\(a, bins, range\)"):
            function(a, 0.5)


def test_other_functions_load_what_fits(a, data):
    np.testing.assert_array_equal(np.concatenate([a, data]), np.concatenate([data, data]))
    np.testing.assert_array_equal(np.where(a > 0, a, 0), np.where(data > 0, data, 0))
    np.testing.assert_array_equal(np.clip(a, -1, 1), np.clip(data, -1, 1))
    np.testing.assert_array_equal(np.einsum("ij->j", a), np.einsum("ij->j", data))
    np.testing.assert_array_equal(np.cumsum(a, axis=0), np.cumsum(data, axis=0))
    np.testing.assert_array_equal(a, data)
    assert np.array_equal(a, data)
    assert np.allclose(data, a)
    assert np.linalg.norm(a) == np.linalg.norm(data)
    out = np.empty_like(data)
    np.copyto(out, a)
    np.testing.assert_array_equal(out, data)


def test_other_functions_refuse_what_does_not_fit(large):
    for function in (np.cumsum, np.transpose, np.round, lambda x: np.concatenate([x, x])):
        with pytest.raises(ValueError, match=r"not loaded implicitly.*a\[\.\.\.\].*iter_chunks"):
            function(large)
    assert large.stats()["bytes_asked"] == 0


def test_shape_and_type_need_no_read(large):
    assert (np.shape(large), np.ndim(large), np.size(large), np.size(large, 1)) == (
        (1000, 1000), 2, 1_000_000, 1000,
    )  # fmt: skip
    assert np.result_type(large, np.float32) == np.float64
    assert np.isrealobj(large) and not np.iscomplexobj(large)
    assert not np.may_share_memory(large, np.zeros(3))
    like = np.zeros_like(large)
    assert (like.shape, like.dtype, like.flags.c_contiguous) == (large.shape, large.dtype, True)
    assert np.full_like(large, 3, dtype="i2", shape=(2,)).tolist() == [3, 3]
    assert large.stats()["bytes_asked"] == 0


def test_functions_that_write_are_refused(a):
    for attempt in (
        lambda: np.copyto(a, 0),
        lambda: np.put(a, [0], [1]),
        lambda: np.putmask(a, [True], 1),
        lambda: np.fill_diagonal(a, 1),
        lambda: np.cumsum(np.ones(3), out=a),
        lambda: np.sum(np.ones(3), out=a),
    ):
        with pytest.raises(TypeError, match="only reads its files"):
            attempt()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("shape", [(40, 7), (3, 500), (53,), (6, 5, 4), (0, 3), ()], ids=str)
@pytest.mark.parametrize("dtype", ["<f4", ">i2", "M8[s]", [("x", "f4"), ("y", "i2", 3)], "S3"])
def test_save_writes_what_numpy_writes(tmp_path, dtype, shape, files, order):
    data = np.arange(int(np.prod(shape))).astype("i2").reshape(shape)
    data = data.astype(dtype) if isinstance(dtype, str) else np.zeros(shape, dtype)
    if not shape or not shape[0]:
        files = 1
    parts = [tmp_path / f"{number}.npy" for number in range(files)]
    for part in parts:
        np.save(part, np.asarray(data, order=order))
    whole = np.concatenate([data] * files).astype(data.dtype) if shape else data
    with lt.open(parts, memory="1MiB") as a:
        np.save(tmp_path / "ours.npy", a)
        np.save(os.fsencode(tmp_path / "bytes"), a)
        text = io.BytesIO()
        np.save(text, a)
        ours = (tmp_path / "ours.npy").read_bytes()
        assert ours == text.getvalue() == (tmp_path / "bytes.npy").read_bytes()
        wanted = io.BytesIO()
        np.save(wanted, np.asarray(whole, order=a.order))
        assert ours == wanted.getvalue()
    np.testing.assert_array_equal(np.load(tmp_path / "ours.npy"), whole)
    assert not list(tmp_path.glob(".*"))


def test_save_over_its_own_file(a, data, tmp_path):
    path = tmp_path / "m.npy"
    path.chmod(0o640)
    np.save(path, a)
    assert path.stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(np.load(path), data)
    np.testing.assert_array_equal(a[...], data)  # still the old file


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, np.zeros((4000, 25)))
    np.save(tmp_path / "old.npy", np.arange(3))
    with lt.open(path, engine="pread") as a:
        with open(path, "r+b") as file:
            file.truncate(10_000)
        for name in ("old.npy", "new.npy"):
            with pytest.raises((lt.FormatError, OSError), match=r"m\.npy"):
                np.save(tmp_path / name, a)
    assert np.load(tmp_path / "old.npy").tolist() == [0, 1, 2]
    assert sorted(os.listdir(tmp_path)) == ["m.npy", "old.npy"]
    with lt.open(tmp_path / "old.npy") as a, pytest.raises(FileNotFoundError):
        np.save(tmp_path / "missing" / "x.npy", a)


INDICES = [[3, 1, 1], 5, -1, [], [[0, 6], [2, 3]], np.array([2], "u1")]


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take_along_an_axis(a, data, axis, mode):
    for index in INDICES:
        wanted = np.take(data, index, axis, mode=mode)
        for found in (a.take(index, axis=axis, mode=mode), np.take(a, index, axis, mode=mode)):
            assert type(found) is type(wanted)
            np.testing.assert_array_equal(found, wanted)
        if np.ndim(wanted):
            out = np.empty_like(wanted)
            assert np.take(a, index, axis, out, mode) is out
            np.testing.assert_array_equal(out, wanted)
    for index in ([1000, -1000], 4000):
        if mode == "raise":
            with pytest.raises(IndexError):
                np.take(a, 5000, axis)
        else:
            found = a.take(index, axis=axis, mode=mode)
            np.testing.assert_array_equal(found, np.take(data, index, axis, mode=mode))


def test_take_refuses(a):
    with pytest.raises(ValueError, match="mode must be"):
        a.take([1], mode="no")
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        a.take([1], axis=2)
    with pytest.raises(TypeError, match="must be integers"):
        a.take([1.5], axis=1)
    with pytest.raises(ValueError, match="out must have shape"):
        a.take([1], np.empty(3, "f4"), axis=1)


def test_tensors_come_from_one_read(tmp_path, data):
    torch = pytest.importorskip("torch")
    for dtype in ("f4", ">f4", "i8", "bool"):
        stored = data.astype(dtype)
        np.save(tmp_path / "m.npy", stored)
        for convert in (torch.as_tensor, torch.tensor, torch.asarray, torch.from_dlpack):
            with lt.open(tmp_path / "m.npy", engine="pread") as a:
                found = convert(a)
                np.testing.assert_array_equal(found.numpy(), stored)
                now = a.stats()
                assert (now["reads"], now["bytes_asked"]) == (1, stored.nbytes)


def test_a_tensor_of_more_than_memory_is_refused(large):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="not loaded implicitly"):
        torch.as_tensor(large)
    assert large.stats()["bytes_asked"] == 0
