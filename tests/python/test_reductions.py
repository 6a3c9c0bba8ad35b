"""Reductions of arrays on disk give what NumPy gives for the same data in memory."""

from __future__ import annotations

import warnings

import lowtide as lt
import numpy as np
import pytest
from lowtide._compute import blocks

METHODS = ["sum", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax"]
FUNCTIONS = [
    *METHODS, "prod", "amin", "amax", "ptp", "count_nonzero", "nansum", "nanmean", "nanstd",
    "nanvar", "nanmin", "nanmax",
]  # fmt: skip
DTYPES = [
    "bool", "i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", ">f4", ">i2", "g", "c8", "c16",
    "m8[s]", "M8[us]", "S3", "U2", [("x", "f4"), ("y", "i2")],
]  # fmt: skip
SHAPES = [(), (1,), (53,), (40, 7), (3, 500), (6, 5, 4), (2, 3, 200), (0, 4), (4, 0), (1, 1)]
AXES = [None, 0, -1, 1, (0, 1), (-1, 0), (0, 2), (), 7, (0, 0), "x"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few elements, so that small arrays have many of them."""
    monkeypatch.setattr(blocks, "BLOCK_ITEMS", 64)


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    size = int(np.prod(shape))
    if dtype.kind in "SU":
        found = rng.integers(0, 1000, size).astype(dtype)
    elif dtype.names:
        found = np.zeros(size, dtype)
    elif dtype.kind == "c":
        found = (rng.normal(size=size) + 1j * rng.normal(size=size)).astype(dtype)
    elif dtype.kind == "f":
        found = rng.normal(size=size).astype(dtype)
    else:
        found = rng.integers(0, 2 if dtype.kind == "b" else 60, size).astype(dtype)
    return found.reshape(shape)


def outcome(function, *args, **kwargs):
    """Returns what a call returns or raises, and whether it warns."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = function(*args, **kwargs)
        except (TypeError, ValueError, IndexError) as error:
            return error, bool(told)
    return found, bool(told)


def tolerance(dtype):
    return {"e": 2e-3, "f": 2e-6, "F": 2e-6}.get(np.dtype(dtype).char, 1e-12)


def assert_same(ours, theirs, what):
    (found, warned), (wanted, should_warn) = ours, theirs
    if isinstance(wanted, Exception):
        assert isinstance(found, type(wanted)) or isinstance(wanted, type(found)), (what, found)
        return
    assert not isinstance(found, Exception), (what, found)
    assert type(found) is type(wanted), what
    assert (np.shape(found), np.result_type(found)) == (np.shape(wanted), np.result_type(wanted)), (
        what
    )
    if np.result_type(wanted).kind in "fc":
        rtol = tolerance(np.result_type(wanted))
        np.testing.assert_allclose(found, wanted, rtol, atol=rtol * 10, err_msg=str(what))
    else:
        np.testing.assert_array_equal(found, wanted, str(what))
    assert warned == should_warn, what


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_reduction_gives_what_numpy_gives(tmp_path, name, dtype):
    for shape in SHAPES:
        data = sample(shape, dtype)
        if name == "prod" and data.dtype.kind in "fc":
            data = (data / (np.abs(data) + 1e-3)).astype(dtype)  # the product stays in range
        np.save(tmp_path / "m.npy", data)
        function = getattr(np, name)
        with lt.open(tmp_path / "m.npy") as a:
            for axis in AXES:
                for keepdims in (False, True):
                    told = {"axis": axis, "keepdims": keepdims}
                    what = (name, shape, told)
                    wanted = outcome(function, data, **told)
                    assert_same(outcome(function, a, **told), wanted, what)
                    if name in METHODS:
                        assert_same(outcome(getattr(a, name), **told), wanted, what)


@pytest.mark.parametrize("shape", [(53,), (40, 7), (3, 500), (6, 5, 4), (2, 3, 200)], ids=str)
@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_orders_and_files(tmp_path, order, files, shape):
    parts = [sample((count, *shape[1:]), "f4", count) for count in range(shape[0], 0, -1)[:files]]
    for number, part in enumerate(parts):
        np.save(tmp_path / f"{number}.npy", np.asarray(part, order=order))
    data = np.concatenate(parts)
    with lt.open([tmp_path / f"{n}.npy" for n in range(len(parts))], memory="1MiB") as a:
        for name in FUNCTIONS:
            for axis in (None, *range(len(shape))):
                function = getattr(np, name)
                wanted = outcome(function, data, axis=axis)
                assert_same(outcome(function, a, axis=axis), wanted, (name, axis))


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "prod", "nansum", "nanmean"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8", "i2", "u1"])
def test_a_dtype(tmp_path, name, dtype):
    for stored in ("bool", "u1", "i4", "f4", "f8"):
        data = (sample((40, 7), stored) * 3).astype(stored)
        np.save(tmp_path / "m.npy", data)
        with lt.open(tmp_path / "m.npy") as a:
            for axis in (None, 0, 1):
                if np.dtype(dtype).kind in "iu" and name in ("var", "std", "mean", "nanmean"):
                    continue  # NumPy itself rounds at several places here
                if name == "prod" and axis != 1:
                    continue  # too large for the type
                function = getattr(np, name)
                wanted = outcome(function, data, axis=axis, dtype=dtype)
                found = outcome(function, a, axis=axis, dtype=dtype)
                assert_same(found, wanted, (stored, axis))


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("ddof", [0, 1, 0.5, 40, 1000])
def test_degrees_of_freedom(tmp_path, name, ddof):
    data = sample((40, 7), "f4")
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy") as a:
        for axis in (None, 0, 1):
            function = getattr(np, name)
            wanted = outcome(function, data, axis=axis, ddof=ddof)
            assert_same(outcome(function, a, axis=axis, ddof=ddof), wanted, axis)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "M8[s]"])
