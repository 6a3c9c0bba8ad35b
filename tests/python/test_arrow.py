"""Columns of Arrow files and of Hugging Face's dataset folders, read in place."""

from __future__ import annotations

import json
import pickle

import lowtide as lt
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

ROWS = 1000
RNG = np.random.default_rng(0)
X = RNG.random((ROWS, 6), dtype="f4")
LENGTHS = RNG.integers(0, 20, ROWS)
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])
TOKENS = RNG.integers(0, 1000, STARTS[-1]).astype("i4")


def table():
    rows = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 6)
    return pa.table(
        {
            "label": pa.array(np.arange(ROWS)),
            "half": pa.array(np.arange(ROWS).astype("f2")),
            "x": rows,
            "tokens": pa.ListArray.from_arrays(pa.array(STARTS.astype("i4")), pa.array(TOKENS)),
            "long": pa.LargeListArray.from_arrays(pa.array(STARTS), pa.array(TOKENS.astype("f8"))),
            "when": pa.array(np.arange(ROWS), pa.timestamp("us")),
            "text": pa.array([str(i) for i in range(ROWS)]),
            "flag": pa.array([i % 2 == 0 for i in range(ROWS)]),
        }
    )


def write(path, data=None, sizes=(300, 1, 0, 450), make=pa.ipc.new_file, **options):
    """The table in record batches of these sizes; the last one has the rest."""
    data = table() if data is None else data
    with pa.OSFile(str(path), "wb") as sink:
        with make(sink, data.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            at = 0
            for size in [*sizes, data.num_rows - sum(sizes)]:
                batch = data.slice(at, size).combine_chunks().to_batches()
                for one in batch:
                    writer.write_batch(one)
                at += size
    return path


@pytest.fixture(params=[pa.ipc.new_file, pa.ipc.new_stream], ids=["file", "stream"])
def path(request, tmp_path):
    return write(tmp_path / "t.arrow", make=request.param)


def test_a_job_says_how_to_copy_a_column(tmp_path):
    path = tmp_path / "a.arrow"
    table = pa.table({"y": [1, 2, 3]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ValueError, match=r"a job cannot read an Arrow file: np\.save"):
        lt.shuffle(lt.open(path, key="y"), tmp_path / "out.npy")


def test_columns_of_equal_rows(path):
    for key, expected in (("label", np.arange(ROWS)), ("half", np.arange(ROWS).astype("f2"))):
        with lt.open(path, key=key, memory="2MiB") as a:
            assert a.format == "arrow"
            assert a.dtype == expected.dtype
            np.testing.assert_array_equal(a[:], expected)
            np.testing.assert_array_equal(a[[999, 0, 300, 301]], expected[[999, 0, 300, 301]])
    with lt.open(path, key="x", memory="2MiB") as a:
        assert a.shape == X.shape
        np.testing.assert_array_equal(a[:], X)
        np.testing.assert_array_equal(a[290:310, 2:4], X[290:310, 2:4])
        np.testing.assert_allclose(a.mean(axis=0), X.mean(axis=0), rtol=1e-5)
        again = pickle.loads(pickle.dumps(a))
        np.testing.assert_array_equal(again[::-7], X[::-7])
        for index, rows in a.batches(64, seed=1):
            np.testing.assert_array_equal(rows, X[index])
    assert lt.open(path, key="when").dtype == np.dtype("M8[us]")


def test_columns_of_lists_are_ragged(path):
    for key, values in (("tokens", TOKENS), ("long", TOKENS.astype("f8"))):
        r = lt.open(path, key=key, memory="2MiB")
        assert isinstance(r, lt.Ragged)
        assert len(r) == ROWS
        np.testing.assert_array_equal(r.offsets, STARTS)
        for i in (0, 299, 300, 301, 999):
            np.testing.assert_array_equal(r[i], values[STARTS[i] : STARTS[i + 1]])
        again = pickle.loads(pickle.dumps(r))
        np.testing.assert_array_equal(again[500], r[500])
        with lt.Loader({"t": r, "y": lt.open(path, key="label")}, 50, epochs=1) as loader:
            for batch in loader:
                found, starts = batch["t"]
                for row, i in enumerate(batch["y"]):
                    np.testing.assert_array_equal(
                        found[starts[row] : starts[row + 1]], values[STARTS[i] : STARTS[i + 1]]
                    )
    assert lt.open(path, key="tokens/values").shape == TOKENS.shape


def test_a_folder_of_datasets(tmp_path):
    half = table()
    for name, part in (("a", half.slice(0, 400)), ("b", half.slice(400))):
        write(tmp_path / f"{name}.arrow", part, sizes=(100,), make=pa.ipc.new_stream)
    state = {"_data_files": [{"filename": "a.arrow"}, {"filename": "b.arrow"}]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    (tmp_path / "dataset_info.json").write_text("{}")
    np.testing.assert_array_equal(lt.open(tmp_path, key="x")[:], X)
    r = lt.open(tmp_path, key="tokens")
    np.testing.assert_array_equal(r.offsets, STARTS)
    np.testing.assert_array_equal(r.values[:], TOKENS)
    both = [tmp_path / "b.arrow", tmp_path / "a.arrow"]
    np.testing.assert_array_equal(lt.open(both, key="label")[:3], [400, 401, 402])
    for wrong in ("../a.arrow", "/a.arrow", "", "..", 7):
        (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": wrong}]}))
        with pytest.raises(lt.FormatError, match="not the name of a file in this folder"):
            lt.open(tmp_path, key="x")
    for text in ("{", "[]", "{}", '{"_data_files": []}', "[" * 100_000):
        (tmp_path / "state.json").write_text(text)
        with pytest.raises(lt.FormatError, match=r"state\.json: expected"):
            lt.open(tmp_path, key="x")


def refused(path, **options):
    with pytest.raises(lt.FormatError) as caught:
        lt.open(path, **options)
    return str(caught.value)


def test_what_cannot_be_read_in_place(tmp_path, path):
    assert "expected a key, because the file contains 8 columns" in refused(path)
    assert "found key 'nope'" in refused(path, key="nope")
    assert "'text' has the type string" in refused(path, key="text")
    assert "'flag' has the type bool" in refused(path, key="flag")
    for codec in ("lz4", "zstd"):
        packed = write(tmp_path / "p.arrow", compression=codec)
        assert "is compressed" in refused(packed, key="x")
        assert "is compressed" in refused(packed, key="tokens")
    holes = pa.table({"a": pa.array([1, None, 3]), "b": pa.array([[1], None, [2]])})
    write(tmp_path / "n.arrow", holes, sizes=())
    assert "'a' has 1 missing values" in refused(tmp_path / "n.arrow", key="a")
    assert "missing values" in refused(tmp_path / "n.arrow", key="b")
    inside = pa.table({"b": pa.array([[1], [None, 2]])})
    write(tmp_path / "i.arrow", inside, sizes=())
    assert "missing values" in refused(tmp_path / "i.arrow")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"_data_files": ' + "[" * 100_000, '{"_data_files": [{"filename": ']
)
def test_a_list_of_files_that_is_a_bomb_or_cut_is_an_error(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(lt.FormatError, match=r"state\.json: expected the _data_files"):
        lt.open(tmp_path, key="x")


def test_one_column_needs_no_key(tmp_path):
    write(tmp_path / "one.arrow", pa.table({"a": pa.array(np.arange(10.0))}), sizes=(3,))
    np.testing.assert_array_equal(lt.open(tmp_path / "one.arrow")[:], np.arange(10.0))
    write(tmp_path / "none.arrow", pa.table({"a": pa.array(np.arange(0.0))}), sizes=())
    assert lt.open(tmp_path / "none.arrow").shape == (0,)


def test_slices_begin_where_they_begin(tmp_path):
    data = pa.table({"a": pa.array(np.arange(100)), "b": table()["tokens"].slice(0, 100)})
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as sink:
        with pa.ipc.new_file(sink, data.schema) as writer:
            for batch in data.slice(17, 60).to_batches():
                writer.write_batch(batch)
    np.testing.assert_array_equal(lt.open(tmp_path / "s.arrow", key="a")[:], np.arange(17, 77))
    r = lt.open(tmp_path / "s.arrow", key="b")
    np.testing.assert_array_equal(r[5], TOKENS[STARTS[22] : STARTS[23]])


def test_info_and_check(path):
    found = lt.info(path)
    assert found["format"] == "arrow"
    shapes = {array["key"]: array.get("shape") for array in found["arrays"]}
    assert shapes["x"] == X.shape
    assert shapes["tokens/values"] == TOKENS.shape
    assert shapes["text"] is None
    assert "text" in lt.check(path)["notes"][0]


def test_damaged_files(tmp_path):
    whole = write(tmp_path / "t.arrow").read_bytes()
    path = tmp_path / "d.arrow"
    for cut in (8, 9, 100, 1000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert "d.arrow" in refused(path, key="x"), cut
    rng = np.random.default_rng(1)
    for _ in range(200):
        noisy = bytearray(whole)
        for at in rng.integers(8, len(whole), 3):
            noisy[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(noisy)
        try:
            a = lt.open(path, key="label")
            assert a[:].shape == a.shape
        except (lt.FormatError, OSError):
            pass
