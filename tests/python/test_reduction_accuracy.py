"""Sums and moments are at least as accurate as NumPy's, and the same on every run."""

from __future__ import annotations

import math
import threading

import lowtide as lt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from lowtide._compute import blocks

SHAPE = (120_000, 9)


def exact_mean(column):
    return math.fsum(column.tolist()) / len(column)


@pytest.fixture(params=["f4", "f8"])
def offset(request, tmp_path):
    """Noise on a large offset, which a sum of squares would lose."""
    noise = np.random.default_rng(0).normal(size=SHAPE)
    data = (noise + (1e4 if request.param == "f4" else 1e8)).astype(request.param)
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        yield a, data


def test_sums_and_means(offset):
    a, data = offset
    step = np.finfo(data.dtype).eps
    for axis, columns in ((0, data.T), (None, data.reshape(1, -1))):
        exact = np.array([exact_mean(column) for column in columns])
        many = columns.shape[1]
        np.testing.assert_allclose(np.atleast_1d(a.mean(axis)), exact, rtol=step)
        np.testing.assert_allclose(np.atleast_1d(a.sum(axis)), exact * many, rtol=step)
        ours = np.abs(np.atleast_1d(a.mean(axis)) - exact).max()
        theirs = np.abs(np.atleast_1d(data.mean(axis)) - exact).max()
        assert ours <= theirs + step * exact.max()


def test_a_sum_of_float32_is_as_good_as_a_pairwise_one(tmp_path):
    data = np.full((3_000_000, 2), 0.1, "f4")
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", memory="4MiB") as a:
        for axis in (0, None):
            exact = data.sum(axis, dtype="f8")
            assert np.abs(a.sum(axis) / exact - 1).max() < 3e-7
        assert abs(data.sum(axis=0)[0] / 3e5 - 1) > 0.01  # along axis 0, NumPy's is not pairwise


def test_deviations_on_a_large_offset(offset):
    a, data = offset
    wide = data.astype(np.longdouble)
    for axis in (None, 0, 1):
        for ddof in (0, 1):
            wanted = wide.var(axis=axis, ddof=ddof).astype("f8")
            rtol = 1e-9 if data.dtype == "f8" else 1e-6
            np.testing.assert_allclose(a.var(axis, ddof=ddof), wanted, rtol=rtol)
            np.testing.assert_allclose(a.std(axis, ddof=ddof), np.sqrt(wanted), rtol=rtol)


def test_a_result_is_the_same_on_every_run(offset):
    a, _ = offset
    for name in ("sum", "mean", "std"):
        found = {getattr(a, name)(axis=0).tobytes() for _ in range(5)}
        assert len(found) == 1


def test_infinity_and_its_opposite(tmp_path):
    data = np.ones(SHAPE, "f8")
    data[5, 0] = data[100_000, 1] = np.inf
    data[7, 1] = -np.inf
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a, np.errstate(invalid="ignore"):
        for name in ("sum", "mean", "min", "max", "var"):
            found, wanted = getattr(a, name)(axis=0), getattr(data, name)(axis=0)
            np.testing.assert_array_equal(found, wanted)


def test_errors_of_the_floating_point_unit_follow_errstate(tmp_path):
    np.save(tmp_path / "m.npy", np.full(SHAPE, 3e38, "f4"))
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        with np.errstate(over="ignore"):
            assert np.isinf(a.sum(axis=0)).all()
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            a.sum(axis=0)


def test_no_thread_is_left(offset):
    a, data = offset
    before = threading.active_count()
    assert a.argmax() == data.argmax()
    assert a.any()  # ends early
    assert threading.active_count() == before


def test_an_array_in_several_threads(offset):
    a, data = offset
    found = []
    workers = [
        threading.Thread(target=lambda: found.append(a.max(axis=0).tolist())) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [data.max(axis=0).tolist()] * 4


arrays = st_numpy.arrays(
    st.sampled_from(["?", "i1", "u2", "i8", "f4", "f8", "c8", ">f4"]),
    st_numpy.array_shapes(min_dims=1, max_dims=4, max_side=9),
    elements={"min_value": 0, "max_value": 100, "max_magnitude": 100},  # the last: complex ones
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=arrays, told=st.data())
def test_any_shape_type_order_and_axis(tmp_path, monkeypatch, data, told):
    monkeypatch.setattr(blocks, "BLOCK_ITEMS", told.draw(st.sampled_from([1, 5, 16, 64])))
    order = told.draw(st.sampled_from("CF"))
    name = told.draw(st.sampled_from(["sum", "mean", "var", "min", "max", "any", "all"]))
    axes = st.lists(st.integers(0, data.ndim - 1), unique=True).map(tuple)
    axis = told.draw(st.none() | axes)
    np.save(tmp_path / "m.npy", np.asarray(data, order=order))
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        found, wanted = getattr(np, name)(a, axis=axis), getattr(np, name)(data, axis=axis)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
        one = told.draw(st.none() | st.integers(-data.ndim, data.ndim - 1))
        np.testing.assert_array_equal(a.argmax(one), data.argmax(one))
