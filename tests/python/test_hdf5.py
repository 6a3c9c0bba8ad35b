"""HDF5 data sets, read in place, against what h5py reads."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import lowtide as lt
import numpy as np
import pytest
from command import lowtide as run_command

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

ROWS, COLUMNS = 1003, 37
DATA = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
CHUNKS = [None, (100, COLUMNS), (1, COLUMNS), (64, 10), (64, 1), (2000, 40)]


def write(path, chunks, data=DATA, **options):
    if chunks is not None:
        options["maxshape"] = (None,) * data.ndim  # lets chunks exceed the shape
    with h5py.File(path, "w") as file:
        file.create_dataset("other", data=np.arange(5))
        file.create_dataset("g/m", data=data, chunks=chunks, **options)
    return path


@pytest.fixture(params=CHUNKS, ids=str)
def path(request, tmp_path):
    return write(tmp_path / "m.h5", request.param)


INDICES = [
    5, -1, slice(10, 200), slice(None, None, -7), (slice(None), slice(10, 20)), (3, 4),
    (slice(5, 900, 3), 36), [7, 7, 2, 1002], DATA[:, 0] > 5000, (Ellipsis, slice(0, 37, 5)),
    ([1, 900], [3, 36]), None,
]  # fmt: skip


def test_indexing_gives_what_h5py_gives(path):
    with lt.open(path, key="g/m", memory="4MiB") as a:
        assert a.format == "hdf5" and a.shape == DATA.shape and a.dtype == DATA.dtype
        assert a.order == "C"
        for index in INDICES:
            np.testing.assert_array_equal(a[index], DATA[index], err_msg=repr(index))
        np.testing.assert_array_equal(a.take([5, 1, 5]), DATA[[5, 1, 5]])
        np.testing.assert_array_equal(np.concatenate(list(a.iter_chunks(100))), DATA)
        np.testing.assert_array_equal(list(a)[17], DATA[17])


def test_reductions_and_copies(path, tmp_path):
    with lt.open(path, key="g/m", memory="4MiB") as a:
        np.testing.assert_allclose(a.mean(axis=0), DATA.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(a.sum(axis=1), DATA.sum(axis=1), rtol=1e-5)
        assert a.max() == DATA.max()
        np.testing.assert_array_equal(a > 100, DATA > 100)
        np.save(tmp_path / "copy.npy", a)
    np.testing.assert_array_equal(np.load(tmp_path / "copy.npy"), DATA)


@pytest.mark.parametrize("memory", ["1MiB", "64MiB"])
def test_batches_have_every_row_once(path, memory):
    with lt.open(path, key="g/m", memory=memory) as a:
        seen = []
        for idx, rows in a.batches(100, seed=1):
            np.testing.assert_array_equal(rows, DATA[idx])
            seen.append(idx.copy())
        assert sorted(np.concatenate(seen)) == list(range(ROWS))


def test_it_is_a_column_of_a_loader(path, tmp_path):
    np.save(tmp_path / "y.npy", np.arange(ROWS))
    a, y = lt.open(path, key="g/m", memory="8MiB"), lt.open(tmp_path / "y.npy")
    loader = lt.Loader({"x": a, "y": y}, batch_size=64, seed=0, epochs=1, drop_last=False)
    rows = 0
    for batch in loader:
        np.testing.assert_array_equal(batch["x"], DATA[batch["y"]])
        rows += len(batch["y"])
    assert rows == ROWS
    assert lt.Loader(a, batch_size=8).state_dict()


def test_an_array_pickles_by_reference(path):
    with lt.open(path, key="g/m", memory="4MiB") as a:
        with pickle.loads(pickle.dumps(a)) as again:
            np.testing.assert_array_equal(again[3], DATA[3])
        with a.reopen(memory="1MiB") as small:
            assert small.memory == 1 << 20


def test_rows_that_follow_each_other_are_few_reads_in_a_grid_too(tmp_path):
    path = write(tmp_path / "m.h5", (64, 10))
    with lt.open(path, key="g/m", memory="4MiB", engine="pread") as a:
        assert "a row is in 4 places" in a.stats()["layout"]
        np.testing.assert_array_equal(a[...], DATA)
        now = a.stats()
    assert now["reads"] <= 2 * 16 * 4  # 16 x 4 chunks, and 1003 x 4 runs
    assert now["bytes_asked"] == DATA.nbytes


def test_chunks_that_were_never_written_are_the_fill_value(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        m = file.create_dataset("m", (100, 10), "i2", chunks=(7, 3), fillvalue=-3)
        m[10:30, 2:8] = 5
        pair = np.dtype([("x", "<i2"), ("y", "<f8")])
        file.create_dataset("pair", (9,), pair, chunks=(2,), fillvalue=np.array((1, 2.5), pair))
        file.create_dataset("contiguous", (9,), ">f4", fillvalue=1.5)
        file.create_dataset("zeros", (100, 10), "i2", chunks=(7, 3))
    with h5py.File(tmp_path / "m.h5") as file:
        for key in file:
            with lt.open(tmp_path / "m.h5", key=key) as a:
                np.testing.assert_array_equal(a[...], file[key][...])
                rows = [row for _, batch in a.batches(4, order="sequential") for row in batch]
                np.testing.assert_array_equal(rows, file[key][...])


KINDS = {
    "big": np.arange(60, dtype=">f8").reshape(10, 6),
    "bool": np.arange(60).reshape(10, 6) % 3 == 0,
    "half": np.arange(60, dtype="f2").reshape(10, 6),
    "complex": np.arange(60, dtype="c8").reshape(10, 6),
    "text": np.array([b"a", b"bcd", b""], "S5"),
    "pair": np.array([(1, 2.5, [1, 2])] * 3, [("x", "<i2"), ("y", ">f8"), ("z", "u1", 2)]),
    "padded": np.ones(5, np.dtype([("a", "u1"), ("b", "<f8")], align=True)),
    "cube": np.arange(4 * 5 * 6).reshape(4, 5, 6),
    "scalar": np.array(7.5),
    "empty": np.zeros((0, 4), "f4"),
    "opaque": np.array([b"abcd", b"efgh"], "V4"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "chunked"),
    [(key, False) for key in KINDS] + [(key, True) for key in KINDS if KINDS[key].size > 1],
)
def test_types_arrive_as_h5py_reports_them(tmp_path, key, chunked):
    data = KINDS[key]
    chunks = tuple(max(1, extent // 2) for extent in data.shape) if chunked else None
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.create_dataset(key, data=data, chunks=chunks)
    with h5py.File(tmp_path / "m.h5") as file, lt.open(tmp_path / "m.h5") as a:  # one needs no key
        assert a.dtype == file[key].dtype
        assert a.shape == file[key].shape
        np.testing.assert_array_equal(a[...], file[key][()])


def test_an_enum_is_its_numbers_and_an_array_type_more_axes(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        colour = h5py.enum_dtype({"red": 0, "blue": 7}, basetype="u1")
        file.create_dataset("colour", data=np.array([0, 7, 7], "u1"), dtype=colour)
        sub = file.create_dataset("sub", (5,), np.dtype(("<i4", (2, 3))), chunks=(2,))
        sub[...] = np.arange(30).reshape(5, 2, 3)
    np.testing.assert_array_equal(lt.open(tmp_path / "m.h5", key="colour")[...], [0, 7, 7])
    a = lt.open(tmp_path / "m.h5", key="sub")
    np.testing.assert_array_equal(a[...], np.arange(30).reshape(5, 2, 3))


@pytest.mark.parametrize("block", [512, 4096, 1 << 20])
@pytest.mark.parametrize("chunks", [None, (100, COLUMNS)])
def test_a_user_block_is_counted(tmp_path, block, chunks):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w", userblock_size=block) as file:
        file.create_dataset("m", data=DATA, chunks=chunks)
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file" + b"x" * (block - 19))
    np.testing.assert_array_equal(lt.open(path)[...], DATA)


def test_a_compact_data_set_is_held(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((5, 3))
        made = h5py.h5d.create(file.id, b"m", h5py.h5t.py_create(np.dtype(">i4")), space, plist)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(15, dtype=">i4").reshape(5, 3))
    a = lt.open(tmp_path / "m.h5")
    np.testing.assert_array_equal(a[...], np.arange(15).reshape(5, 3))
    np.testing.assert_array_equal(a[[4, 0]][:, 1:], np.arange(15).reshape(5, 3)[[4, 0]][:, 1:])


def test_chunks_left_behind_by_resize_are_ignored(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        m = file.create_dataset("m", data=np.arange(100), chunks=(7,), maxshape=(None,))
        m.resize((23,))
    np.testing.assert_array_equal(lt.open(tmp_path / "m.h5")[...], np.arange(23))


def test_keys_are_found_and_listed(tmp_path):
    path = write(tmp_path / "m.h5", None)
    with h5py.File(path, "a") as file:
        file["soft"] = h5py.SoftLink("/g/m")
        file["dangling"] = h5py.SoftLink("/nothing")
        file["out"] = h5py.ExternalLink("else.h5", "/m")
        file["through"] = h5py.SoftLink("/out")
        file["named"] = np.dtype("f4")
    np.testing.assert_array_equal(lt.open(path, key="soft")[5], DATA[5])
    np.testing.assert_array_equal(lt.open(path, key="/g/m")[5], DATA[5])
    for key, text in {
        None: r"contains 2 data sets: 'g/m', 'other'",
        "none": r"expected one of the data sets 'g/m', 'other', found key 'none'",
        "": r"expected one of the data sets 'g/m', 'other', found key ''",
        "./other": r"expected one of the data sets 'g/m', 'other', found key './other'",
        "g": r"'g' is a group; the data sets in it are 'g/m'",
        "dangling": "a soft link to nothing",
        "out": r"a link to '/m' in the file 'else.h5'",
        "out/x": r"a link to '/m' in the file 'else.h5'",
        "through": "soft link|another file",
        "named": "a named type",
        "g/m/x": "expected one of the data sets",
    }.items():
        with pytest.raises(lt.FormatError, match=text):
            lt.open(path, key=key)


def test_a_soft_link_to_another_file_is_not_followed(tmp_path):
    write(tmp_path / "else.h5", None)
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["out"] = h5py.ExternalLink("else.h5", "/g/m")
        file["through"] = h5py.SoftLink("/out")
    with pytest.raises(lt.FormatError, match="in another file"):
        lt.open(tmp_path / "m.h5", key="through")


def test_without_a_key_an_h5ad_is_its_x(tmp_path):
    with h5py.File(tmp_path / "m.h5ad", "w") as file:
        file.attrs["encoding-type"] = "anndata"
        file["X"] = DATA
        file["layers/counts"] = DATA + 1
    np.testing.assert_array_equal(lt.open(tmp_path / "m.h5ad")[...], DATA)
    np.testing.assert_array_equal(lt.open(tmp_path / "m.h5ad", key="layers/counts")[...], DATA + 1)


FILTERS = {
    "gzip": {"compression": "gzip"},
    "lzf": {"compression": "lzf"},
    "shuffle": {"shuffle": True},
    "fletcher32": {"fletcher32": True},
    "shuffle, gzip": {"compression": "gzip", "shuffle": True},
    "scaleoffset": {"scaleoffset": 2},
}


@pytest.mark.parametrize("words", FILTERS)
def test_a_filter_is_named_with_what_to_do(tmp_path, words):
    path = write(tmp_path / "m.h5", (100, COLUMNS), **FILTERS[words])
    with pytest.raises(lt.FormatError, match=f"found {words}: make a copy with h5repack -f NONE"):
        lt.open(path, key="g/m")
    found = {one["key"]: one for one in lt.info(path)["arrays"]}
    assert words in found["g/m"]["error"]
    assert found["other"]["shape"] == (5,)
    assert any(words in note for note in lt.check(path)["notes"])


def test_data_that_is_elsewhere_is_refused(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        layout = h5py.VirtualLayout((10,), "i4")
        layout[...] = h5py.VirtualSource("else.h5", "m", (10,))
        file.create_virtual_dataset("virtual", layout)
        (tmp_path / "raw.bin").write_bytes(bytes(40))
        file.create_dataset("external", (10,), "i4", external=[("raw.bin", 0, 40)])
        file.create_dataset("strings", data=["a", "bc"])
        file.create_dataset("null", data=h5py.Empty("f4"))
        file.create_dataset("vlen", (2,), h5py.vlen_dtype("i4"))
        spaces = h5py.h5t.C_S1.copy()
        spaces.set_size(4)
        spaces.set_strpad(h5py.h5t.STR_SPACEPAD)
        h5py.h5d.create(file.id, b"spaces", spaces, h5py.h5s.create_simple((2,)))
        odd = h5py.h5t.STD_I32LE.copy()
        odd.set_precision(20)
        h5py.h5d.create(file.id, b"odd", odd, h5py.h5s.create_simple((2,)))
    for key, text in {
        "virtual": "virtual data set",
        "external": "external files, such as b?'raw.bin'",
        "strings": "variable length",
        "null": "without a shape",
        "vlen": "variable length",
        "spaces": "differently from NumPy",
        "odd": "differently from NumPy",
    }.items():
        with pytest.raises(lt.FormatError, match=text):
            lt.open(tmp_path / "m.h5", key=key)


def test_arguments_must_agree_with_the_file(path):
    assert lt.open(path, dtype="f4", key="g/m", shape=(ROWS, COLUMNS)).shape == DATA.shape
    for wrong in [{"dtype": "f8"}, {"shape": (3, 4)}, {"offset": 0}, {"order": "F"}]:
        with pytest.raises(lt.FormatError, match="was given"):
            lt.open(path, key="g/m", **wrong)
    assert lt.open(path, dtype="u1").shape == (os.path.getsize(path),)  # raw bytes
    with pytest.raises(ValueError, match="cache_dir"):
        lt.open(path, key="g/m", cache_dir=os.path.dirname(path))
    with pytest.raises(lt.FormatError, match="are not joined"):
        lt.open([path, path], key="g/m")


def test_a_table_that_does_not_fit_is_refused_with_its_size(tmp_path):
    path = write(tmp_path / "m.h5", (1, 1))
    with pytest.raises(ValueError, match=r"the table of 37111 chunks needs 290 KiB"):
        lt.open(path, key="g/m", memory="256KiB")
    with lt.open(path, key="g/m", memory="4MiB") as a:
        assert a.stats()["memory"]["claims"]["the table of 37111 chunks"] >= 37111 * 8
    with h5py.File(tmp_path / "huge.h5", "w") as file:
        file.create_dataset("m", (1 << 40,), "u1", chunks=(1,))
    with pytest.raises(ValueError, match="1099511627776 chunks"):
        lt.open(tmp_path / "huge.h5")


def test_a_file_that_changes_afterwards_is_an_error(path, tmp_path):
    with lt.open(path, key="g/m", memory="1MiB", engine="pread") as a:
        assert a[0, 0] == 0
        write(tmp_path / "new.h5", None, DATA + 1)
        os.replace(tmp_path / "new.h5", path)
        with a.reopen() as again:
            assert again[0, 0] == 1
        assert a[0, 0] == 0  # the old file is still open


def test_a_file_that_changes_while_it_is_opened_is_an_error(path, monkeypatch):
    from lowtide._data import hdf5

    look = hdf5._find

    def find(file, name, key):
        found = look(file, name, key)
        os.utime(path, ns=(1, 1))
        return found

    monkeypatch.setattr(hdf5, "_find", find)
    with pytest.raises(OSError, match="replaced or rewritten"):
        lt.open(path, key="g/m")


def test_a_truncated_file_is_a_format_error(path):
    os.truncate(path, os.path.getsize(path) // 2)
    with pytest.raises(lt.FormatError, match="h5py cannot read"):
        lt.open(path, key="g/m")


def test_info_and_check(path):
    found = lt.info(path)
    assert found["format"] == "hdf5" and found["kind"] == "array" and found["shape"] is None
    assert found["bytes"] == os.path.getsize(path) and len(found["files"]) == 1
    arrays = {one["key"]: one for one in found["arrays"]}
    about = {"dtype": "float32", "shape": DATA.shape, "order": "C", "bytes": DATA.nbytes}
    assert arrays["g/m"] == {"key": "g/m", **about}
    assert lt.check(path, nan=True) == {**lt.info(path), "notes": [], "nan": 0, "infinite": 0}


def test_check_finds_a_boolean_that_is_none(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("ok", data=np.array([np.nan, np.inf, 1]))
        file.create_dataset("m", data=np.ones(1000, bool))
        at = file["m"].id.get_offset()
    assert lt.check(path, nan=True)["nan"] == 1
    with open(path, "r+b") as file:
        file.seek(at + 17)
        file.write(b"\x07")
    with pytest.raises(lt.FormatError, match=r"'m': element 17: expected 0 or 1 .* found 7"):
        lt.check(path)


def test_the_command_says_what_reads_it(path):
    result = run_command("info", path)
    assert result.returncode == 1
    assert "an HDF5 file: in Python, lowtide.open reads" in result.stderr


def test_a_job_says_that_it_needs_a_copy(path, tmp_path):
    with pytest.raises(ValueError, match=r"np\.save"):
        lt.shuffle(lt.open(path, key="g/m"), tmp_path / "o.npy")


def test_without_h5py_the_message_says_how_to_get_it(path):
    code = (
        "import sys; sys.modules['h5py'] = None\n"
        "import lowtide as lt\n"
        f"try: lt.open({str(path)!r}, key='g/m')\n"
        "except lt.FormatError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install h5py" in run.stdout
