"""Arrays, indices and results that tests of indexing compare."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

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


def outcome_of_numpy(data, index):
    """As NumPy 2.3 and later: older ones warn of an index out of bounds if the result is empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return outcome(lambda: np.array(data[index]) if is_view(data, index) else data[index])
        except DeprecationWarning as warning:
            return type(warning.__context__), str(warning.__context__)


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


def is_view(data, index):
    return isinstance(data[index], np.ndarray)
