"""AnnData's files, read in place: sparse matrices, layers, columns of obs."""

from __future__ import annotations

import json
import pathlib
import pickle

import lowtide as lt
import numpy as np
import pytest
from csr_files import dense_of, matrix, rows_of

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "sparse"
ROWS, COLUMNS = 400, 70
LABELS = np.random.default_rng(3).integers(-1, 3, ROWS).astype("i1")
NAMES = ["B cell", "T cell", "Zelle ß"]


def add_sparse(
    file, key, parts, kind="csr_matrix", shape=(ROWS, COLUMNS), chunks=(100,), **options
):
    group = file.create_group(key)
    group.attrs["encoding-type"] = kind
    group.attrs["encoding-version"] = "0.1.0"
    if shape is not None:
        group.attrs["shape"] = shape
    for name, values in zip(("data", "indices", "indptr"), parts):
        chunked = {} if chunks is None else {"chunks": chunks, "maxshape": (None,)}
        group.create_dataset(name, data=values, **chunked, **options)
    return group


def add_obs(file):
    obs = file.create_group("obs")
    obs.create_dataset("depth", data=np.arange(ROWS) * 0.5)
    kind = obs.create_group("kind")
    kind.attrs["encoding-type"] = "categorical"
    kind.attrs["ordered"] = False
    kind.create_dataset("codes", data=LABELS, chunks=(64,))
    kind.create_dataset("categories", data=NAMES, dtype=h5py.string_dtype())


@pytest.fixture
def parts():
    return matrix(ROWS, COLUMNS)


@pytest.fixture(params=[None, (100,), (1 << 16,)], ids=["contiguous", "chunked", "one chunk"])
def path(request, tmp_path, parts):
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        add_sparse(file, "X", parts, chunks=request.param)
        add_sparse(file, "layers/counts", matrix(ROWS, COLUMNS, dtype="i4", seed=1))
        add_obs(file)
        file.create_dataset("obsm/pca", data=np.ones((ROWS, 4)))
    return path


def expect_rows(found, parts, index):
    data, indices, offsets = rows_of(parts, index)
    np.testing.assert_array_equal(found.data, data)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.indptr, offsets)


def test_a_file_of_anndata():
    dense = np.load(GOLDEN / "expected.npy")
    c = lt.open(GOLDEN / "cells.h5ad", memory="4MiB")
    np.testing.assert_array_equal(c[:].toarray(), dense)
    counts = lt.open(GOLDEN / "cells.h5ad", key="layers/counts")
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts[[30, 7]].toarray(), 2 * dense[[30, 7]])
    kind = lt.open(GOLDEN / "cells.h5ad", key="obs/kind")
    assert kind.categories.tolist() == ["B", "Tä", "NK"]
    np.testing.assert_array_equal(kind[:], np.arange(40) % 4 - 1)
    np.testing.assert_array_equal(
        lt.open(GOLDEN / "cells.h5ad", key="obs/age")[:], np.arange(40) * 0.5
    )
    assert "stored by columns" in refused(GOLDEN / "cells.h5ad", key="layers/columns")


def test_x_is_a_sparse_matrix(path, parts):
    c = lt.open(path, memory="4MiB")
    assert isinstance(c, lt.Csr)
    assert c.shape == (ROWS, COLUMNS)
    assert c.nnz == len(parts[0])
    index = np.random.default_rng(0).permutation(ROWS)
    expect_rows(c[index], parts, index)
    expect_rows(pickle.loads(pickle.dumps(c))[3:7], parts, range(3, 7))
    assert lt.open(path, shape=(ROWS, COLUMNS)).shape == c.shape
    assert lt.open(path, key="X").shape == c.shape


def test_layers_and_dense_arrays_have_keys(path):
    c = lt.open(path, key="layers/counts")
    expect_rows(c[:], matrix(ROWS, COLUMNS, dtype="i4", seed=1), range(ROWS))
    assert lt.open(path, key="obsm/pca").shape == (ROWS, 4)
    assert isinstance(lt.open(path, key="X/data"), lt.Array)


