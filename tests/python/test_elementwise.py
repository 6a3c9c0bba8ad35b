"""Operators and ufuncs on arrays on disk give what NumPy gives, in an ndarray of the caller's."""

from __future__ import annotations

import copy
import operator
import pickle

import lowtide as lt
import numpy as np
import pytest
from lowtide._compute import blocks

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, divmod, operator.and_, operator.or_, operator.xor, operator.lshift,
    operator.rshift,
]  # fmt: skip
IN_PLACE = [operator.iadd, operator.imul, operator.isub, operator.ior, operator.imatmul]
UNARY = [operator.neg, operator.pos, operator.invert, abs]
OTHERS = [
    3, 2.5, True, 1j, [1, 2, 3, 4, 5, 6, 7], np.float32(3), np.int64(3), np.bool_(1),
    np.arange(1, 8), np.arange(1, 41).reshape(40, 1), np.ones((40, 7), "u1"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ITEMS", 64)


@pytest.fixture(params=["i8", "u1", "f4", ">f8", "bool"])
def pair(request, tmp_path):
    data = np.random.default_rng(0).integers(0, 5, (40, 7)).astype(request.param)
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy") as a:
        yield a, data


def attempt(function, *args, **kwargs):
    with np.errstate(all="ignore"):
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, OverflowError) as error:
            return error


def assert_same(found, wanted, what=""):
    if isinstance(wanted, Exception):
        assert isinstance(found, (TypeError, ValueError, OverflowError)), (what, found)
        return
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted):
            assert_same(one, other, what)
        return
    assert not isinstance(found, Exception), (what, found)
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), what
    np.testing.assert_array_equal(found, wanted, str(what))


@pytest.mark.parametrize("function", COMPARISONS + ARITHMETIC, ids=lambda f: f.__name__)
def test_an_operator_from_either_side(pair, function):
    a, data = pair
    for other in OTHERS:
        assert_same(attempt(function, a, other), attempt(function, data, other), other)
        assert_same(attempt(function, other, a), attempt(function, other, data), other)
    assert_same(attempt(function, a, a), attempt(function, data, data))


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_a_sign(pair, function):
    a, data = pair
    assert_same(attempt(function, a), attempt(function, data))


@pytest.mark.parametrize("ufunc", [np.sqrt, np.exp, np.isnan, np.modf, np.frexp, np.add, np.hypot])
def test_ufuncs(pair, ufunc):
    a, data = pair
    ours, theirs = [a] * ufunc.nin, [data] * ufunc.nin
    assert_same(attempt(ufunc, *ours), attempt(ufunc, *theirs))
    assert_same(attempt(ufunc, *ours, dtype="f8"), attempt(ufunc, *theirs, dtype="f8"))
    mask = np.arange(7) % 2 == 0
    outs = [np.zeros((40, 7), "f8") for _ in range(2 * ufunc.nout)]
    mine, yours = tuple(outs[: ufunc.nout]), tuple(outs[ufunc.nout :])
    attempt(ufunc, *ours, out=mine, where=mask, casting="unsafe")
    attempt(ufunc, *theirs, out=yours, where=mask, casting="unsafe")
    assert_same(mine, yours)


@pytest.mark.parametrize("order", ["C", "F"])
def test_two_arrays_of_any_order(tmp_path, order):
    rng = np.random.default_rng(0)
    x, y = rng.random((3, 500)), rng.random((3, 500), dtype="f4")
    row, column = rng.random(500), rng.random((3, 1))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.asarray(y, order=order))
    np.save(tmp_path / "row.npy", row)
    np.save(tmp_path / "column.npy", column)
    a, b = lt.open(tmp_path / "x.npy"), lt.open(tmp_path / "y.npy", memory="1MiB")
    c, d = lt.open(tmp_path / "row.npy"), lt.open(tmp_path / "column.npy")
    with a, b, c, d:
        assert_same(a - b, x - y)
        assert_same(b - a, y - x)
        assert_same(b * 2 + a, y * 2 + x)
        assert_same(b + c, y + row)
        assert_same(d + b, column + y)
        assert_same(c + d, row + column)  # neither has the shape of the result
        with pytest.raises(ValueError, match="shape mismatch"):
            a + np.ones((4, 500))


def test_out_and_ndarrays_in_place(pair):
    a, data = pair
    mine, yours = np.ones((40, 7)), np.ones((40, 7))
    assert np.add(a, 1, out=mine) is mine
    np.add(data, 1, out=yours)
    mine += a
    yours += data
    np.testing.assert_array_equal(mine, yours)
    flat = np.arange(41 * 7.0).reshape(41, 7)
    wanted = flat.copy()
    np.add(wanted[1:], data, out=wanted[:-1])
    np.add(flat[1:], a, out=flat[:-1])  # they overlap
    np.testing.assert_array_equal(flat, wanted)
    large = np.zeros((2, 40, 7))
    assert_same(np.add(a, 1, out=large), np.add(data, 1, out=np.zeros((2, 40, 7))))


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda f: f.__name__)
def test_an_array_is_not_changed(pair, function):
    a, _ = pair
    with pytest.raises(TypeError, match=r"only reads its files.*ndarray of your own"):
        function(a, np.ones((7, 7), "u1"))
    with pytest.raises(TypeError, match="only reads its files"):
        np.add(np.ones((40, 7)), 1, out=a)
    with pytest.raises(TypeError, match="only reads its files"):
        np.add.at(a, 0, 1)


