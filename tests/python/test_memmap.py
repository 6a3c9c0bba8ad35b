"""lt.memmap compared with np.memmap: arguments, results, errors, and the ceiling."""

from __future__ import annotations

import copy
import os
import pickle

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core

MIB = 1 << 20
ROWS, COLUMNS = 40_000, 128  # 20 MiB of int32
SMALL = "8MiB"


@pytest.fixture(scope="module")
def numbers():
    return np.arange(ROWS * COLUMNS, dtype="<i4").reshape(ROWS, COLUMNS)


@pytest.fixture(scope="module")
def shared(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("memmap") / "m.i4"
    numbers.tofile(path)
    return path


@pytest.fixture
def own(tmp_path, numbers):
    path = tmp_path / "m.i4"
    numbers.tofile(path)
    return path


def open_map(path, mode="r", **options):
    options = {"dtype": "<i4", "shape": (ROWS, COLUMNS), "memory": SMALL, **options}
    return lt.memmap(path, mode=mode, **options)


def test_it_is_an_np_memmap_with_two_arguments_more(shared, numbers):
    m = open_map(shared)
    assert isinstance(m, np.memmap)
    assert (m.mode, m.offset, m.filename, m.memory, m.cache) == ("r", 0, shared, 8 * MIB, "keep")
    assert np.array_equal(m, numbers)
    assert lt.memmap(shared).dtype == np.uint8
    assert lt.memmap(shared).mode == "r+"
    assert lt.memmap(shared, mode="readonly").mode == "r"
    assert lt.memmap(shared, mode="r", memory=123).memory == 123
    assert open_map(shared, cache="drop").cache == "drop"
    assert lt.memmap(str(shared), mode="r").filename == str(shared)
    assert lt.memmap(shared).memory == _core.default_memory_bytes()


INDICES = [
    5, -1, np.int64(7), (3, 4), (-3, -4), slice(10, 20), slice(None, None, -7), slice(5, 5), ...,
    (slice(None), 3), (slice(2, 9), slice(1, 3)), (..., 0), None, (None, 4), [1, 2, 2, -1], [],
    np.array([ROWS - 1, 0, 5]), np.arange(0, ROWS, 7), np.arange(ROWS)[::-1], [[1, 2], [3, 4]],
    np.array([[0], [ROWS - 1]], np.uint32), np.arange(ROWS) % 3 == 0, [True] + [False] * (ROWS - 1),
    ([1, 2], [3, 4]), (slice(0, 10), [3, 1]), ([5, 6], slice(None)), (np.int32(4), ...), (),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=lambda index: repr(index)[:30].replace("\n", " "))
def test_every_index_gives_what_numpy_gives(shared, numbers, index):
    m = open_map(shared)
    plain = np.memmap(shared, dtype="<i4", mode="r", shape=(ROWS, COLUMNS))
    mine, theirs = m[index], plain[index]
    assert np.array_equal(mine, theirs)
    assert np.array_equal(mine, numbers[index])
    if type(theirs) is np.memmap:
        assert type(mine) is lt.memmap and mine._mmap is m._mmap
    else:
        assert type(mine) is type(theirs)


BAD = [ROWS, -ROWS - 1, [0, ROWS], np.array([-ROWS - 1]), np.ones(3, bool), 1.5, "x", (1, 2, 3)]


@pytest.mark.parametrize("index", BAD)
def test_a_bad_index_is_the_error_that_numpy_raises(shared, index):
    plain = np.memmap(shared, dtype="<i4", mode="r", shape=(ROWS, COLUMNS))
    with pytest.raises(IndexError) as theirs:
        plain[index]
    with pytest.raises(IndexError) as ours:
        open_map(shared)[index]
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    "dtype", ["<u2", ">f8", "S5", "datetime64[s]", [("x", "<f4"), ("y", "<i8")]]
)
def test_short_rows_and_odd_types_are_gathered_through_the_map(tmp_path, dtype):
    size = 16 * MIB // np.dtype(dtype).itemsize
    raw = np.random.default_rng(0).integers(0, 100, size * np.dtype(dtype).itemsize, np.uint8)
    raw.tofile(tmp_path / "m")
    data = raw.view(dtype)
    m = lt.memmap(tmp_path / "m", dtype, "r", memory="8MiB")
    rows = np.random.default_rng(1).integers(-size, size, 50_000)
    assert m[rows].tobytes() == data[rows].tobytes()
    assert (
        m[: size // 2][rows % (size // 2)].tobytes()
        == data[: size // 2][rows % (size // 2)].tobytes()
    )
    assert m[7].tobytes() == data[7].tobytes()
    assert m[::-1][rows].tobytes() == data[::-1][rows].tobytes()


def test_take_of_rows_is_numpys(shared, numbers):
    m = open_map(shared)
    rows = np.random.default_rng(0).permutation(ROWS)
    assert np.array_equal(m.take(rows, axis=0), numbers[rows])
    assert np.array_equal(np.take(m, [[1], [-1]], axis=0), numbers[[[1], [-1]]])
    assert np.array_equal(m.take([1, 2]), numbers.take([1, 2]))
    assert np.array_equal(m.take([1, 2], axis=1), numbers.take([1, 2], axis=1))
    assert np.array_equal(m.take(ROWS + 5, axis=0, mode="wrap"), numbers[5])
    assert type(m.take(rows, axis=0)) is np.ndarray


def test_a_view_and_a_fortran_map_read_their_own_rows(own, numbers):
    m = open_map(own)
    part = m[1000:2000]
    assert np.array_equal(part[[0, 5, -1]], numbers[1000:2000][[0, 5, -1]])
    odd = m.reshape(-1, 2 * COLUMNS)[3:]
    assert np.array_equal(odd[[7, 1]], numbers.reshape(-1, 2 * COLUMNS)[3:][[7, 1]])
    assert np.array_equal(m[:, 3:9][[7, 1]], numbers[:, 3:9][[7, 1]])
    f = lt.memmap(own, "<i4", "r", shape=(ROWS, COLUMNS), order="F", memory=SMALL)
    plain = np.memmap(own, "<i4", "r", shape=(ROWS, COLUMNS), order="F")
    rows = np.random.default_rng(0).integers(0, ROWS, 500)
    assert np.array_equal(f[rows], plain[rows])
    assert f.flags.f_contiguous


def test_rows_of_a_npy_file_behind_an_offset(tmp_path, numbers):
    np.save(tmp_path / "m.npy", numbers)
    offset = os.path.getsize(tmp_path / "m.npy") - numbers.nbytes
    m = open_map(tmp_path / "m.npy", offset=offset)
    assert np.array_equal(m[[3, ROWS - 1, 0]], numbers[[3, ROWS - 1, 0]])
    assert np.array_equal(m[5:7], numbers[5:7])


def test_rows_are_those_of_the_mapped_file_when_its_name_leads_elsewhere(own, numbers):
    m = open_map(own)
    os.unlink(own)
    np.zeros_like(numbers).tofile(own)
    assert np.array_equal(m[[3, ROWS - 1, 0]], numbers[[3, ROWS - 1, 0]])
    assert np.array_equal(m[5:7], numbers[5:7])


def test_rows_far_into_a_file_are_found_by_narrow_numbers(tmp_path):
    path, first = tmp_path / "sparse", 2**31
    with open(path, "wb") as file:
        try:
            file.truncate((first + 100) * 128)
        except OSError as error:
            pytest.skip(f"no file of 256 GiB here: {error}")
        file.seek((first + 5) * 128)
        file.write(b"\x07" * 128)
    part = lt.memmap(path, np.uint8, "r", shape=(first + 100, 128), memory=SMALL)[first:]
    assert part[np.array([5, 6], np.int32)].sum(axis=1).tolist() == [7 * 128, 0]


def test_mode_w_plus_makes_the_file_and_mode_c_keeps_its_writes(tmp_path):
    path = tmp_path / "new"
    made = lt.memmap(path, "<i4", "w+", shape=(ROWS, COLUMNS), memory=SMALL)
    made[:] = np.arange(COLUMNS)
    made.flush()
    assert os.path.getsize(path) == ROWS * COLUMNS * 4
    private = lt.memmap(path, "<i4", "c", shape=(ROWS, COLUMNS))
    private[7] = -1
    assert private.memory is None
    assert private[7, 0] == -1 and np.array_equal(private[[7, 8]][:, 0], [-1, 0])
    assert made[7, 0] == 0
    assert pickle.loads(pickle.dumps(private))[7, 0] == -1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"memory": "lots"}, ValueError, "lots"),
        ({"memory": 0}, ValueError, "memory"),
        ({"memory": 1.5}, ValueError, "memory"),
        ({"memory": [1]}, TypeError, "memory"),
        ({"cache": "never"}, ValueError, "auto, keep, drop"),
        ({"cache": 1}, TypeError, "cache"),
        ({"mode": "c", "memory": "8MiB"}, ValueError, "mode 'c' takes neither memory nor"),
        ({"mode": "c", "cache": "drop", "memory": None}, ValueError, "mode 'c'"),
        ({"mode": "x"}, ValueError, "mode must be one of"),
        ({"mode": "w+", "shape": None}, ValueError, "shape must be given"),
        ({"dtype": object}, ValueError, "objects"),
        ({"dtype": [("a", "O")], "mode": "w+"}, ValueError, "objects"),
        ({"dtype": "<f7"}, TypeError, "f7"),
        ({"shape": (ROWS + 1, COLUMNS)}, ValueError, "mmap length"),
    ],
)
def test_a_bad_argument_is_an_error_and_leaves_the_file_alone(own, arguments, error, text):
    size = os.path.getsize(own)
    with pytest.raises(error, match=text):
        open_map(own, **{"mode": "r", **arguments})
    assert os.path.getsize(own) == size


