"""Folders of BioNeMo-SCDL, read in place."""

from __future__ import annotations

import json
import pathlib
import struct

import lowtide as lt
import numpy as np
import pytest
from command import lowtide as run_command
from csr_files import matrix, rows_of

TYPES = ["uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
FILES = ["data", "col_ptr", "row_ptr"]
ROWS, COLUMNS = 200, 300


def header(arrays):
    text = b"SCDL\x00\x01\x00\x01" + struct.pack(">II", 1, len(arrays))
    for name, length, code in arrays:
        text += struct.pack(">I", len(name)) + name.encode() + struct.pack(">QIB", length, code, 0)
    return text + struct.pack(">I", 0)


def write(folder, parts, genes=COLUMNS, types=("float32", "uint16", "uint32")):
    """A folder as SCDL 0.1 writes it; its .npy files are raw bytes."""
    folder.mkdir(exist_ok=True)
    arrays = []
    for name, file, values, dtype in zip(
        ("DATA", "COLPTR", "ROWPTR"), ("data", "col_ptr", "row_ptr"), parts, types
    ):
        np.asarray(values).astype(dtype).tofile(folder / f"{file}.npy")
        arrays.append((name, len(values), TYPES.index(dtype) + 1))
    (folder / "header.sch").write_bytes(header(arrays))
    (folder / "metadata.json").write_text("{}")
    if genes:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        (folder / "var_features").mkdir(exist_ok=True)
        table = pyarrow.table({"name": [f"g{i}" for i in range(genes)]})
        parquet.write_table(table, folder / "var_features" / "dataframe_0.parquet")
    return folder


@pytest.fixture
def parts():
    return matrix(ROWS, COLUMNS)


@pytest.mark.parametrize(
    "types", [("float32", "uint16", "uint32"), ("uint8", "uint32", "uint64")], ids=str
)
def test_rows(tmp_path, parts, types):
    c = lt.open(write(tmp_path / "s", parts, types=types), memory="4MiB")
    assert isinstance(c, lt.Csr)
    assert c.shape == (ROWS, COLUMNS)
    assert c.dtype == types[0]
    index = [5, 199, 0, 5]
    data, indices, offsets = rows_of(parts, index)
    found = c[index]
    np.testing.assert_array_equal(found.data, data)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.indptr, offsets)


def test_a_folder_of_bionemo():
    pytest.importorskip("pyarrow")
    golden = pathlib.Path(__file__).parents[1] / "golden" / "sparse"
    dense = np.load(golden / "expected.npy")
    c = lt.open(golden / "scdl")
    assert c.shape == dense.shape
    np.testing.assert_array_equal(c[::-1].toarray(), dense[::-1])


def test_the_number_of_genes(tmp_path, parts):
    pytest.importorskip("pyarrow")
    folder = write(tmp_path / "s", parts, genes=0)
    with pytest.raises(lt.FormatError, match=r"expected var_features .* give shape="):
        lt.open(folder)
    assert lt.open(folder, shape=(ROWS, COLUMNS)).shape == (ROWS, COLUMNS)
    with pytest.raises(lt.FormatError, match="but the matrix has"):
        lt.open(folder, shape=(ROWS + 1, COLUMNS))
    with pytest.raises(ValueError, match=r"\(rows, columns\)"):
        lt.open(folder, shape=ROWS)
    with pytest.raises(ValueError, match="leave the key out"):
        lt.open(folder, key="X")


def refused(folder):
    with pytest.raises(lt.FormatError) as caught:
        lt.open(folder, shape=(ROWS, COLUMNS))
    return str(caught.value)


def test_headers_that_lie(tmp_path, parts):
    folder = write(tmp_path / "s", parts)
    path = folder / "header.sch"
    whole = path.read_bytes()
    for cut in range(4, len(whole) - 4):
        path.write_bytes(whole[:cut])
        assert "header.sch: " in refused(folder), cut
    path.write_bytes(header([("DATA", 5, 6), ("COLPTR", 5, 2), ("ROWPTR", ROWS + 1, 3)]))
    assert f"found {(folder / 'data.npy').stat().st_size}" in refused(folder)
    path.write_bytes(header([("DATA", 5, 99), ("COLPTR", 5, 2), ("ROWPTR", 1, 3)]))
    assert "type 99 is unknown" in refused(folder)
    path.write_bytes(header([("DATA", len(parts[0]), 6)]))
    assert "expected COLPTR among the arrays" in refused(folder)
    path.write_bytes(whole.replace(b"DATA", b"DA\xff\xfe"))
    assert "expected DATA" in refused(folder)
    path.write_bytes(whole[:7] + b"\x02" + whole[8:])
    assert "byte order 2" in refused(folder)
    path.write_bytes(whole[:16] + b"\xff\xff\xff\xff" + whole[20:])
    assert "extends beyond its end" in refused(folder)
    path.write_bytes(b"SCDL" + bytes(2 << 20))
    assert "expected at most 1 MiB" in refused(folder)
    (folder / "data.npy").unlink()
    path.write_bytes(whole)
    with pytest.raises(FileNotFoundError, match=r"data\.npy"):
        lt.open(folder)


def test_info_and_check(tmp_path, parts):
    folder = write(tmp_path / "s", parts)
    found = lt.info(folder)
    assert found["format"] == "scdl"
    assert found["kind"] == "sparse"
    assert found["shape"] == (ROWS, COLUMNS)
    assert found["nnz"] == len(parts[0])
    assert found["shards"] == 3
    assert lt.check(folder)["nnz"] == found["nnz"]
    indices = parts[1].copy()
    indices[40] = COLUMNS
    write(folder, (parts[0], indices, parts[2]))
    with pytest.raises(lt.FormatError, match="has index 300"):
        lt.check(folder)


def test_the_command_tells_what_the_header_tells(tmp_path, parts):
    folder = write(tmp_path / "s", parts)
    text = run_command("info", folder).stdout
    for word in ("sparse", "scdl", "float32", f"{ROWS} rows", f"{len(parts[0]):,}", "Parquet"):
        assert word in text
    found = json.loads(run_command("info", "--json", folder).stdout)
    assert (found["kind"], found["format"], found["dtype"]) == ("sparse", "scdl", "float32")
    assert (found["rows"], found["nnz"], found["shards"]) == (ROWS, len(parts[0]), 3)
    assert found["bytes"] == sum((folder / f"{name}.npy").stat().st_size for name in FILES)
    checked = run_command("check", folder)
    assert checked.returncode == 1 and "found a sparse matrix" in checked.stderr
    (folder / "header.sch").write_bytes((folder / "header.sch").read_bytes()[:20])
    broken = run_command("info", folder)
    assert broken.returncode == 1 and "SCDL header: " in broken.stderr
