"""Indexing equals NumPy's: over a source in memory, and over files."""

from __future__ import annotations

import pathlib

import lowtide as lt
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from lowtide import _index, _window

ROW_DTYPES = [
    "<f4",
    ">i2",
    "|b1",
    "<c16",
    "<M8[ns]",
    "<U3",
    "|S2",
    "|V5",
    [("x", "<f4"), ("y", "<i2", (2,))],
]


class MemorySource:
    """Rows of an ndarray, with a count of what was asked for and the largest piece."""

    has_parts = True

    def __init__(self, data, scratch_bytes=64):
        self.data = np.ascontiguousarray(data)
        self.shape, self.dtype, self.scratch_bytes = data.shape, data.dtype, scratch_bytes
        self.asked_bytes = 0
        self.largest_bytes = 0

    def _count(self, out):
        assert out.flags.c_contiguous
        assert out.dtype == self.dtype
        self.asked_bytes += out.nbytes
        self.largest_bytes = max(self.largest_bytes, out.nbytes)

    def read_rows(self, first, count, out):
        assert 0 <= first <= first + count <= len(self.data) if self.data.ndim else True
        assert len(out) == count
        self._count(out)
        out[...] = self.data[first : first + count] if self.data.ndim else self.data

    def take_rows(self, rows, out):
        assert rows.dtype in (np.int64, np.uint64, np.int32, np.uint32)
        assert rows.flags.c_contiguous
        self._count(out)
        assert rows.size == 0 or rows.min() >= 0
        out[...] = self.data[rows]

    def take_part(self, rows, offset_bytes, out):
        self._count(out)
        size = out.nbytes // len(rows)
        flat = self.data.reshape(len(self.data), -1).view(np.uint8)
        assert offset_bytes + size <= flat.shape[1]
        part = flat[rows, offset_bytes : offset_bytes + size]
        out.reshape(-1).view(np.uint8)[...] = part.reshape(-1)


