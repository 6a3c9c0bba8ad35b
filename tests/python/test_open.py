"""Opening: which files, what is in them, and what the object says of itself."""

from __future__ import annotations

import os
import pathlib

import lowtide as lt
import numpy as np
import pytest

DTYPES = [
    "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8",
    "<f16", "<c8", "<c16",
    ">i2", ">u4", ">i8", ">f4", ">f8", ">c16", "<M8[ns]", ">M8[D]", "<m8[25s]", "<M8",
    "|S1", "|S7", "<U5", ">U5", "|V3",
    [("x", "<f4"), ("y", ">i2")], [("p", "<f8", (2, 3)), ("n", [("a", "|S3"), ("b", "<u2")])],
    np.dtype({"names": ["a", "b"], "formats": ["<i2", "<f8"], "offsets": [0, 8], "itemsize": 24}),
    np.dtype([(("title", "name"), "<f4")]), [("é", "<f4")],
]  # fmt: skip


def filled(dtype, shape):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.random.default_rng(7).integers(0, 2 if dtype.kind == "b" else 100, count)
    if dtype.kind == "U":
        return np.array([f"t{i % 99}" for i in range(int(np.prod(shape)))], dtype).reshape(shape)
    return raw.astype(np.uint8).view(dtype).reshape(shape)


