"""Indices of arrays in files, and rows by take."""

from __future__ import annotations

import pathlib

import lowtide as lt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from index_cases import (
    ROW_DTYPES,
    arrays_and_indices,
    assert_same,
    compare,
    is_view,
    numbered,
    outcome,
    outcome_of_numpy,
)


def saved(folder: pathlib.Path, data, fortran=False) -> str:
    path = folder / "m.npy"
    np.save(path, np.asfortranarray(data) if fortran else data)
    return str(path)


@pytest.mark.parametrize("engine", ["auto", "pread"])
@pytest.mark.parametrize("fortran", [False, True])
def test_the_same_from_a_file(tmp_path, engine, fortran):
    data = numbered((60, 7, 5), "<f4")
    rng = np.random.default_rng(0)
    mask = data > data.mean()
    indices = [
        5, -1, np.s_[10:20], np.s_[::-3], np.s_[5:5], np.s_[:, 3], np.s_[..., 2], np.s_[None],
        np.s_[:, None, 2:5],
        np.s_[::2, 1:, ::-1], rng.integers(-60, 60, 100),
        rng.integers(0, 60, (4, 5)).astype(np.uint16),
        mask, mask[:, 0, 0], mask[:, :, 0], np.s_[[3, 1], :, [0, 2]], np.s_[:, [0, 6], 1],
        np.s_[4, 5, 1],
        np.s_[:, mask[0]], np.s_[[True] * 60], [], np.s_[[[1], [2]], [0, 1]], (), np.s_[..., None],
    ]  # fmt: skip
    with lt.open(saved(tmp_path, data, fortran), memory="1MiB", engine=engine) as a:
        for index in indices:
            got, expected = a[index], data[index]
            assert_same(got, expected.copy() if isinstance(expected, np.ndarray) else expected)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=arrays_and_indices(), dtype=st.sampled_from(ROW_DTYPES), fortran=st.booleans())
def test_any_index_from_a_file(tmp_path, case, dtype, fortran):
    shape, index = case
    data = numbered(shape, dtype)
    with lt.open(saved(tmp_path, data, fortran), memory="1MiB") as a:
        compare(outcome(lambda: a[index]), outcome_of_numpy(data, index))


@pytest.mark.parametrize(
    "index", [([-4], [0]), (-4, [0]), ([0], [-5]), np.s_[:, [-5]], np.s_[[0, 1], -5], ([3], [0])]
)
def test_an_index_out_of_bounds_is_refused_by_every_numpy(tmp_path, index):
    with lt.open(saved(tmp_path, numbered((3, 4), "<f4"))) as a:
        with pytest.raises(IndexError, match=r"index (3|-4|-5) is out of bounds for axis [01]"):
            a[index]


@pytest.mark.parametrize("form", ["npy", "raw"])
def test_a_column_of_a_fortran_file_is_read_alone(tmp_path, form):
    data = numbered((50_000, 40), "<f4")
    path = tmp_path / "m.f32"
    if form == "npy":
        saved(tmp_path, data, fortran=True)
        path = tmp_path / "m.npy"
    else:
        data.ravel(order="F").tofile(path)
    with lt.open(
        path, dtype="<f4", shape=(50_000, 40), order="F", memory="1MiB", engine="pread"
    ) as a:
        before = a.stats()["bytes_read"]
        assert_same(a[:, 3], data[:, 3].copy())
        assert a.stats()["bytes_read"] - before < data.nbytes // 4


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=st.data(), sizes=st.lists(st.integers(0, 7), min_size=2, max_size=5).filter(sum))
def test_any_index_from_several_fortran_files(tmp_path, case, sizes):
    data = numbered((sum(sizes), 4, 3), "<f4")
    index = case.draw(hnp.basic_indices(data.shape, allow_newaxis=True))
    paths = saved_parts(tmp_path, data, sizes)
    with lt.open(paths, memory="1MiB", engine="pread") as a:
        expected = data[index]
        assert_same(a[index], np.array(expected) if is_view(data, index) else expected)


def saved_parts(folder: pathlib.Path, data, sizes) -> list[str]:
    """Rows of `data` as files of so many rows in Fortran order."""
    paths, first = [], 0
    for number, rows in enumerate(sizes):
        paths.append(str(folder / f"part_{number}.npy"))
        np.save(paths[-1], np.asfortranarray(data[first : first + rows]))
        first += rows
    return paths