def test_a_missing_or_empty_file_is_numpys_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        lt.memmap(tmp_path / "none", mode="r")
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="empty file"):
        lt.memmap(tmp_path / "empty", mode="r")
    with pytest.raises(IsADirectoryError):
        lt.memmap(tmp_path, mode="r")


def test_it_pickles_by_reference(own, numbers):
    m = open_map(own, "r", cache="drop")
    for view in (m, m[5:9], m[::-3], m[:, 5:9], m[3, ::2], m.T, m[10:20].T):
        text = pickle.dumps(view)
        assert len(text) < 4096
        found = pickle.loads(text)
        assert type(found) is lt.memmap
        assert np.array_equal(found, view)
        assert (found.mode, found.memory, found.cache) == ("r", m.memory, "drop")
        assert found._mmap is not m._mmap
    written = open_map(own, "w+")
    written[5] = 1
    assert pickle.loads(pickle.dumps(written)).mode == "r+"  # not emptied again
    assert written[5, 0] == 1


def test_a_pickle_of_a_file_that_was_cut_is_an_error_and_does_not_grow_it(own):
    text = pickle.dumps(open_map(own, "r+"))
    os.truncate(own, 1000)
    with pytest.raises(lt.FormatError, match="truncated"):
        pickle.loads(text)
    assert os.path.getsize(own) == 1000


def test_copies_are_plain_memory(own, numbers, tmp_path):
    m = open_map(own)
    for made in (
        copy.copy(m),
        copy.deepcopy(m),
        m.copy(),
        m.astype("<i8"),
        pickle.loads(pickle.dumps(m + 1)),
    ):
        assert getattr(made, "_mmap", None) is None
        assert getattr(made, "memory", None) is None
    assert np.array_equal(copy.deepcopy(m), numbers)
    assert pickle.loads(pickle.dumps(m.copy())).tobytes() == numbers.tobytes()
    np.save(tmp_path / "saved.npy", m)
    assert np.array_equal(np.load(tmp_path / "saved.npy"), numbers)
    assert m.sum(dtype=np.int64) == numbers.sum(dtype=np.int64)
    assert np.array_equal(m.max(axis=1), numbers.max(axis=1))
    assert [int(row[0]) for row in m[:5]] == [0, 128, 256, 384, 512]


def test_the_docstring_states_the_weaker_promise():
    text = " ".join(lt.memmap.__doc__.split())
    assert "truncated while it is mapped, touching the lost part kills the process" in text
    for name, value in vars(lt.memmap).items():
        if not name.startswith("_"):
            assert value.__doc__, name