def test_columns_of_obs(path):
    depth = lt.open(path, key="obs/depth")
    np.testing.assert_array_equal(depth[:], np.arange(ROWS) * 0.5)
    assert depth.categories is None
    kind = lt.open(path, key="obs/kind")
    assert kind.dtype == np.int8
    np.testing.assert_array_equal(kind[:], LABELS)
    assert kind.categories.tolist() == NAMES
    again = pickle.loads(pickle.dumps(kind))
    assert again.categories.tolist() == NAMES
    np.testing.assert_array_equal(again[:], LABELS)


def test_a_loader_over_cells_and_their_labels(path, parts):
    source = {"x": lt.open(path, memory="4MiB"), "kind": lt.open(path, key="obs/kind")}
    weights = np.where(LABELS == 2, 1.0, 0.0)
    genes = [60, 3, 9]
    with lt.Loader(source, 32, dense=True, columns=genes, weights=weights) as loader:
        for batch in loader:
            np.testing.assert_array_equal(
                batch["x"], dense_of(parts, COLUMNS, batch.index, picked=genes)
            )
            assert set(batch["kind"]) == {2}


def test_info_lists_the_data_sets(path):
    keys = {array["key"] for array in lt.info(path)["arrays"]}
    assert {"X/data", "X/indices", "X/indptr", "obs/kind/codes", "obsm/pca"} <= keys
    lt.check(path)


def write(path, fill):
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        fill(file)
    return path


def refused(path, **options):
    with pytest.raises(lt.FormatError) as caught:
        lt.open(path, **options)
    return str(caught.value)


def test_csc_says_how_to_convert(tmp_path, parts):
    path = write(tmp_path / "c.h5ad", lambda file: add_sparse(file, "X", parts, "csc_matrix"))
    text = refused(path)
    assert "'X' is stored by columns (CSC)" in text
    assert "tocsr()" in text


def test_files_without_x_or_with_a_dense_one(tmp_path):
    path = write(tmp_path / "none.h5ad", add_obs)
    assert "found key 'X'" in refused(path)
    path = write(tmp_path / "dense.h5ad", lambda file: file.create_dataset("X", data=np.eye(5)))
    dense = lt.open(path)
    assert isinstance(dense, lt.Array)
    np.testing.assert_array_equal(dense[:], np.eye(5))


def test_filters_are_named(tmp_path, parts):
    path = write(
        tmp_path / "gz.h5ad", lambda file: add_sparse(file, "X", parts, compression="gzip")
    )
    text = refused(path)
    assert "gzip" in text and "X/data" in text


def test_shapes_that_cannot_be(tmp_path, parts):
    path = write(tmp_path / "a.h5ad", lambda file: add_sparse(file, "X", parts, shape=None))
    assert "expected the attribute shape with two integers, each at least 0, found None" in refused(
        path
    )
    path = write(tmp_path / "b.h5ad", lambda file: add_sparse(file, "X", parts, shape=(ROWS,)))
    assert "expected the attribute shape" in refused(path)
    path = write(tmp_path / "n.h5ad", lambda file: add_sparse(file, "X", parts, shape=(-5, 9)))
    assert "n.h5ad: 'X': expected the attribute shape" in refused(path)
    path = write(tmp_path / "c.h5ad", lambda file: add_sparse(file, "X", parts, shape=(9, 9)))
    with pytest.raises(ValueError, match="shape has 9 rows, but indptr has 401 entries"):
        lt.open(path)
    path = write(tmp_path / "d.h5ad", lambda file: add_sparse(file, "X", parts))
    assert "but the matrix has (400, 70)" in refused(path, shape=(400, 71))
    with pytest.raises(ValueError, match="dtype is for files without a header"):
        lt.open(path, dtype="float32", key="X")


def test_links_out_of_the_file_are_refused(tmp_path, parts):
    write(tmp_path / "there.h5ad", lambda file: add_sparse(file, "X", parts))

    def link(file):
        file["X"] = h5py.ExternalLink("there.h5ad", "X")

    assert "is a link to" in refused(write(tmp_path / "a.h5ad", link))

    def link_part(file):
        group = add_sparse(file, "X", parts)
        del group["data"]
        group["data"] = h5py.ExternalLink("there.h5ad", "X/data")

    assert "is a link to" in refused(write(tmp_path / "b.h5ad", link_part))