@pytest.mark.filterwarnings("ignore:Stored array in format")
@pytest.mark.parametrize("shape", [(40, 3), (40,), (), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_npy_of_any_type_is_what_np_load_gives(tmp_path, dtype, shape):
    path = tmp_path / "m.npy"
    np.save(path, filled(dtype, shape))
    expected = np.load(path)
    with lt.open(path) as a:
        assert a.dtype == expected.dtype
        assert (a.shape, a.ndim, a.size, a.nbytes) == (
            expected.shape, expected.ndim, expected.size, expected.nbytes,
        )  # fmt: skip
        got = a[...]
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        assert got.tobytes() == expected.tobytes() or got.dtype.names
        if shape:
            assert len(a) == len(expected)
            chunks = list(a.iter_chunks(7))
            assert sum(map(len, chunks)) == len(expected)
            for chunk in chunks:
                assert chunk.dtype == expected.dtype
            if chunks:
                np.testing.assert_array_equal(np.concatenate(chunks), expected)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_header(tmp_path, version):
    path = tmp_path / "m.npy"
    data = np.arange(12.0).reshape(3, 4)
    with path.open("wb") as file:
        np.lib.format.write_array(file, data, version)
    np.testing.assert_array_equal(lt.open(path)[:], data)


def test_a_raw_file_opens_as_np_memmap_does(tmp_path):
    path = tmp_path / "m.f32"
    data = np.arange(120, dtype="<f4")
    path.write_bytes(b"header--" + data.tobytes())
    with lt.open(str(path), dtype="float32", shape=(30, 4), offset=8, order="C") as a:
        assert (a.format, a.order, a.shape) == ("raw", "C", (30, 4))
        np.testing.assert_array_equal(a[:], data.reshape(30, 4))
    with lt.open(path, dtype=np.float32, offset=8) as a:
        np.testing.assert_array_equal(a[:], data)
    with lt.open(path, dtype="f4", shape=(30, 4), offset=8, order="F") as a:
        assert a.order == "F"
        np.testing.assert_array_equal(a[:], data.reshape((30, 4), order="F"))
        np.testing.assert_array_equal(a[3:9, 1:3], data.reshape((30, 4), order="F")[3:9, 1:3])
    with lt.open(path, dtype="f4", shape=np.int64(20), offset=8) as a:
        assert a.shape == (20,)


def test_a_sub_array_type_gives_its_axes_to_the_shape(tmp_path):
    path = tmp_path / "m.raw"
    np.arange(24, dtype="<i2").tofile(path)
    with lt.open(path, dtype=np.dtype(("<i2", (2, 3)))) as a:
        assert (a.shape, a.dtype) == ((4, 2, 3), np.dtype("<i2"))
        np.testing.assert_array_equal(a[1], np.arange(6, 12).reshape(2, 3))


def shards(folder: pathlib.Path, names):
    for at, name in enumerate(names):
        np.save(folder / name, np.full((at + 1, 2), at))
    return np.concatenate([np.full((at + 1, 2), at) for at in range(len(names))])


def test_files_are_joined_along_the_first_axis(tmp_path):
    data = shards(tmp_path, ["b.npy", "a.npy", "c.npy"])
    names = [tmp_path / "b.npy", str(tmp_path / "a.npy"), os.fsencode(tmp_path / "c.npy")]
    with lt.open(names) as a:
        np.testing.assert_array_equal(a[:], data)
        np.testing.assert_array_equal(a[::-2], data[::-2])
        assert [pathlib.Path(p).name for p in a.paths] == ["b.npy", "a.npy", "c.npy"]


def test_a_glob_sorts_by_bytes(tmp_path):
    data = shards(tmp_path, ["part_1.npy", "part_10.npy", "part_2.npy"])
    with lt.open(str(tmp_path / "part_*.npy")) as a:
        np.testing.assert_array_equal(a[:], data)


def test_a_path_that_exists_is_never_a_pattern(tmp_path):
    data = shards(tmp_path, ["m[1].npy"])
    np.save(tmp_path / "m1.npy", np.zeros((9, 9)))
    with lt.open(tmp_path / "m[1].npy") as a:
        np.testing.assert_array_equal(a[:], data)


def test_a_name_that_is_not_text(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\xfe.npy"
    with open(name, "wb") as file:
        np.save(file, np.arange(3))
    with lt.open(name) as a:
        np.testing.assert_array_equal(a[:], [0, 1, 2])
        assert os.fsencode(a.path) == name
    with pytest.raises(FileNotFoundError) as caught:
        lt.open(os.fsdecode(name) + "x")
    assert os.fsencode(caught.value.filename) == name + b"x"


def test_an_empty_shard_among_others_is_skipped(tmp_path):
    data = shards(tmp_path, ["a.npy", "c.npy"])
    (tmp_path / "b.npy").touch()
    with lt.open(str(tmp_path / "*.npy")) as a:
        np.testing.assert_array_equal(a[:], data)
        assert len(a.paths) == 2


def test_a_dtype_and_shape_that_agree_with_the_header(matrix):
    path, data = matrix
    with lt.open(path, dtype="<i4", shape=(1000, 37), order="C") as a:
        np.testing.assert_array_equal(a[-1], data[-1])


@pytest.mark.parametrize(
    ("memory", "size"),
    [(1 << 20, 1 << 20), ("1MiB", 1 << 20), ("1.5 MiB", 3 << 19), ("2MB", 2_000_000),
     (np.int32(1 << 21), 1 << 21)],
)  # fmt: skip
def test_memory_is_bytes_or_a_str(matrix, memory, size):
    with lt.open(matrix[0], memory=memory) as a:
        assert a.memory == a.stats()["memory"]["limit"] == size


def test_repr_says_what_was_chosen_and_why(matrix):
    with lt.open(matrix[0], memory="1MiB", engine="pread") as a:
        text = repr(a)
        now = a.stats()
    for part in ("(1000, 37)", "int32", "m.npy", "1 MiB", "engine=pread", now["engine_reason"]):
        assert part in text
    assert "closed" in repr(a)


def test_the_facts_outlive_close(matrix):
    a = lt.open(matrix[0])
    a.close()
    a.close()
    assert (a.shape, a.closed, len(a)) == ((1000, 37), True, 1000)
    for read in (
        lambda: a[0],
        lambda: a[:],
        lambda: a.take([0]),
        lambda: a.batches(3),
        lambda: iter(a),
    ):
        with pytest.raises(ValueError, match=r"m\.npy.* is closed"):
            read()


def test_len_of_an_array_without_axes(tmp_path):
    np.save(tmp_path / "m.npy", np.float64(3))
    with lt.open(tmp_path / "m.npy") as a:
        assert a[()] == 3
        for wrong in (len, iter):
            with pytest.raises(TypeError):
                wrong(a)


@pytest.mark.parametrize("mode", ["r", "readonly"])
def test_the_mode_of_np_memmap_for_reading_is_accepted(matrix, mode):
    with lt.open(matrix[0], mode=mode) as a:
        np.testing.assert_array_equal(a[:], matrix[1])


@pytest.mark.parametrize("mode", ["r+", "w+", "c", "rb", "w", ""])
def test_other_modes_lead_to_lt_memmap(matrix, mode):
    with pytest.raises(
        ValueError, match=r"lowtide\.open only reads.*lowtide\.memmap\(path"
    ) as caught:
        lt.open(matrix[0], mode=mode)
    assert repr(mode) in str(caught.value)
    with pytest.raises(TypeError, match="mode must be a str, not NoneType"):
        lt.open(matrix[0], mode=None)


def test_a_mode_in_place_of_the_dtype_is_refused(matrix):
    with pytest.raises(TypeError, match=r"'r' is a mode: lowtide\.open only reads"):
        lt.open(matrix[0], "r")


def test_dir_shows_only_what_is_public():
    assert dir(lt) == sorted([*lt.__all__, "jobs", "ray", "torch"])
    for name in dir(lt):
        assert name in ("ray", "torch") or hasattr(lt, name)


def test_the_version_is_a_str():
    assert lt.__version__.count(".") >= 2
