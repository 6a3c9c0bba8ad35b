"""What a loader over arrays refuses, with the words that say why."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest
from column_files import numbered, opened
from token_files import write_megatron, write_nanogpt


@pytest.fixture
def x(tmp_path):
    with opened(tmp_path, numbered(20, 3)) as a:
        yield a


@pytest.fixture
def y(tmp_path):
    with opened(tmp_path, np.arange(20), "y") as a:
        yield a


@pytest.fixture
def short(tmp_path):
    with opened(tmp_path, np.arange(19), "short") as a:
        yield a


@pytest.fixture
def tokens(tmp_path):
    with lt.tokens(write_nanogpt(tmp_path / "t.bin", np.arange(100)), dtype="uint16") as t:
        yield t


def refuse(error, match, source, batch_size=4, **options):
    with pytest.raises(error, match=match) as found:
        lt.Loader(source, batch_size, **options)
    assert found.type is error


def test_columns_of_different_length(x, short):
    refuse(ValueError, r"same length, but column 0 has 20, column 1 has 19 rows", (x, short))
    refuse(ValueError, r"'a' has 20, 'b' has 19", {"a": x, "b": short})


def test_no_columns():
    refuse(ValueError, "source is an empty tuple: give at least one array", ())
    refuse(ValueError, "source is an empty dict", {})
    refuse(ValueError, r"source is an empty list: give at least one \(source, weight\)", [])


@pytest.mark.parametrize("name", [1, None, b"x", ("x",)])
def test_a_name_that_is_not_a_string(x, name):
    refuse(TypeError, "names of columns must be strings, not ", {"a": x, name: x})


def test_what_is_not_an_array(x, tokens, tmp_path):
    for wrong, match in (
        (np.zeros((20, 3)), "ndarray; a loader reads files: .*lowtide.open"),
        (tokens, "is Tokens, whose samples are windows: .*block_size"),
        ("x.npy", "path: open an Array with lowtide.open"),
        (tmp_path, "path"),
        (None, "is None: .*documents"),
        ([1, 2], "not list"),
        (5, "not int"),
    ):
        refuse(TypeError, match, (x, wrong))
        refuse(TypeError, match, {"a": x, "b": wrong})
        refuse(TypeError, "column 1 ", (x, wrong))
    refuse(TypeError, r"columns that come together are a tuple or a dict", [x, x])
    refuse(TypeError, "ndarray", np.zeros(5))
    refuse(TypeError, "source is None", tokens.documents)


def test_an_array_without_rows(tmp_path, x):
    with opened(tmp_path, np.float32(3), "scalar") as a:
        refuse(TypeError, "0-d array: it has no rows", (x, a))
    with opened(tmp_path, np.zeros((0, 3)), "empty") as a:
        refuse(ValueError, "needs 4 rows, but there are 0", a)
        refuse(ValueError, "there are 0", (a, a), drop_last=False)


@pytest.mark.parametrize(
    ("rows", "error", "match"),
    [
        ([20], IndexError, "index 20 is out of bounds for axis 0 with size 20"),
        ([3, -21], IndexError, "index -21 is out of bounds"),
        (np.array([2**63], "u8"), IndexError, "index 9223372036854775808 is out of bounds"),
        (np.array([-(2**63)]), IndexError, "out of bounds"),
        (range(10, 21), IndexError, "index 20 is out of bounds"),
        (range(5, -22, -1), IndexError, "index -21 is out of bounds"),
        (range(10**15), IndexError, "index 999999999999999 is out of bounds"),
        (range(-(10**15), 0), IndexError, "index -1000000000000000 is out of bounds"),
        ([0.0, 1.0], TypeError, "rows must be integers or a bool mask, not float64"),
        (["0"], TypeError, "rows must be integers or a bool mask, not <U1"),
        ([None], TypeError, "not object"),
        (5, TypeError, "not int"),
        ("all", TypeError, "not str"),
        (np.int64(5), TypeError, "not int64"),
        ([], ValueError, "rows selects nothing"),
        (np.array([], int), ValueError, "rows selects nothing"),
        (slice(5, 5), ValueError, "rows selects nothing"),
        (slice(30, None), ValueError, "rows selects nothing"),
        (range(5, 5), ValueError, "rows selects nothing"),
        (np.zeros(20, bool), ValueError, "rows selects nothing"),
        (np.ones(19, bool), IndexError, "mask of 19 entries, but there are 20 rows"),
        ([True] * 21, IndexError, "mask of 21 entries, but there are 20 rows"),
        ([[1, 2], [3, 4]], ValueError, r"rows must have one axis, not shape \(2, 2\)"),
        (np.array(3), ValueError, r"rows must have one axis, not shape \(\)"),
        ([1, 2, 3], ValueError, "needs 4 rows, but there are 3"),
    ],
    ids=str,
)
def test_rows_that_do_not_exist(x, y, rows, error, match):
    refuse(error, match, (x, y), rows=rows)


@pytest.mark.parametrize(
    ("weights", "error", "match"),
    [
        ([1.0] * 19 + [-1.0], ValueError, "weights: entry 19 is -1"),
        ([1.0] * 19 + [-1e-300], ValueError, "weights: entry 19 "),
        ([np.nan] + [1.0] * 19, ValueError, "weights: entry 0 is nan"),
        ([1.0, np.inf] + [1.0] * 18, ValueError, "weights: entry 1 is inf"),
        ([0.0] * 20, ValueError, "weights: all are 0"),
        ([1.0] * 19, ValueError, "weights: there are 19, but there must be one for each of the 20"),
        ([1.0] * 21, ValueError, "weights: there are 21"),
        ([], ValueError, "weights: there are 0"),
        (["a"] * 20, TypeError, "weights must be numbers, not <U1"),
        ([1j] * 20, TypeError, "weights must be numbers, not complex128"),
        ([True] * 20, TypeError, "weights must be numbers, not bool"),
        ([None] * 20, TypeError, "weights must be numbers, not object"),
        ([[1.0] * 20], ValueError, r"weights must have one axis, not shape \(1, 20\)"),
        (1.0, ValueError, r"weights must have one axis, not shape \(\)"),
    ],
    ids=str,
)
def test_weights_that_make_no_sense(x, weights, error, match):
    refuse(error, match, x, weights=weights)


def test_weights_of_a_subset_are_as_many_as_its_rows(x):
    match = "weights: there are 20, but there must be one for each of the 5 selected samples"
    refuse(ValueError, match, x, rows=[1, 2, 3, 4, 5], weights=np.ones(20))


def test_weights_leave_no_other_order(x):
    refuse(ValueError, '"random" or left out, not "sequential"', x, weights=np.ones(20),
           order="sequential")  # fmt: skip


@pytest.mark.parametrize("option", [{"rows": [1, 2, 3, 4]}, {"weights": np.ones(40)}])
def test_a_mixture_takes_no_selection(x, option):
    refuse(ValueError, f"{next(iter(option))}: a mixture takes no selection", [(x, 1), (x, 1)],
           **option)  # fmt: skip


@pytest.mark.parametrize(
    "option", [{"block_size": 4}, {"dtype": "int64"}, {"documents": "separate"}], ids=str
)
def test_what_only_windows_have(x, y, tokens, option):
    match = f"{next(iter(option))} is for windows of tokens only"
    for source in (x, (x, y), {"a": x}, [(x, 1)]):
        refuse(ValueError, match, source, **option)
    refuse(ValueError, "documents must be 'cross' or 'separate'", x, documents="no")
    refuse(TypeError, "block_size must be an integer, not NoneType", tokens)


def test_numbers_and_words(x):
    refuse(ValueError, "order", x, order="up")
    refuse(TypeError, "order", x, order=np.arange(20))
    refuse(ValueError, "batch_size", x, 0)
    refuse(TypeError, "batch_size", x, 4.0)
    refuse(ValueError, "one step of 1 rank needs 21 rows, but there are 20", x, 21)
    refuse(ValueError, "one step of 6 ranks needs 24 rows, but there are 20", x, world_size=6)
    refuse(ValueError, "rank must be below world_size", x, rank=2, world_size=2)
    refuse(ValueError, "drop_last must be true with a world_size of 2", x, world_size=2,
           drop_last=False)  # fmt: skip
    refuse(ValueError, "seed", x, seed=-1)
    refuse(ValueError, "prefetch", x, prefetch=0)
    refuse(ValueError, "epochs", x, epochs=0)


def test_a_budget_that_is_too_small(tmp_path):
    with opened(tmp_path, np.zeros((4000, 256)), memory="64MiB") as a:
        refuse(ValueError, r"a batch of 2000 rows.*; use at least ", (a, a), 2000, memory="4MiB")


def test_a_closed_array(x, y):
    y.close()
    refuse(ValueError, "y.npy.*closed", (x, y))
    refuse(ValueError, "y.npy.*closed", y)


def test_a_mixture_of_different_structures(tmp_path, x, y, tokens):
    path = write_megatron(tmp_path / "docs", [[1, 2], [3]] * 10)
    with (
        opened(tmp_path, numbered(20, 4), "wide") as wide,
        opened(tmp_path, numbered(20, 3, dtype="f8"), "double") as double,
        opened(tmp_path, numbered(20, 3, dtype=">f4"), "big") as big,
        lt.tokens(path) as t,
    ):
        for one, other in (
            (x, y),
            (x, wide),
            (x, double),
            (x, big),
            ((x, y), x),
            ((x, y), (y, x)),
            ({"a": x}, {"b": x}),
            ({"a": x, "b": y}, {"b": y, "a": x}),
            ({"a": x}, x),
            (x, lt.ragged(x, [0, 20])),
            (lt.ragged(x, [0, 20]), lt.ragged((x, y), [0, 20])),
            (lt.ragged(x, [0, 20]), t.documents),
            (lt.ragged({"a": x}, [0, 20]), lt.ragged({"b": x}, [0, 20])),
            (x, tokens),
            (tokens, x),
        ):
            match = "same columns, dtypes and row shapes, but source 1 has .* and source 0 has "
            refuse(ValueError, match, [(one, 1), (other, 1)], 1)
    for weight in (0, -1, np.nan, np.inf):
        refuse(ValueError, "weight of entry 1 must be finite and above 0", [(x, 1), (x, weight)])
    refuse(TypeError, "weight of entry 0 must be a number, not str", [(x, "1")])
