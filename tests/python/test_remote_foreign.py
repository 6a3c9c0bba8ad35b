"""Files of other tools on servers: zarr, HDF5, AnnData, Arrow and SCDL give what they give locally.

h5py and pyarrow look at the objects through requests of ours; the engine reads the data.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from csr_files import matrix, open_csr, rows_of, write_csr
from lowtide import _core
from range_server import SECRET, RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)
h5py = pytest.importorskip("h5py", reason="h5py is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import test_arrow  # noqa: E402
import test_h5ad  # noqa: E402
import test_scdl  # noqa: E402
import test_zarr  # noqa: E402

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
ZARR_LINES = [(name, key) for name, key, *_ in test_zarr.READ]
ARRAY_FILES = sorted(path.name for path in (GOLDEN / "arrays").iterdir() if path.suffix != ".txt")
ROWS, COLUMNS = 503, 37
DATA = np.arange(ROWS * COLUMNS, dtype="<f4").reshape(ROWS, COLUMNS)


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("plain", data=DATA)
        file.create_dataset("chunked", data=DATA, chunks=(64, 16))
        file.create_dataset("compact", data=np.arange(9), track_times=False)
        file.create_dataset("absent", (99, 3), "i2", chunks=(10, 3), fillvalue=7)


def write_h5ad(path):
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        test_h5ad.add_sparse(file, "X", matrix(test_h5ad.ROWS, test_h5ad.COLUMNS))
        test_h5ad.add_obs(file)


def write_dataset(folder):
    folder.mkdir()
    for number in range(2):
        test_arrow.write(folder / f"data-{number}.arrow", make=pa.ipc.new_stream)
    names = [{"filename": f"data-{number}.arrow"} for number in range(2)]
    (folder / "state.json").write_text(json.dumps({"_data_files": names}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("foreign")
    for path in (GOLDEN / "zarr").iterdir():
        if path.is_dir():
            shutil.copytree(path, made / path.name)
    for path in (GOLDEN / "arrays").iterdir():
        shutil.copy(path, made / path.name)
    shutil.copytree(GOLDEN / "sparse", made / "sparse")
    write_hdf5(made / "m.h5")
    write_h5ad(made / "cells.h5ad")
    test_zarr.write(made / "grid.zarr", (50, 37))
    test_zarr.write(made / "shards.zarr", (25, 10), shards=(100, 40))
    test_arrow.write(made / "t.arrow")
    test_arrow.write(made / "s.arrow", make=pa.ipc.new_stream)
    write_dataset(made / "dataset")
    test_scdl.write(made / "scdl", matrix(test_scdl.ROWS, test_scdl.COLUMNS))
    (made / "parts").mkdir()
    write_csr(made / "parts", *matrix(300, 40))
    return made


@pytest.fixture
def server(folder, monkeypatch):
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with RangeServer(folder) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url("").rstrip("/"))
        yield server


@pytest.fixture(params=["http", "s3"])
def place(request, server):
    return server.url("") if request.param == "http" else "s3://bucket/"


def bytes_asked(server):
    """What the ranges of all requests so far add up to."""
    ends = [asked.removeprefix("bytes=").split("-") for _, asked in server.requests if asked]
    return sum(int(last) - int(first) + 1 for first, last in ends)


# ------------------------------------------------------------------------------------------- zarr


@pytest.mark.parametrize(("name", "key"), ZARR_LINES)
def test_golden_zarr_is_the_same(folder, place, name, key):
    with lt.open(folder / name, key=key or None) as local:
        with lt.open(f"{place}{name}", key=key or None) as remote:
            assert remote.format == "zarr"
            assert (remote.shape, remote.dtype) == (local.shape, local.dtype)
            assert remote[...].tobytes() == local[...].tobytes()


@pytest.mark.parametrize("name", ["grid.zarr", "shards.zarr"])
def test_zarr_is_read_in_any_order_and_resumes_on_the_other_copy(folder, place, name):
    local, remote = lt.open(folder / name, memory="4MiB"), lt.open(place + name, memory="4MiB")
    np.testing.assert_array_equal(remote[[500, 3, 3, 77]], DATA[[500, 3, 3, 77]])
    np.testing.assert_array_equal(remote[::-7, 5], DATA[::-7, 5])
    for here, there in zip(local.batches(64, seed=3), remote.batches(64, seed=3), strict=True):
        np.testing.assert_array_equal(here[0], there[0])
        np.testing.assert_array_equal(here[1], there[1])
    first, second = (lt.Loader(a, batch_size=10, seed=5) for a in (local, remote))
    for _ in range(7):
        first.next()
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(second.next().index, first.next().index)
    first.load_state_dict(second.state_dict())
    np.testing.assert_array_equal(first.next()[0], second.next()[0])


def test_chunks_are_asked_for_many_at_a_time_and_once_each(tmp_path):
    test_zarr.write(tmp_path / "many.zarr", (1, COLUMNS))
    with RangeServer(tmp_path) as server:
        with lt.open(server.url("late=5/many.zarr")) as a:
            asked = [path for path, _ in server.requests if "/c/" in path]
            assert len(asked) == len(set(asked)) == ROWS
            assert server.most > 4
            assert bytes_asked(server) < ROWS + (1 << 20)  # a byte of each, and the metadata
        with lt.open(tmp_path / "many.zarr") as local, lt.open(server.url("many.zarr")) as a:
            np.testing.assert_array_equal(a[:], local[:])


def test_a_chunk_that_is_missing_is_the_fill_value_and_one_that_is_denied_is_an_error(tmp_path):
    test_zarr.write(tmp_path / "a.zarr", (50, 37), skip=[(2, 0)], fill_value=5)
    (tmp_path / "deny").mkdir()
    with RangeServer(tmp_path) as server:
        with lt.open(server.url("a.zarr/")) as a:
            expected = DATA.copy()
            expected[100:150] = 5
            np.testing.assert_array_equal(a[:], expected)
        (tmp_path / "a.zarr" / "c" / "1" / "0").write_bytes(b"short")
        with pytest.raises(lt.FormatError, match=r"c/1/0: expected a chunk of 7400 bytes, found 5"):
            lt.open(server.url("a.zarr"))

    class Denying(RangeServer):
        pass

    with Denying(tmp_path) as server:
        refused = server.http.RequestHandlerClass.answer

        def answer(self, number):
            return self.refuse(403) if "/c/3/" in self.path else refused(self, number)

        server.http.RequestHandlerClass.answer = answer
        with pytest.raises(PermissionError, match="c/3/0"):
            lt.open(server.url("a.zarr"))


def test_a_group_lists_its_keys_where_the_server_can(server):
    with pytest.raises(lt.FormatError, match="expected a key"):
        lt.open("s3://bucket/types3.zarr")
    with pytest.raises(ValueError, match="does not list"):
        lt.open(server.url("types3.zarr/"))
    with pytest.raises(lt.FormatError, match="nothing"):
        lt.open("s3://bucket/types3.zarr", key="nothing")


@pytest.mark.parametrize("version", [2, 3])
def test_a_sparse_matrix_in_zarr_needs_no_list(tmp_path, version):
    parts = matrix(test_h5ad.ROWS, test_h5ad.COLUMNS)
    test_h5ad.write_zarr(tmp_path / "cells.zarr", parts, version)
    with RangeServer(tmp_path) as server, lt.open(server.url("cells.zarr")) as c:
        assert isinstance(c, lt.Csr) and c.shape == (test_h5ad.ROWS, test_h5ad.COLUMNS)
        index = [399, 0, 7, 7]
        data, indices, offsets = rows_of(parts, index)
        found = c[index]
        np.testing.assert_array_equal(found.data, data)
        np.testing.assert_array_equal(found.indices, indices)
        np.testing.assert_array_equal(found.indptr, offsets)
        assert not any("list-type" in path for path, _ in server.requests)


# ---------------------------------------------------------------------- HDF5, AnnData, other arrays


@pytest.mark.parametrize("key", ["plain", "chunked", "compact", "absent"])
def test_hdf5_is_the_same_and_resumes_on_the_other_copy(folder, place, key):
    local, remote = lt.open(folder / "m.h5", key=key), lt.open(f"{place}m.h5", key=key)
    assert remote.format == "hdf5" and remote.path == f"{place}m.h5"
    assert (remote.shape, remote.dtype) == (local.shape, local.dtype)
    np.testing.assert_array_equal(remote[:], local[:])
    np.testing.assert_array_equal(remote[[8, 0, 8]], local[[8, 0, 8]])
    first, second = (lt.Loader(a, batch_size=2, seed=5) for a in (local, remote))
    first.next()
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(second.next()[0], first.next()[0])
    again = pickle.loads(pickle.dumps(remote))
    np.testing.assert_array_equal(again[-1], local[-1])


def test_opening_hdf5_takes_few_requests_and_not_the_data(tmp_path):
    rows = 200_000
    with h5py.File(tmp_path / "big.h5", "w") as file:
        data = np.arange(rows * 16, dtype="f4").reshape(rows, 16)
        file.create_dataset("x", data=data, chunks=(500, 16))
    size = (tmp_path / "big.h5").stat().st_size
    with RangeServer(tmp_path) as server, lt.open(server.url("big.h5"), memory="8MiB") as a:
        assert len(server.requests) < 20
        assert bytes_asked(server) < size / 4
        np.testing.assert_array_equal(a[[199_999, 0, 77_777]], data[[199_999, 0, 77_777]])


def test_cells_and_their_labels(folder, place):
    local, remote = lt.open(folder / "cells.h5ad"), lt.open(f"{place}cells.h5ad")
    assert isinstance(remote, lt.Csr) and remote.shape == local.shape
    assert (remote[5:9] != local[5:9]).nnz == 0
    label = lt.open(f"{place}cells.h5ad", key="obs/kind")
    np.testing.assert_array_equal(label.categories, test_h5ad.NAMES)
    np.testing.assert_array_equal(label[:], test_h5ad.LABELS)
    here = {"x": local, "y": lt.open(folder / "cells.h5ad", key="obs/kind")}
    loaders = [
        lt.Loader(source, batch_size=32, seed=2, dense=True)
        for source in (here, {"x": remote, "y": label})
    ]
    for a, b in zip(*loaders, strict=True):
        np.testing.assert_array_equal(a["x"], b["x"])
        np.testing.assert_array_equal(a["y"], b["y"])


@pytest.mark.parametrize("name", ARRAY_FILES)
def test_golden_arrays_of_other_tools_are_read_or_refused_alike(folder, place, name):
    try:
        found = lt.info(folder / name).get("arrays", [{"key": None}])
    except lt.FormatError:
        found = [{"key": None, "error": ""}]
    for one in found:
        if "error" in one:
            with pytest.raises(lt.FormatError):
                lt.open(place + name, key=one["key"])
            continue
        local, remote = (
            lt.open(f"{where}{name}", key=one["key"]) for where in (f"{folder}/", place)
        )
        assert (remote.format, remote.shape) == (local.format, local.shape)
        assert remote.dtype == local.dtype
        assert remote[...].tobytes() == local[...].tobytes()


def test_a_file_of_hdf5_with_a_user_block(tmp_path):
    with h5py.File(tmp_path / "u.h5", "w", userblock_size=1 << 17) as file:
        file.create_dataset("x", data=DATA, chunks=(100, 37))
    with RangeServer(tmp_path) as server, lt.open(server.url("u.h5")) as a:
        np.testing.assert_array_equal(a[:], DATA)


def test_what_is_wrong_with_a_file_is_said_with_its_address(tmp_path):
    with h5py.File(tmp_path / "z.h5", "w") as file:
        file.create_dataset("x", data=DATA, chunks=(100, 37), compression="gzip")
        file["link"] = h5py.ExternalLink("other.h5", "x")
    whole = (tmp_path / "z.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    with RangeServer(tmp_path) as server:
        url = server.url("z.h5")
        for key, text in (("x", "gzip"), ("link", "other.h5"), ("y", "found key 'y'")):
            with pytest.raises(lt.FormatError, match=text) as caught:
                lt.open(f"{url}?key={SECRET}", key=key)
            assert url in str(caught.value) and SECRET not in str(caught.value)
        with pytest.raises(lt.FormatError, match="h5py cannot read this HDF5 file"):
            lt.open(server.url("cut.h5"), key="x")


# ------------------------------------------------------------------------------------ Arrow, SCDL


@pytest.mark.parametrize("name", ["t.arrow", "s.arrow", "dataset/"])
def test_columns_of_arrow_are_the_same(folder, place, name):
    for key in ("label", "half", "x", "when"):
        with lt.open(folder / name, key=key) as local, lt.open(place + name, key=key) as remote:
            assert remote.format == "arrow"
            assert (remote.shape, remote.dtype) == (local.shape, local.dtype)
            np.testing.assert_array_equal(remote[:], local[:])
    for key in ("tokens", "long"):
        local, remote = lt.open(folder / name, key=key), lt.open(place + name, key=key)
        assert isinstance(remote, lt.Ragged) and len(remote) == len(local)
        for row in (0, 299, 300, 301, 999):
            np.testing.assert_array_equal(remote[row], local[row])
    for key, text in (("text", "plain numbers"), ("nothing", "expected one of the columns")):
        with pytest.raises(lt.FormatError, match=text):
            lt.open(place + name, key=key)


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream], ids=["file", "stream"])
def test_opening_arrow_does_not_fetch_the_data(tmp_path, make):
    rows = 400_000
    data = pa.table({"a": np.arange(rows), "b": np.arange(rows) * 0.5})
    test_arrow.write(tmp_path / "big.arrow", data, [rows // 8] * 7, make)
    size = (tmp_path / "big.arrow").stat().st_size
    with RangeServer(tmp_path) as server, lt.open(server.url("big.arrow"), key="b") as a:
        assert bytes_asked(server) < size / 8
        np.testing.assert_array_equal(a[[0, 399_999, 7]], [0, 199_999.5, 3.5])


def test_arrow_that_cannot_be_read_says_why(tmp_path):
    data = test_arrow.table().select(["label"])
    test_arrow.write(tmp_path / "z.arrow", data, compression="zstd")
    whole = test_arrow.write(tmp_path / "t.arrow", data).read_bytes()
    stream = test_arrow.write(tmp_path / "s.arrow", data, make=pa.ipc.new_stream).read_bytes()
    (tmp_path / "cut.arrow").write_bytes(whole[:-100])
    (tmp_path / "odd.arrow").write_bytes(whole[:-10] + b"\xff\xff\xff\x7f" + whole[-6:])
    (tmp_path / "short.arrow").write_bytes(stream[:40])
    (tmp_path / "lies.arrow").write_bytes(stream[:4] + b"\xff\xff\xff\x7f" + stream[8:])
    with RangeServer(tmp_path) as server:
        with pytest.raises(lt.FormatError, match="is compressed"):
            lt.open(server.url("z.arrow"))
        for name in ("cut", "odd", "short", "lies"):
            with pytest.raises(lt.FormatError, match=rf"{name}\.arrow: "):
                lt.open(server.url(f"{name}.arrow"))


def test_flipped_bytes_in_the_metadata_of_arrow_are_format_errors_or_harmless(tmp_path):
    data = test_arrow.table().select(["label"])
    path = test_arrow.write(tmp_path / "t.arrow", data, sizes=())
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    with RangeServer(tmp_path) as server:
        for _ in range(60):
            damaged = bytearray(whole)
            for at in rng.integers(len(whole) - 600, len(whole) - 10, 3):
                damaged[at] = rng.integers(256)
            path.write_bytes(damaged)
            try:
                with lt.open(server.url("t.arrow"), key="label") as a:
                    a[:5]
            except (lt.FormatError, ValueError):
                pass


def test_a_folder_of_scdl(folder, server):
    local = lt.open(folder / "scdl")
    remote = lt.open("s3://bucket/scdl/")
    assert isinstance(remote, lt.Csr) and remote.shape == local.shape
    assert (remote[:] != local[:]).nnz == 0
    with pytest.raises(lt.FormatError, match=r"give shape=\(rows, columns\)"):
        lt.open(server.url("scdl/"))
    named = lt.open(server.url("scdl/"), shape=local.shape)
    assert (named[3:9] != local[3:9]).nnz == 0


def test_rows_of_three_arrays(folder, place):
    names = ("data", "indices", "indptr")
    arrays = [lt.open(f"{place}parts/{name}.npy", memory="4MiB") for name in names]
    remote, local = lt.csr(*arrays, shape=(300, 40)), open_csr(folder / "parts", 40)
    assert (remote[:] != local[:]).nnz == 0
    for a, b in zip(*(lt.Loader(c, 32, seed=1) for c in (local, remote)), strict=True):
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.data, b.data)


# ------------------------------------------------------------------------------------------ trouble


FOREIGN = [("grid.zarr", None), ("shards.zarr", None), ("m.h5", "chunked"), ("t.arrow", "x")]


@pytest.mark.parametrize(("name", "key"), FOREIGN)
def test_a_bad_line_gives_the_same_bytes(folder, server, name, key):
    with lt.open(folder / name, key=key) as local:
        with lt.open(server.url(f"fail=0.1/cut=0.1/{name}"), key=key, memory="4MiB") as a:
            rows = np.empty_like(local[:])
            for index, some in a.batches(50, seed=1):
                rows[index] = some
            np.testing.assert_array_equal(rows, local[:])


class Changing(dict):
    """A version that is another one whenever a file that begins like this is asked for."""

    def __init__(self, *names):
        super().__init__()
        self.names, self.count = names, 0

    def get(self, name, default=None):
        self.count += name.startswith(self.names)
        return self.count if name.startswith(self.names) else default


@pytest.mark.parametrize(("name", "key"), [*FOREIGN[1:], ("s.arrow", "x")])
def test_an_object_that_changes_while_it_is_opened_is_an_error(tmp_path, folder, name, key):
    """What a look finds belongs to the version that is read."""
    source = folder / name
    if source.is_dir():
        shutil.copytree(source, tmp_path / name)
    else:  # larger than what one request brings, so that there are several
        shutil.copy(source, tmp_path / name)
    with RangeServer(tmp_path) as server:
        server.versions = Changing("0", "1", "m.h5", "t.arrow", "s.arrow")
        with pytest.raises(OSError, match=r"changed|another version|412|replaced"):
            lt.open(server.url(name), key=key)[:]


@pytest.mark.parametrize(("name", "key"), FOREIGN)
def test_an_object_that_changes_later_is_an_error(folder, server, name, key):
    a = lt.open(server.url(name), key=key, memory="1MiB", engine="auto")
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    server.versions = dict.fromkeys(names, 1)
    with pytest.raises(OSError, match=r"changed|another version|412|replaced"):
        a[:]


@pytest.mark.parametrize(("name", "key"), FOREIGN)
def test_a_store_signs_every_object_and_no_secret_is_shown(folder, server, name, key):
    asked = []

    def store(address):
        asked.append(address)
        path = address.removeprefix("s3://bucket/")
        return server.url(f"signed/{path}?key={SECRET}"), None, None

    a = lt.open(f"s3://bucket/{name}", key=key, store=store)
    with lt.open(folder / name, key=key) as local:
        np.testing.assert_array_equal(a[:], local[:])
    assert asked and all(one.startswith(f"s3://bucket/{name}") for one in asked)
    assert SECRET not in repr(a) + str(a.stats()) + str(a.paths)
    secret = lt.open(server.url(f"signed/{name}?key={SECRET}"), key=key)
    np.testing.assert_array_equal(secret[:], a[:])
    assert SECRET not in repr(secret) + str(secret.stats()) + str(secret.paths)
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(secret)
    with pytest.raises(PermissionError) as caught:
        lt.open(server.url(f"signed/{name}?key=WRONG"), key=key)
    assert "WRONG" not in str(caught.value)


@pytest.mark.parametrize(("name", "key"), FOREIGN)
def test_objects_are_kept_on_a_local_disk(folder, server, tmp_path, name, key):
    with lt.open(folder / name, key=key) as local:
        for _ in range(2):
            with lt.open(server.url(name), key=key, cache_dir=tmp_path, memory="4MiB") as a:
                server.requests.clear()
                np.testing.assert_array_equal(a[:], local[:])
                last = len(server.requests)
    assert last == 0
    with pytest.raises(ValueError, match="cache_dir is for objects on servers"):
        lt.open(folder / name, key=key, cache_dir=tmp_path)


@pytest.mark.parametrize(("name", "key"), FOREIGN)
def test_a_forked_child_reads_it(folder, server, name, key):
    a = lt.open(server.url(name), key=key, memory="2MiB")
    expected = a[:]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if np.array_equal(a[:], expected) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("name", ["nothing.zarr", "nothing/", "nothing.h5"])
def test_what_is_not_there_is_an_error(place, name):
    with pytest.raises((FileNotFoundError, ValueError), match=r"nothing"):
        lt.open(place + name)
