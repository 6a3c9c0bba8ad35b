"""Every index of an array, against NumPy over the same data in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from index_cases import (
    ROW_DTYPES,
    MemorySource,
    arrays_and_indices,
    assert_same,
    compare,
    numbered,
    outcome,
    outcome_of_numpy,
)
from lowtide._index import indexing, window


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
    for long_row in (window.LONG_ROW_BYTES, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(window, "LONG_ROW_BYTES", long_row)
            for module in (indexing, window):
                patch.setattr(module, "STRIDE_BYTES", 3 * long_row)
            got = outcome(lambda: indexing.get(MemorySource(data, scratch), index))
            compare(got, outcome_of_numpy(data, index))


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
        indexing.get(rows, index, columns),
        np.array(expected) if np.ndim(expected) or isinstance(expected, np.ndarray) else expected,
    )


def test_one_column_passes_through_the_scratch_buffer():
    source = MemorySource(numbered((1000, 50), "<f4"), scratch_bytes=2000)
    assert_same(indexing.get(source, np.s_[:, 3]), source.data[:, 3].copy())
    assert source.asked_bytes == source.data.nbytes
    assert source.largest_bytes <= 2000


def test_a_part_of_a_long_row_is_all_that_is_read():
    source = MemorySource(numbered((20, 100_000), "<f4"), scratch_bytes=1 << 20)
    assert_same(indexing.get(source, np.s_[:, 70:90]), source.data[:, 70:90].copy())
    assert source.asked_bytes == 20 * 20 * 4


def test_a_row_longer_than_the_scratch_buffer_streams():
    source = MemorySource(numbered((3, 100_000), "<f4"), scratch_bytes=4096)
    assert_same(indexing.get(source, np.s_[1:, ::-7]), source.data[1:, ::-7].copy())
    assert source.largest_bytes <= 4096


def test_a_mask_over_all_axes_reads_every_row_once():
    source = MemorySource(numbered((100, 40), "<f4"), scratch_bytes=1000)
    mask = source.data > source.data.mean()
    assert_same(indexing.get(source, mask), source.data[mask])
    assert source.asked_bytes <= source.data.nbytes
    assert source.largest_bytes <= 1000


@pytest.mark.parametrize("index", ["x", "y", ["x"], ["y", "x"]])
def test_a_field_streams(index):
    source = MemorySource(numbered((50, 3), [("x", "<f4"), ("y", "<i2", (2,))]))
    got = indexing.get(source, index)
    assert got.dtype == source.data[index].dtype
    np.testing.assert_array_equal(got, source.data[index])
    assert source.largest_bytes <= 64


def test_a_field_that_is_not_there_is_named():
    source = MemorySource(numbered((5,), [("x", "<f4")]))
    with pytest.raises(ValueError, match="no field of name z"):
        indexing.get(source, "z")


@pytest.mark.parametrize("index", [(), Ellipsis, None, (None, Ellipsis), True, False])
def test_an_array_of_no_axes(index):
    data = np.array(5.0)
    got, expected = indexing.get(MemorySource(data), index), data[index]
    assert type(got) is type(expected)
    np.testing.assert_array_equal(got, expected)