def test_masks_select(pair):
    a, data = pair
    np.testing.assert_array_equal(a[a > 3], data[data > 3])
    np.testing.assert_array_equal(a[a[:, 0] > 2], data[data[:, 0] > 2])
    np.testing.assert_array_equal(np.flatnonzero(a == 1), np.flatnonzero(data == 1))


def test_a_result_above_memory_says_what_to_do(tmp_path):
    data = np.zeros((1000, 1000), "f4")
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", memory="2MiB") as a:
        assert_same(a > 3, data > 3)  # 1 MB of bool
        asked = a.stats()["bytes_asked"]
        for function in (np.sqrt, lambda x: x + 1, lambda x: 1.0 == x + x):
            with pytest.raises(
                ValueError,
                match=r"3\.81 MiB, more than .* memory of 2.*a\[i:j\].*iter_chunks.*out=",
            ):
                function(a)
        assert a.stats()["bytes_asked"] == asked
        out = np.empty_like(data)
        np.testing.assert_array_equal(np.cos(a, out=out), np.ones_like(data))


@pytest.mark.parametrize("other", [None, object()])
def test_python_objects_are_refused(pair, other):
    a, _ = pair
    with pytest.raises(TypeError, match="Python objects"):
        a == other  # noqa: B015
    if other is None:
        with pytest.raises(TypeError, match="to compare it with None, use `is`"):
            other != a  # noqa: B015


def test_copies_are_equal(pair):
    a, _ = pair
    with pickle.loads(pickle.dumps(a)) as b, copy.copy(a) as c:
        for other in (a, b, c):
            assert (a == other).all()
        with pytest.raises(ValueError, match="ambiguous"):
            c in [b, c]  # noqa: B015
    assert a in [a]
    assert hash(a) == hash(a)


def test_masked_arrays_keep_their_mask(pair):
    a, data = pair
    masked = np.ma.masked_less(np.arange(280).reshape(40, 7), 9)
    found = np.add(masked, a)
    assert found.mask.sum() == 9
    np.testing.assert_array_equal(found, masked + data)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(40, 7), (3, 500)], ids=str)
def test_matmul(tmp_path, shape, order):
    rng = np.random.default_rng(0)
    for dtype in ("f4", "f8", "i8", "bool", "c16"):
        data = (rng.random(shape) * 5).astype(dtype)
        np.save(tmp_path / "m.npy", np.asarray(data, order=order))
        left, right = (rng.random((n, 4)).astype("f4") for n in shape)
        with lt.open(tmp_path / "m.npy", memory="1MiB") as a:
            for found, wanted in (
                (a @ right, data @ right),
                (a @ right[:, 0], data @ right[:, 0]),
                (left.T @ a, left.T @ data),
                (left[:, 0] @ a, left[:, 0] @ data),
                (a @ data.T, data @ data.T),
                (np.dot(a, right), np.dot(data, right)),
                (np.dot(a, 2), np.dot(data, 2)),
            ):
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_allclose(found, wanted, rtol=1e-5)
            out = np.empty((shape[0], 4), np.result_type(data, right))
            assert np.matmul(a, right, out=out) is out
            np.testing.assert_allclose(out, data @ right, rtol=1e-5)
            with pytest.raises(ValueError, match="do not fit together"):
                a @ np.ones(3)


def test_matmul_of_one_and_of_three_axes(tmp_path):
    x = np.random.default_rng(0).random(1000)
    y = x.reshape(10, 20, 5)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    with lt.open(tmp_path / "x.npy") as a, lt.open(tmp_path / "y.npy") as b:
        assert type(a @ x) is type(x @ x)
        assert a @ x == pytest.approx(x @ x)
        assert a @ a == pytest.approx(x @ x)
        np.testing.assert_allclose(b @ np.ones(5), y @ np.ones(5))
        with pytest.raises(ValueError):
            a @ np.ones(3)
        with pytest.raises(ValueError):
            a @ 3


def test_methods_of_ufuncs(pair):
    a, data = pair
    assert_same(np.add.reduce(a), np.add.reduce(data))
    assert_same(attempt(np.maximum.reduce, a, 1), attempt(np.maximum.reduce, data, 1))
    assert_same(
        attempt(np.logical_xor.reduce, a, axis=1), attempt(np.logical_xor.reduce, data, axis=1)
    )
    assert np.add.reduce(a, axis=None) == np.add.reduce(data, axis=None)
    assert_same(attempt(np.subtract.reduce, a), attempt(np.subtract.reduce, data))
    assert_same(np.add.accumulate(a), np.add.accumulate(data))
    assert_same(np.multiply.outer(a, [1, 2]), np.multiply.outer(data, [1, 2]))


def test_another_library_decides_about_its_own_objects(pair):
    class Mine:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return "mine"

    assert pair[0] + Mine() == "mine"
    assert Mine().__array_ufunc__(np.add, "__call__") == "mine"


def test_an_array_without_rows_or_axes(tmp_path):
    for data in (np.zeros((0, 3)), np.array(2.5), np.zeros((3, 0))):
        np.save(tmp_path / "m.npy", data)
        with lt.open(tmp_path / "m.npy") as a:
            for found, wanted in ((a + 1, data + 1), (a == 2.5, data == 2.5)):
                assert (type(found), np.shape(found)) == (type(wanted), np.shape(wanted))
                np.testing.assert_array_equal(found, wanted)


def test_every_byte_is_read_once(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ITEMS", 1 << 12)
    data = np.random.default_rng(0).random((4000, 25))
    np.save(tmp_path / "m.npy", data)
    with lt.open(tmp_path / "m.npy", memory="4MiB", engine="pread") as a:
        a > 0.5  # noqa: B015
        assert a.stats()["bytes_read"] == data.nbytes
