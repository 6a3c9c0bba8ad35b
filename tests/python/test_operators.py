"""Operators on tokens, documents and batches: a TypeError says what to write."""

from __future__ import annotations

import operator

import lowtide as lt
import numpy as np
import pytest

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, divmod, operator.and_, operator.or_, operator.xor,
    operator.lshift, operator.rshift,
]  # fmt: skip
IN_PLACE = [operator.iadd, operator.imul, operator.isub, operator.ior]
UNARY = [operator.neg, operator.pos, operator.invert, abs]
OTHERS = [
    3,
    2.5,
    True,
    "x",
    None,
    (),
    [1, 2],
    np.float32(3),
    np.int64(3),
    np.arange(3),
    np.bool_(1),
]


@pytest.fixture(scope="module")
def lazy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    np.save(folder / "m.npy", np.arange(30).reshape(10, 3))
    np.arange(1000, dtype=np.uint16).tofile(folder / "t.bin")
    with lt.open(folder / "m.npy") as a, lt.tokens(folder / "t.bin", dtype="uint16") as t:
        yield {"Array": a, "Tokens": t}


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("function", COMPARISONS + ARITHMETIC, ids=lambda f: f.__name__)
def test_an_operator_is_refused_from_either_side(lazy, function, other):
    a = lazy["Tokens"]
    formats = isinstance(other, str) and function is operator.mod  # "x" % a is text
    for operands in [(a, other)] if formats else [(a, other), (other, a)]:
        with pytest.raises(TypeError, match=r"a lowtide.Tokens has no operator"):
            function(*operands)
    assert a.stats()["bytes_asked"] == 0


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_a_sign_is_refused(lazy, function):
    with pytest.raises(TypeError, match=r"a lowtide.Tokens has no operator"):
        function(lazy["Tokens"])


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda f: f.__name__)
def test_an_ndarray_is_not_changed_by_tokens(lazy, function):
    mine = np.zeros((10, 3), np.int64)
    for operands in ((mine, lazy["Tokens"]), (lazy["Tokens"], mine)):
        with pytest.raises(TypeError, match=r"a lowtide.Tokens has no operator"):
            function(*operands)
    assert not mine.any()


def test_an_array_and_tokens_do_not_mix(lazy):
    a, t = lazy["Array"], lazy["Tokens"]
    for operands in ((a, t), (t, a)):
        with pytest.raises(TypeError, match=r"a lowtide.Tokens has no operator (\+|add): .*t\[i:j"):
            operator.add(*operands)


def test_the_message_says_what_to_write(lazy):
    with pytest.raises(TypeError, match=r"no operator !=: its tokens are on disk.* t\[i:j\]"):
        lazy["Tokens"] != 3  # noqa: B015
    with pytest.raises(TypeError, match="to compare it with None, use `is`"):
        lazy["Tokens"] == None  # noqa: B015, E711


@pytest.mark.parametrize("kind", ["Array", "Tokens"])
def test_it_is_neither_true_nor_false(lazy, kind):
    for question in (bool, operator.not_, lambda a: a or 3):
        with pytest.raises(TypeError, match=f"a lowtide.{kind} is neither true nor false"):
            question(lazy[kind])


def test_identity_and_hash_are_those_of_the_object(lazy):
    a, t = lazy["Array"], lazy["Tokens"]
    assert a is not t
    assert a in [a, t]
    assert [a, t].index(a) == 0
    assert {a: 1, t: 2}[t] == 2
    assert len({a, t, a}) == 2
    assert hash(a) == hash(a)
    with pytest.raises(TypeError, match="no operator =="):
        a in [t, a]  # noqa: B015


def test_functions_of_numpy_still_take_tokens_that_fit(lazy):
    assert np.sum(lazy["Tokens"]) == sum(range(1000))


def test_documents_and_batches_of_tokens_are_not_compared(lazy, tmp_path):
    from token_files import write_megatron

    write_megatron(tmp_path / "m", [np.arange(5), np.arange(7)])
    with lt.tokens(tmp_path / "m.idx") as t:
        documents = t.documents
        with pytest.raises(TypeError, match=r"a lowtide.Documents has no operator ==.*documents\["):
            documents == [[0, 1], [2]]  # noqa: B015
        assert documents
        with lt.Loader(t, 1, 4, epochs=1) as loader:
            batch = loader.next()
            for other in (batch, 3, np.zeros((1, 4))):
                with pytest.raises(
                    TypeError, match=r"a lowtide.Batch has no operator ==: .*batch.x"
                ):
                    batch == other  # noqa: B015
            assert batch


def test_loaders_and_iterators_are_compared_as_objects(lazy):
    a, t = lazy["Array"], lazy["Tokens"]
    with lt.Loader(t, 2, 8) as one, lt.Loader(t, 2, 8) as two:
        assert one == one
        assert one != two
        assert two in [one, two]
    with a.batches(2) as one, a.batches(2) as two:
        assert one != two
        assert two in {one, two}