def test_a_column_of_several_fortran_files_is_read_alone(tmp_path):
    data = numbered((60_000, 40), "<f4")
    paths = saved_parts(tmp_path, data, [20_000, 1, 0, 29_999, 10_000])
    with lt.open(paths, memory="1MiB", engine="pread") as a:
        assert a.order == "F"
        before = a.stats()["bytes_read"]
        assert_same(a[:, 3], data[:, 3].copy())
        assert_same(a[::-7, 39], data[::-7, 39].copy())
        assert a.stats()["bytes_read"] - before < data.nbytes // 4
        assert_same(a[19_990:50_010, 5:7], data[19_990:50_010, 5:7].copy())
        assert a[49_999, 11] == data[49_999, 11]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (60, "index 60 is out of bounds for axis 0 with size 60"),
        (-61, "index -61 is out of bounds for axis 0 with size 60"),
        ([0, 99], "index 99 is out of bounds for axis 0 with size 60"),
        (np.s_[:, 7], "index 7 is out of bounds for axis 1 with size 7"),
        (np.s_[0, 0, 0], "too many indices for array: array is 2-dimensional, but 3 were indexed"),
        (1.0, "only integers, slices"),
        ("x", "only integers, slices"),
        (np.ones(3, bool), "boolean index did not match"),
    ],
)
def test_a_bad_index_gets_numpys_text(tmp_path, index, text):
    data = numbered((60, 7), "<f4")
    with lt.open(saved(tmp_path, data)) as a, pytest.raises(IndexError) as caught:
        a[index]
    assert text in str(caught.value)


def test_take_reads_any_rows_in_any_order(tmp_path):
    data = numbered((60, 7), "<f4")
    rng = np.random.default_rng(1)
    with lt.open(saved(tmp_path, data)) as a:
        for dtype in (np.int64, np.uint64, np.int32, np.uint32, np.int8, np.uint8, ">i8"):
            rows = rng.integers(0, 60, 33).astype(dtype)
            assert_same(a.take(rows), data[rows])
        assert_same(a.take([-1, 0, -60]), data[[-1, 0, -60]])
        strided = rng.permutation(60)[::2]
        assert_same(a.take(strided), data[strided])
        assert_same(a.take([[0, 1], [2, 3]]), data[[[0, 1], [2, 3]]])
        assert a.take([]).shape == (0, 7)


def test_take_fills_the_array_it_is_given(tmp_path):
    data = numbered((60, 7), "<f4")
    with lt.open(saved(tmp_path, data)) as a:
        out = np.zeros((3, 7), "<f4")
        assert a.take([5, 5, 1], out=out) is out
        np.testing.assert_array_equal(out, data[[5, 5, 1]])


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (np.zeros((2, 7), "<f4"), ValueError, "shape"),
        (np.zeros((3, 7), ">f4"), ValueError, "dtype"),
        (np.zeros((3, 14), "<f4")[:, ::2], ValueError, "C-contiguous"),
        (np.broadcast_to(np.float32(0), (3, 7)), ValueError, "writ"),
        ([[0.0] * 7] * 3, TypeError, "ndarray"),
    ],
)
def test_take_refuses_an_array_that_does_not_fit(tmp_path, out, error, text):
    with lt.open(saved(tmp_path, numbered((60, 7), "<f4"))) as a:
        with pytest.raises(error, match=text):
            a.take([5, 5, 1], out=out)


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        ([60], IndexError, "index 60 is out of bounds for axis 0 with size 60"),
        ([0, -61], IndexError, "index -61 is out of bounds for axis 0 with size 60"),
        (np.array([2**63], np.uint64), IndexError, "out of bounds"),
        ([0.5], TypeError, "must be integers"),
        ([True, False], TypeError, "must be integers"),
        (["a"], TypeError, "must be integers"),
    ],
)
def test_take_refuses_rows_out_of_range(tmp_path, rows, error, text):
    with lt.open(saved(tmp_path, numbered((60, 7), "<f4"))) as a:
        with pytest.raises(error, match=text):
            a.take(rows)
