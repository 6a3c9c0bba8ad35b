"""zarr arrays, read in place: what zarr wrote, and folders that lie."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import pickle
import shutil
import struct

import lowtide as lt
import numpy as np
import pytest
from command import lowtide as run_command

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "zarr"
LINES = [
    line.split("\t") for line in (GOLDEN / "expected.txt").read_text(encoding="utf-8").splitlines()
]
READ = [line for line in LINES if line[2] != "refused"]
REFUSED = [line for line in LINES if line[2] == "refused"]

ROWS, COLUMNS = 503, 37
DATA = np.arange(ROWS * COLUMNS, dtype="<f4").reshape(ROWS, COLUMNS)


def dtype_of(text):
    if text.startswith(("'", "[")):
        return np.lib.format.descr_to_dtype(ast.literal_eval(text))
    return np.dtype(text)


@pytest.mark.parametrize("line", READ, ids=lambda line: f"{line[0]} {line[1]}")
def test_golden_arrays_are_what_zarr_reads(line):
    name, key, dtype, shape, data = line
    with lt.open(GOLDEN / name, key=key or None, memory="1MiB") as a:
        assert a.format == "zarr" and repr(a.shape) == shape
        expected = dtype_of(dtype)
        if key != "big_endian":  # zarr itself delivers these in the order of the machine
            assert a.dtype == expected
        assert a[...].astype(expected).tobytes().hex() == data
        if a.ndim and len(a):
            rows = np.stack([row for _, batch in a.batches(2, seed=1) for row in batch])
            order = np.concatenate([idx.copy() for idx, _ in a.batches(2, seed=1)])
            assert rows[np.argsort(order)].astype(expected).tobytes().hex() == data


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: f"{line[0]} {line[1]}")
def test_what_is_refused_is_named(line):
    name, key, _, word = line
    with pytest.raises(lt.FormatError) as caught:
        lt.open(GOLDEN / name, key=key)
    assert word in str(caught.value) and str(GOLDEN / name / key) in str(caught.value)
    found = {one["key"]: one for one in lt.info(GOLDEN / name)["arrays"]}
    assert word in found[key]["error"]


def write(folder, chunks, data=DATA, shards=None, skip=(), **more):
    """Writes an array of version 3 by hand. Chunks in `skip` are left out."""
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if shards is not None:
        inside = {"chunk_shape": chunks, "codecs": codecs, "index_codecs": codecs}
        codecs = [{"name": "sharding_indexed", "configuration": inside}]
    outer = shards or chunks
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": data.shape,
        "data_type": data.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": outer}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": codecs,
        **more,
    }
    folder.mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(metadata))
    down, across = (-(-extent // chunk) for extent, chunk in zip(data.shape, outer))
    padded = np.zeros((down * outer[0], across * outer[1]), data.dtype)
    padded[: data.shape[0], : data.shape[1]] = data
    for i, j in np.ndindex(down, across):
        if (i, j) in skip:
            continue
        block = padded[i * outer[0] :, j * outer[1] :][: outer[0], : outer[1]]
        text = block.tobytes() if shards is None else shard_of(block, chunks)
        path = folder / "c" / str(i) / str(j)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return folder


def shard_of(block, chunks):
    text, index = b"", b""
    for i, j in np.ndindex(block.shape[0] // chunks[0], block.shape[1] // chunks[1]):
        inner = block[i * chunks[0] :, j * chunks[1] :][: chunks[0], : chunks[1]].tobytes()
        index += struct.pack("<QQ", len(text), len(inner))
        text += inner
    return text + index


@pytest.fixture(
    params=[((100, 37), None), ((1, 37), None), ((64, 10), None), ((10, 10), (100, 20))], ids=str
)
def folder(request, tmp_path):
    chunks, shards = request.param
    return write(tmp_path / "m.zarr", chunks, shards=shards)


def test_indexing_reductions_and_copies(folder, tmp_path):
    with lt.open(folder, memory="4MiB") as a:
        for index in [5, slice(10, 200), (slice(None), slice(10, 20)), [7, 7, 2], DATA[:, 0] > 500]:
            np.testing.assert_array_equal(a[index], DATA[index])
        np.testing.assert_allclose(a.mean(axis=0), DATA.mean(axis=0), rtol=1e-5)
        np.save(tmp_path / "copy.npy", a)
        assert a.path == str(folder) and a.paths == [str(folder)]
        with pickle.loads(pickle.dumps(a)) as again:
            np.testing.assert_array_equal(again[3], DATA[3])
    np.testing.assert_array_equal(np.load(tmp_path / "copy.npy"), DATA)


def test_batches_have_every_row_once(folder):
    with lt.open(folder, memory="1MiB") as a:
        seen = []
        for idx, rows in a.batches(50, seed=1):
            np.testing.assert_array_equal(rows, DATA[idx])
            seen.append(idx.copy())
        assert sorted(np.concatenate(seen)) == list(range(ROWS))


def test_jobs_read_it(folder, tmp_path):
    lt.shuffle(folder, tmp_path / "o.npy", seed=1)
    shuffled = np.load(tmp_path / "o.npy")
    np.testing.assert_array_equal(np.sort(shuffled[:, 0]), DATA[:, 0])


def test_info_and_check(folder):
    found = lt.info(folder)
    assert found["format"] == "zarr" and found["shape"] == DATA.shape
    assert found["dtype"] == "float32" and found["order"] == "C"
    assert found["bytes"] == sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    assert found["shards"] == len(found["files"])
    assert lt.check(folder, nan=True)["nan"] == 0
    result = run_command("info", folder)
    assert result.returncode == 0 and "zarr" in result.stdout, result.stderr
    assert run_command("check", folder).returncode == 0


def test_a_group_has_keys(tmp_path):
    shutil.copytree(GOLDEN / "shapes.zarr", tmp_path / "g.zarr")
    group = tmp_path / "g.zarr"
    keys = [one["key"] for one in lt.info(group)["arrays"]]
    assert keys == sorted(line[1] for line in READ if line[0] == "shapes.zarr")
    assert lt.check(group)["notes"] == []
    assert lt.open(group / "in", key="groups/dots").shape == (5, 4, 6)  # a group in a group
    assert lt.open(group / "in").shape == (5, 4, 6)  # with one array
    assert lt.open(group / "rows").shape == (5, 4, 6)
    for key in ["none", "in", "../g.zarr/rows", "", "rows/c"]:
        with pytest.raises(lt.FormatError, match="expected one of the keys 'big_endian', 'empty'"):
            lt.open(group, key=key)
    with pytest.raises(lt.FormatError, match="contains 12 arrays: 'big_endian'"):
        lt.open(group)
    with pytest.raises(ValueError, match="is an array itself"):
        lt.open(group / "rows", key="x")
    result = run_command("info", group, "--key", "grid")
    assert result.returncode == 0 and "5, 4, 6" in result.stdout


def test_arguments_must_agree(folder):
    assert lt.open(folder, dtype="f4", shape=DATA.shape).shape == DATA.shape
    for wrong in [{"dtype": "f8"}, {"shape": (3, 4)}, {"offset": 5}, {"order": "F"}]:
        with pytest.raises(lt.FormatError, match="was given, but the header says"):
            lt.open(folder, **wrong)


def test_a_chunk_without_a_file_is_the_fill_value(tmp_path):
    skip = {(0, 0), (5, 2), (2, 3)}
    folder = write(tmp_path / "m.zarr", (64, 10), skip=skip, fill_value="0x40490fdb")
    expected = DATA.copy()
    for i, j in skip:
        expected[i * 64 : i * 64 + 64, j * 10 : j * 10 + 10] = np.float32(np.pi)
    with lt.open(folder, memory="1MiB") as a:
        np.testing.assert_array_equal(a[...], expected)
        for idx, rows in a.batches(50):
            np.testing.assert_array_equal(rows, expected[idx])
    shutil.rmtree(folder / "c")
    assert (lt.open(folder)[...] == np.float32(np.pi)).all()


@pytest.mark.parametrize("change", [-1, 1])
def test_a_chunk_that_is_short_or_long_is_an_error(folder, change):
    one = next(path for path in sorted(folder.rglob("*")) if path.is_file() and path.name == "0")
    os.truncate(one, one.stat().st_size + change)
    with pytest.raises(lt.FormatError, match="expected"):
        lt.open(folder)


def test_a_chunk_that_changes_is_an_error(tmp_path):
    folder = write(tmp_path / "m.zarr", (50, 37))
    with lt.open(folder, memory="1MiB", engine="pread") as a:
        assert a[150, 0] == DATA[150, 0]
        (folder / "c" / "3" / "0").write_bytes(bytes(50 * 37 * 4))
        with pytest.raises(OSError, match="replaced or rewritten"):
            list(a.batches(50))


WRONG_INDEX = {
    "another size": (0, 399, "expected 400 bytes of chunk 0 inside"),
    "beyond the end": (1 << 60, 400, "found 400 at byte 1152921504606846976"),
    "overflows": (2**64 - 8, 400, "expected 400 bytes"),
    "half absent": (2**64 - 1, 400, "expected 400 bytes"),
}


@pytest.mark.parametrize("wrong", WRONG_INDEX)
def test_a_shard_index_that_lies_is_an_error(tmp_path, wrong):
    offset, size, text = WRONG_INDEX[wrong]
    folder = write(tmp_path / "m.zarr", (10, 10), shards=(100, 20))
    shard = folder / "c" / "0" / "0"
    data = bytearray(shard.read_bytes())
    data[-16 * 20 : -16 * 19] = struct.pack("<QQ", offset, size)
    shard.write_bytes(data)
    with pytest.raises(lt.FormatError, match=text):
        lt.open(folder)


def test_the_checksum_of_a_shard_index_is_compared(tmp_path):
    shutil.copytree(GOLDEN / "shapes.zarr" / "shards", tmp_path / "m.zarr")
    shard = next(path for path in sorted((tmp_path / "m.zarr" / "c").rglob("*")) if path.is_file())
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes(data)
    with pytest.raises(lt.FormatError, match="CRC-32C"):
        lt.open(tmp_path / "m.zarr")


WRONG_METADATA = {
    "no JSON": ("{", "JSON"),
    "an array": ("[]", "an object"),
    "version": ('{"zarr_format": 4, "node_type": "array"}', "expected zarr_format 3, found 4"),
    "node": ('{"zarr_format": 3, "node_type": "x"}', "node_type"),
    "deep": ('{"zarr_format": 3, "a": ' + "[" * 100_000, "32 levels"),
    "twice": ('{"zarr_format": 3, "zarr_format": 3}', "twice"),
}


@pytest.mark.parametrize("wrong", WRONG_METADATA)
def test_metadata_that_is_no_array_is_an_error(tmp_path, wrong):
    text, message = WRONG_METADATA[wrong]
    (tmp_path / "zarr.json").write_text(text)
    with pytest.raises(lt.FormatError, match=message) as caught:
        lt.open(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "zarr.json"))
    with pytest.raises(lt.FormatError):
        lt.info(tmp_path)


WRONG_MEMBERS = {
    "shape": ({"shape": [2**62, 4]}, "less than 2.63 bytes"),
    "negative": ({"shape": [-1, 4]}, "an integer from 0"),
    "axes": ({"shape": [4]}, "chunks of 1 axes"),
    "many": ({"shape": [2**40, 4]}, "more: shape"),
    "zero": (
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 1]}}},
        "all longer than 0",
    ),
    "grid": ({"chunk_grid": {"name": "rectilinear", "configuration": {}}}, "rectilinear"),
    "type": ({"data_type": "float20"}, "float20"),
    "fill": ({"fill_value": "x"}, "a fill value"),
    "fill2": ({"fill_value": [1, 2]}, "a fill value"),
    "codec": ({"codecs": [{"name": "bytes"}, {"name": "zip"}]}, "codec 'zip'"),
    "none": ({"codecs": []}, "the codec"),
    "names": ({"chunk_key_encoding": {"name": "x"}}, "chunk key encoding"),
    "separator": (
        {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "../"}}},
        "separator",
    ),
    "transformers": ({"storage_transformers": [{"name": "x"}]}, "storage transformers"),
}


@pytest.mark.parametrize("wrong", WRONG_MEMBERS)
def test_metadata_with_a_wrong_member_is_an_error(tmp_path, wrong):
    change, message = WRONG_MEMBERS[wrong]
    folder = write(tmp_path / "m.zarr", (1, 1), DATA[:2, :2], **change)
    with pytest.raises(lt.FormatError, match=message):
        lt.open(folder)


def test_a_table_that_does_not_fit_is_refused_with_its_size(tmp_path):
    folder = write(tmp_path / "m.zarr", (1, 1), DATA[:2, :2], shape=[1 << 20, 1])
    with pytest.raises(ValueError, match="the table of 1048576 chunks needs 12 MiB"):
        lt.open(folder, memory="8MiB")