def test_a_matrix_whose_values_are_elsewhere_is_refused(tmp_path, parts):
    def virtual(file):
        group = add_sparse(file, "X", parts)
        del group["data"]
        layout = h5py.VirtualLayout(parts[0].shape, parts[0].dtype)
        layout[...] = h5py.VirtualSource("there.h5ad", "X/data", parts[0].shape)
        group.create_virtual_dataset("data", layout)

    assert "'X/data': this is a virtual data set" in refused(write(tmp_path / "v.h5ad", virtual))

    def external(file):
        group = add_sparse(file, "X", parts)
        del group["indices"]
        where = [("raw.bin", 0, parts[1].nbytes)]
        group.create_dataset("indices", parts[1].shape, parts[1].dtype, external=where)

    assert "'X/indices': the data is in external files" in refused(
        write(tmp_path / "e.h5ad", external)
    )


@pytest.mark.parametrize("wrong", ["decreases", "short", "negative", "index"])
def test_matrices_that_contradict_themselves(tmp_path, parts, wrong):
    data, indices, indptr = (np.array(part) for part in parts)
    if wrong == "decreases":
        indptr[5] = indptr[4] - 1 if indptr[4] else 10**6
    elif wrong == "short":
        indptr[-1] = len(data) + 1
    elif wrong == "negative":
        indptr[3] = -1
    else:
        indices[17] = COLUMNS
    path = write(tmp_path / "x.h5ad", lambda file: add_sparse(file, "X", (data, indices, indptr)))
    with pytest.raises(lt.FormatError, match=r"x\.h5ad.*(entry|has index 70)"):
        lt.open(path)[:]
    with pytest.raises(lt.FormatError, match=r"x\.h5ad.*(entry|has index 70)"):
        lt.check(path)


def write_zarr(folder, parts, version, shape=(ROWS, COLUMNS), kind="csr_matrix"):
    """A group as AnnData writes it into zarr, without compression."""
    group = folder / "X"
    group.mkdir(parents=True)
    attributes = {"encoding-type": kind, "encoding-version": "0.1.0", "shape": shape}
    if version == 2:
        (folder / ".zgroup").write_text('{"zarr_format": 2}')
        (group / ".zgroup").write_text('{"zarr_format": 2}')
        (group / ".zattrs").write_text(json.dumps(attributes))
    else:
        node = {"zarr_format": 3, "node_type": "group", "attributes": {}}
        (folder / "zarr.json").write_text(json.dumps(node))
        (group / "zarr.json").write_text(json.dumps({**node, "attributes": attributes}))
    for name, values in zip(("data", "indices", "indptr"), parts):
        values = np.ascontiguousarray(values)
        array = group / name
        array.mkdir()
        if version == 2:
            told = {"zarr_format": 2, "shape": values.shape, "chunks": values.shape, "order": "C",
                    "dtype": values.dtype.str, "compressor": None, "filters": None,
                    "fill_value": 0}  # fmt: skip
            (array / ".zarray").write_text(json.dumps(told))
            values.tofile(array / "0")
        else:
            told = {"zarr_format": 3, "node_type": "array", "shape": values.shape,
                    "data_type": values.dtype.name, "fill_value": 0,
                    "chunk_grid": {"name": "regular",
                                   "configuration": {"chunk_shape": values.shape}},
                    "chunk_key_encoding": {"name": "default"},
                    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                    "attributes": {}}  # fmt: skip
            (array / "zarr.json").write_text(json.dumps(told))
            (array / "c").mkdir()
            values.tofile(array / "c" / "0")
    return folder


@pytest.mark.parametrize("version", [2, 3])
def test_a_matrix_in_zarr(tmp_path, parts, version):
    folder = write_zarr(tmp_path / "cells.zarr", parts, version)
    for c in (lt.open(folder, memory="4MiB"), lt.open(folder, key="X")):
        assert c.shape == (ROWS, COLUMNS)
        index = [399, 0, 17]
        expect_rows(c[index], parts, index)
    assert "stored by columns" in refused(
        write_zarr(tmp_path / "csc.zarr", parts, version, kind="csc_matrix")
    )
    assert "expected the attribute shape" in refused(
        write_zarr(tmp_path / "shape.zarr", parts, version, shape="many")
    )