def test_nan(tmp_path, name, dtype):
    data = sample((40, 7), dtype)
    missing = np.datetime64("nat") if dtype == "M8[s]" else np.nan
    data[3, 2] = data[20, 2] = data[39, 6] = missing
    data[:, 4] = missing
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy") as a:
        for axis in (None, 0, 1):
            wanted = outcome(getattr(np, name), data, axis=axis)
            assert_same(outcome(getattr(np, name), a, axis=axis), wanted, axis)


@pytest.mark.parametrize("name", METHODS)
def test_out(tmp_path, name):
    data = sample((40, 7), "f4")
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy") as a:
        wanted = getattr(data, name)(axis=0)
        out = np.empty(14, wanted.dtype)[::2]
        assert getattr(a, name)(axis=0, out=out) is out
        np.testing.assert_allclose(out, wanted, 1e-5)
        assert getattr(np, name)(a, axis=0, out=out) is out
        with pytest.raises(ValueError, match="out must have shape"):
            getattr(a, name)(axis=1, out=out)
        with pytest.raises(TypeError, match="out must be an ndarray"):
            getattr(a, name)(axis=1, out=[0] * 7)
        out = np.empty(7, wanted.dtype)
        out.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            getattr(a, name)(axis=0, out=out)


def test_a_result_of_another_kind_is_not_written(tmp_path):
    np.save(tmp_path / "m.npy", sample((40, 7), "f4"))
    with lt.open(tmp_path / "m.npy") as a, pytest.raises(TypeError, match="cannot cast"):
        a.mean(axis=0, out=np.empty(7, int))


def test_the_first_of_equal_elements_counts(tmp_path):
    for shape in ((40, 7), (3, 500), (2, 3, 200)):
        data = np.random.default_rng(0).integers(0, 3, shape)
        for order in ("C", "F"):
            np.save(tmp_path / "m.npy", np.asarray(data, order=order))
            with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
                for axis in (None, *range(len(shape))):
                    np.testing.assert_array_equal(a.argmax(axis), data.argmax(axis))
                    np.testing.assert_array_equal(a.argmin(axis), data.argmin(axis))


def test_where_and_initial_need_the_whole_array(tmp_path):
    data = sample((4000, 7), "f4")
    np.save(tmp_path / "m.npy", data)
    mask = data > 0
    with lt.open(tmp_path / "m.npy") as a:
        assert np.sum(a, where=mask) == data.sum(where=mask)
        assert np.max(a, initial=9) == 9
    with lt.open(tmp_path / "m.npy", memory="33KiB") as a:
        assert np.sum(a) == pytest.approx(data.sum())
        with pytest.raises(ValueError, match="not loaded implicitly"):
            np.sum(a, where=mask)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(20_000, 25), (5, 100_000)], ids=str)
def test_every_byte_is_read_once(tmp_path, monkeypatch, shape, order, axis):
    monkeypatch.setattr(blocks, "BLOCK_ITEMS", 1 << 12)
    data = sample(shape, "f4")
    np.save(tmp_path / "m.npy", np.asarray(data, order=order))
    for name in ("mean", "std", "max", "argmin"):
        with lt.open(tmp_path / "m.npy", memory="1MiB", engine="pread") as a:
            getattr(a, name)(axis=axis)
            assert a.stats()["bytes_read"] == data.nbytes, name


def test_any_stops_at_the_first_true_element(tmp_path):
    data = np.zeros((4000, 25), "f4")
    data[0, 3] = 1
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", engine="pread") as a:
        assert a.any()
        assert not a.all()
        assert a.stats()["bytes_read"] < data.nbytes / 10


def test_a_closed_array(tmp_path):
    for shape in ((40, 7), (0, 7)):
        np.save(tmp_path / "m.npy", np.zeros(shape))
        a = lt.open(tmp_path / "m.npy")
        a.close()
        for question in (a.sum, a.argmax, lambda a=a: a > 3):
            with pytest.raises(ValueError, match="this array is closed"):
                question()


def test_a_file_that_became_shorter(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, np.zeros((4000, 25)))
    with lt.open(path, engine="pread") as a:
        with open(path, "r+b") as file:
            file.truncate(1000)
        with pytest.raises((lt.FormatError, OSError), match=r"m\.npy"):
            a.mean()