def numbered(shape, dtype):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    raw = np.random.default_rng(count).integers(0, 120, count * dtype.itemsize, dtype=np.uint8)
    if dtype.kind == "b":
        raw &= 1
    if dtype.kind == "U":
        raw = (np.arange(count * dtype.itemsize // 4) % 90 + 33).astype("<u4").view(np.uint8)
    return raw.view(dtype).reshape(shape)


def assert_same(got, expected):
    assert type(got) is type(expected)
    assert got.dtype == expected.dtype
    assert np.shape(got) == np.shape(expected)
    if isinstance(got, np.ndarray):
        assert got.flags.owndata or got.size == 0
        assert got.flags.writeable
    np.testing.assert_array_equal(got, expected)


def outcome(function):
    try:
        return function()
    except (IndexError, ValueError, TypeError) as error:
        return type(error), str(error)


def compare(got, expected):
    if isinstance(expected, tuple):
        assert got == expected
    else:
        assert not isinstance(got, tuple), got
        assert_same(got, expected)


@st.composite
def arrays_and_indices(draw):
    """A shape, and an index of any kind: some out of range, some with too many axes."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6))
    kind = draw(st.sampled_from(["basic", "integers", "mask", "mixed", "mixed", "mixed"]))
    if kind == "basic":
        return shape, draw(hnp.basic_indices(shape, allow_newaxis=True))
    if kind == "integers" and 0 not in shape:
        return shape, draw(hnp.integer_array_indices(shape))
    if kind == "mask":
        dims = draw(st.integers(1, len(shape)))
        return shape, draw(hnp.arrays(bool, shape[:dims]))
    common = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3))
    index = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        index.append(draw(entries(extent, common)))
    for extra in draw(st.lists(st.sampled_from([None, Ellipsis, True, False]), max_size=2)):
        if extra is not Ellipsis or not any(item is Ellipsis for item in index):
            index.insert(draw(st.integers(0, len(index))), extra)
    return shape, tuple(index)


def entries(extent, common):
    place = st.integers(-extent - (extent == 2), max(extent - 1, 0))
    array = hnp.arrays(
        st.sampled_from([np.int64, np.int32, np.int8, np.dtype(">i4")]), common, elements=place
    )
    lists = st.lists(place, min_size=1, max_size=1)
    return st.one_of(
        place,
        st.slices(max(extent, 1)),
        array,
        lists,
        hnp.arrays(bool, (extent,)),
        place.map(np.int16),
        place.map(np.array),
        st.just(slice(None)),
    )


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    case=arrays_and_indices(),
    dtype=st.sampled_from(ROW_DTYPES),
    scratch=st.sampled_from([1, 64, 4096]),
)
@example(case=((3, 4), ([0], Ellipsis, [1])), dtype="<f4", scratch=1)
@example(case=((3, 4, 2), (0, slice(None), [1])), dtype="<f4", scratch=1)
@example(case=((3, 4), (Ellipsis, Ellipsis)), dtype="<f4", scratch=1)
@example(case=((3, 4), (True, slice(None), [1])), dtype="<f4", scratch=1)
@example(case=((3,), (1, 2)), dtype="<f4", scratch=1)
@example(case=((3,), ([],)), dtype="<f4", scratch=1)
@example(case=((3,), "x"), dtype="<f4", scratch=1)
@example(case=((3,), 1.5), dtype="<f4", scratch=1)
@example(case=((3,), np.array([0.5])), dtype="<f4", scratch=1)
def test_every_index_gives_what_numpy_gives(case, dtype, scratch):
    shape, index = case
    data = numbered(shape, dtype)
    for long_row in (_window.LONG_ROW_BYTES, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_window, "LONG_ROW_BYTES", long_row)
            for module in (_index, _window):
                patch.setattr(module, "STRIDE_BYTES", 3 * long_row)
            expected = outcome(
                lambda: np.array(data[index]) if _is_view(data, index) else data[index]
            )
            compare(outcome(lambda: _index.get(MemorySource(data, scratch), index)), expected)


def _is_view(data, index):
    return isinstance(data[index], np.ndarray)


class MemoryColumns:
    """Each row is a file of its own."""

    def __init__(self, values):
        self.values = values

    def parts(self, rows):
        for place, row in enumerate(rows):
            yield slice(place, place + 1), MemorySource(self.values[row : row + 1].T, 16), range(1)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_fortran_array_is_read_by_columns(data):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=5))
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    values = numbered(shape, "<f4")
    rows, columns = MemorySource(values), MemoryColumns(values)
    expected = values[index]
    assert_same(
        _index.get(rows, index, columns),
        np.array(expected) if np.ndim(expected) or isinstance(expected, np.ndarray) else expected,
    )


def test_one_column_passes_through_the_scratch_buffer():
    source = MemorySource(numbered((1000, 50), "<f4"), scratch_bytes=2000)
    assert_same(_index.get(source, np.s_[:, 3]), source.data[:, 3].copy())
    assert source.asked_bytes == source.data.nbytes
    assert source.largest_bytes <= 2000


def test_a_part_of_a_long_row_is_all_that_is_read():
    source = MemorySource(numbered((20, 100_000), "<f4"), scratch_bytes=1 << 20)
    assert_same(_index.get(source, np.s_[:, 70:90]), source.data[:, 70:90].copy())
    assert source.asked_bytes == 20 * 20 * 4


def test_a_row_longer_than_the_scratch_buffer_streams():
    source = MemorySource(numbered((3, 100_000), "<f4"), scratch_bytes=4096)
    assert_same(_index.get(source, np.s_[1:, ::-7]), source.data[1:, ::-7].copy())
    assert source.largest_bytes <= 4096


def test_a_mask_over_all_axes_reads_every_row_once():
    source = MemorySource(numbered((100, 40), "<f4"), scratch_bytes=1000)
    mask = source.data > source.data.mean()
    assert_same(_index.get(source, mask), source.data[mask])
    assert source.asked_bytes <= source.data.nbytes
    assert source.largest_bytes <= 1000


@pytest.mark.parametrize("index", ["x", "y", ["x"], ["y", "x"]])
def test_a_field_streams(index):
    source = MemorySource(numbered((50, 3), [("x", "<f4"), ("y", "<i2", (2,))]))
    got = _index.get(source, index)
    assert got.dtype == source.data[index].dtype
    np.testing.assert_array_equal(got, source.data[index])
    assert source.largest_bytes <= 64


def test_a_field_that_is_not_there_is_named():
    source = MemorySource(numbered((5,), [("x", "<f4")]))
    with pytest.raises(ValueError, match="no field of name z"):
        _index.get(source, "z")


@pytest.mark.parametrize("index", [(), Ellipsis, None, (None, Ellipsis), True, False])
def test_an_array_of_no_axes(index):
    data = np.array(5.0)
    got, expected = _index.get(MemorySource(data), index), data[index]
    assert type(got) is type(expected)
    np.testing.assert_array_equal(got, expected)


# Over files.


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
        expected = outcome(lambda: np.array(data[index]) if _is_view(data, index) else data[index])
        compare(outcome(lambda: a[index]), expected)


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
        assert_same(a[index], np.array(expected) if _is_view(data, index) else expected)


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
def test_take_refuses_rows_that_are_not_there(tmp_path, rows, error, text):
    with lt.open(saved(tmp_path, numbered((60, 7), "<f4"))) as a:
        with pytest.raises(error, match=text):
            a.take(rows)
