"""Elements without bytes: a header may promise 2**62 of them, and nothing may walk through them."""

from __future__ import annotations

import struct

import lowtide as lt
import numpy as np
import pytest


def header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


SIZELESS_FILES = [
    ("'|V0'", (2**62,)), ("'|V0'", (2**63 - 1,)), ("'|V0'", (2**31, 2**31)), ("'|V0'", (3, 2**60)),
    ("'|S0'", (2**62,)), ("'<U0'", (2**40, 5)), ("[]", (2**62,)), ("[('a', '|V0')]", (2**50,)),
    ("'|V0'", ()), ("'|S0'", ()), ("'|V0'", (0,)), ("'|V0'", (5,)),
]  # fmt: skip


@pytest.mark.parametrize(("descr", "shape"), SIZELESS_FILES, ids=str)
def test_elements_without_bytes_are_never_walked_through(tmp_path, descr, shape):
    path = tmp_path / "m.npy"
    path.write_bytes(header(descr, repr(shape)))
    expected = np.load(path)
    with lt.open(path, memory="1MiB") as a:
        assert (a.dtype, a.shape, a.nbytes) == (expected.dtype, expected.shape, 0)
        whole = np.asarray(a)
        assert (whole.dtype, whole.shape) == (expected.dtype, expected.shape)
        indices = [..., ()]
        if shape:
            indices += [slice(None), slice(None, None, 2), slice(None, None, -3), slice(1, 4), None]
            if shape[0] > 4:
                indices += [4, -1, (slice(1, None, 2), None)]
                # NumPy itself would walk through all that a list of rows selects.
                for got in (a[[3, 0, 3]], a[np.array([3, 0, 3])], a.take([3, 0, 3])):
                    assert (got.shape, got.dtype) == ((3, *shape[1:]), expected.dtype)
        if len(shape) == 2:
            indices += [(slice(None), 2), (2, slice(None, None, 2)), (..., -1)]
        for index in indices:
            got, want = a[index], expected[index]
            assert np.shape(got) == np.shape(want), index
            assert got.dtype == want.dtype, index
    found = lt.check(path)
    assert tuple(found["shape"]) == shape


def test_batches_and_rows_without_bytes_go_on_for_as_long_as_asked(tmp_path):
    path = tmp_path / "m.npy"
    path.write_bytes(header("'|V0'", "(1152921504606846976, 3)"))
    with lt.open(path, memory="1MiB") as a:
        rows = iter(a)
        assert next(rows).shape == (3,)
        for order in ("sequential", "shuffle"):
            with a.batches(100, order=order) as batches:
                assert len(batches) == -(-(2**60) // 100)
                idx, found = next(batches)
                assert len(set(idx.tolist())) == 100
                assert (found.shape, found.dtype) == ((100, 3), np.dtype("V0"))


@pytest.mark.parametrize("dtype", ["u1", "V0"])
def test_iteration_over_tiny_rows_keeps_within_a_small_budget(tmp_path, dtype):
    np.save(tmp_path / "m.npy", np.zeros(200_000, dtype))
    with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
        assert sum(1 for _ in a) == 200_000
