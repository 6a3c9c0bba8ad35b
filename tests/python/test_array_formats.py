"""Arrays in files of other tools: safetensors, .npz and files of vectors, read in place."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import pickle
import struct
import sys

import lowtide as lt
import numpy as np
import pytest
from command import lowtide as run_command
from lowtide import _core
from range_server import RangeServer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "arrays"
EXPECTED = [
    line.split("\t") for line in (GOLDEN / "expected.txt").read_text(encoding="utf-8").splitlines()
]
ROWS, COLUMNS = 5000, 24
DATA = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)


def write_safetensors(path, arrays):
    """Writes a file by hand, as safetensors does."""
    names = {"f4": "F32", "i8": "I64", "u1": "U8", "V2": "BF16"}
    header, at = {}, 0
    for key, array in arrays.items():
        kind = "V2" if array.dtype.name == "bfloat16" else array.dtype.str[1:]
        places = [at, at + array.nbytes]
        header[key] = {"dtype": names[kind], "shape": array.shape, "data_offsets": places}
        at += array.nbytes
    text = json.dumps(header).encode()
    data = b"".join(array.tobytes() for array in arrays.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_vecs(path, array):
    with open(path, "wb") as file:
        for row in array:
            file.write(np.int32(len(row)).tobytes() + row.tobytes())


def write_bin(path, array):
    path.write_bytes(struct.pack("<II", *array.shape) + array.tobytes())


@pytest.fixture(params=["safetensors", "npz", "fbin", "fvecs"])
def opened(request, tmp_path):
    """DATA in a file of each format, with the arguments that open it."""
    path, key = tmp_path / f"m.{request.param}", None
    if request.param == "safetensors":
        write_safetensors(path, {"other": np.arange(7), "m": DATA, "empty": DATA[:0]})
        key = "m"
    elif request.param == "npz":
        np.savez(path, other=np.arange(7), m=DATA)
        key = "m"
    elif request.param == "fbin":
        write_bin(path, DATA)
    else:
        write_vecs(path, DATA)
    return path, key


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: f"{row[0]} {row[1]}")
def test_golden_files_are_read_as_their_tools_read_them(row):
    name, key, dtype, shape, order, data = row
    if dtype.startswith(("bfloat16", "float8")):
        pytest.importorskip("ml_dtypes")
    with lt.open(GOLDEN / name, key=key or None, memory="1MiB") as a:
        assert a.format == name.rpartition(".")[2]
        assert repr(a.shape) == shape
        assert a.order == order
        if not dtype.startswith("["):
            assert a.dtype == np.dtype(dtype)
        whole = a[...]
        assert np.asarray(whole).tobytes(order).hex() == data
    found = lt.info(GOLDEN / name)
    assert found["kind"] == "array" and found["format"] == name.rpartition(".")[2]
    if key:
        (one,) = [one for one in found["arrays"] if one["key"] == key]
        assert (one["dtype"], repr(one["shape"]), one["order"]) == (dtype, shape, order)
        assert one["bytes"] == len(data) // 2
    assert lt.check(GOLDEN / name)["format"] == found["format"]


def test_rows_come_in_every_way(opened):
    path, key = opened
    with lt.open(path, key=key, memory="2MiB") as a:
        assert a.shape == DATA.shape and a.dtype == DATA.dtype
        rng = np.random.default_rng(0)
        rows = rng.integers(-ROWS, ROWS, 700)
        np.testing.assert_array_equal(a[rows], DATA[rows])
        np.testing.assert_array_equal(a.take(rows), DATA[rows])
        for index in [5, -1, np.s_[10:4000], np.s_[::-3, 3], np.s_[:, 5:9], np.s_[7::911]]:
            np.testing.assert_array_equal(a[index], DATA[index])
        np.testing.assert_array_equal(a[...], DATA)
        np.testing.assert_array_equal(a[DATA[:, 0] % 5 == 0], DATA[DATA[:, 0] % 5 == 0])
        np.testing.assert_allclose(a.mean(axis=0), DATA.mean(axis=0, dtype="f8"))
        np.testing.assert_array_equal(np.stack(list(itertools.islice(a, 100))), DATA[:100])
        for order in ("shuffle", "sequential"):
            seen = np.zeros(ROWS, bool)
            for idx, batch in a.batches(256, order=order, seed=3):
                np.testing.assert_array_equal(batch, DATA[idx])
                assert not seen[idx].any()
                seen[idx] = True
            assert seen.all()


def test_a_loader_reads_them_beside_other_arrays(opened, tmp_path):
    path, key = opened
    np.save(tmp_path / "y.npy", np.arange(ROWS))
    with lt.open(path, key=key) as a, lt.open(tmp_path / "y.npy") as y:
        loader = lt.Loader({"x": a, "y": y}, batch_size=128, seed=1, epochs=1, memory="4MiB")
        state = None
        for batch in loader:
            np.testing.assert_array_equal(batch["x"], DATA[batch["y"]])
            if batch.step == 5:
                state = loader.state_dict()
        resumed = lt.Loader({"x": a, "y": y}, batch_size=128, seed=1, epochs=1, memory="4MiB")
        resumed.load_state_dict(state)
        assert resumed.next().step == 6


def test_they_pickle_with_their_key(opened):
    path, key = opened
    with lt.open(path, key=key, memory="1MiB") as a, pickle.loads(pickle.dumps(a)) as b:
        np.testing.assert_array_equal(b[100:200], DATA[100:200])
        assert b.memory == a.memory and b.format == a.format
        with b.reopen(memory="2MiB") as c:
            np.testing.assert_array_equal(c[-1], DATA[-1])
        assert ("key='m'" in repr(a)) == (key is not None)


def test_files_are_joined_along_the_first_axis(opened, tmp_path):
    path, key = opened
    again = path.with_name(f"n{path.suffix}")
    again.write_bytes(path.read_bytes())
    np.save(tmp_path / "last.npy", DATA[:3])
    both = np.concatenate([DATA, DATA])
    rows = [0, ROWS - 1, ROWS, 2 * ROWS - 1]
    with lt.open([path, again], key=key) as a:
        np.testing.assert_array_equal(a[rows], both[rows])
        np.testing.assert_array_equal(a[ROWS - 10 : ROWS + 10], both[ROWS - 10 : ROWS + 10])
    if key is None:
        with lt.open([path, tmp_path / "last.npy", again]) as a:
            np.testing.assert_array_equal(a[...], np.concatenate([DATA, DATA[:3], DATA]))


def test_they_are_read_from_a_server(opened):
    if why := _core.why_no_http():
        pytest.skip(f"no http: {why}")
    path, key = opened
    with RangeServer(path.parent) as server, lt.open(server.url(path.name), key=key) as a:
        assert a.shape == DATA.shape and a.format == path.suffix[1:]
        rows = np.random.default_rng(0).integers(0, ROWS, 50)
        np.testing.assert_array_equal(a[rows], DATA[rows])
        for idx, batch in a.batches(1000, seed=1):
            np.testing.assert_array_equal(batch, DATA[idx])


def test_jobs_read_them(opened, tmp_path):
    path, key = opened
    with lt.open(path, key=key) as a:
        lt.convert(a, tmp_path / "out.npy", "npy")
        np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), DATA)
        lt.shuffle(a, tmp_path / "shuffled.npy", seed=2)
        order = np.concatenate([idx for idx, _ in a.batches(512, order="shuffle", seed=2)])
    np.testing.assert_array_equal(np.load(tmp_path / "shuffled.npy"), DATA[order])


def test_the_command_takes_a_key(opened, tmp_path):
    path, key = opened
    words = [] if key is None else ["--key", key]
    told = json.loads(run_command("info", "--json", str(path), *words).stdout)
    assert told["shape"] == [ROWS, COLUMNS] and told["dtype"] == "float32"
    assert run_command("check", str(path), *words).returncode == 0
    out = tmp_path / "out.npy"
    done = run_command("convert", "--format", "npy", str(path), str(out), *words)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(out), DATA)


def test_memory_of_gapped_rows_stays_in_the_budget(tmp_path):
    path = tmp_path / "v.bvecs"
    data = np.random.default_rng(0).integers(0, 256, (100_000, 16), dtype="u1")
    stored = np.concatenate([np.tile(np.array([16, 0, 0, 0], "u1"), (100_000, 1)), data], axis=1)
    stored.tofile(path)
    with lt.open(path, memory="1MiB") as a:
        for idx, rows in a.batches(1000, seed=1):
            np.testing.assert_array_equal(rows, data[idx])
        np.testing.assert_array_equal(a[...], data)
        memory = a.stats()["memory"]
        assert sum(memory["claims"].values()) <= memory["limit"]


def test_several_arrays_need_a_key(tmp_path):
    arrays = {f"layer.{i}": np.arange(i + 1) for i in range(20)}
    write_safetensors(tmp_path / "m.safetensors", arrays)
    np.savez(tmp_path / "m.npz", **arrays)
    for path in (tmp_path / "m.safetensors", tmp_path / "m.npz"):
        with pytest.raises(lt.FormatError, match="expected a key, because the file contains 20"):
            lt.open(path)
        with pytest.raises(lt.FormatError, match=r"'layer\.0', .* and 12 more, found the key 'x'"):
            lt.open(path, key="x")
        with lt.open(path, key="layer.7") as a:
            np.testing.assert_array_equal(a[...], arrays["layer.7"])
        found = lt.info(path)
        assert [one["key"] for one in found["arrays"]] == list(arrays)
        assert found["dtype"] is None and found["shape"] is None and found["order"] is None
        assert lt.check(path)["arrays"] == found["arrays"]
        text = run_command("info", str(path)).stdout
        assert "20 arrays" in text and all(key in text for key in arrays)
        told = json.loads(run_command("info", "--json", str(path)).stdout)
        assert told["shape"] is None and len(told["arrays"]) == 20
        assert run_command("check", str(path)).returncode == 0
    with lt.open(tmp_path / "m.npz", key="layer.7.npy") as a:
        assert len(a) == 8
    with pytest.raises(TypeError, match="key must be a str"):
        lt.open(tmp_path / "m.npz", key=3)


def test_a_key_for_a_nameless_array_is_a_value_error(tmp_path):
    np.save(tmp_path / "m.npy", DATA)
    DATA.tofile(tmp_path / "m.f32")
    write_bin(tmp_path / "m.fbin", DATA)
    for name in ("m.npy", "m.fbin"):
        with pytest.raises(ValueError, match="one array without a name") as caught:
            lt.open(tmp_path / name, key="m")
        assert not isinstance(caught.value, lt.FormatError)
    with pytest.raises(ValueError, match="one array without a name"):
        lt.open(tmp_path / "m.f32", dtype="f4", key="m")


def test_a_dtype_without_a_key_means_raw_bytes(tmp_path):
    write_bin(tmp_path / "m.fbin", DATA)
    with lt.open(tmp_path / "m.fbin", dtype="f4", shape=DATA.shape, offset=8) as a:
        assert a.format == "raw"
        np.testing.assert_array_equal(a[...], DATA)
    write_safetensors(tmp_path / "m.safetensors", {"m": DATA})
    with lt.open(tmp_path / "m.safetensors", dtype="f4", key="m") as a:
        assert a.format == "safetensors"
    with pytest.raises(lt.FormatError, match="dtype '<f8' was given, but the header says '<f4'"):
        lt.open(tmp_path / "m.safetensors", dtype="f8", key="m")


def test_bfloat16_is_that_of_ml_dtypes(tmp_path, monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = DATA[:100].astype(ml_dtypes.bfloat16)
    path = tmp_path / "m.safetensors"
    write_safetensors(path, {"m": data})
    with lt.open(path) as a:
        assert a.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(a[::7], data[::7])
    with lt.open(path, key="m", dtype=ml_dtypes.bfloat16) as a:
        assert a.dtype == ml_dtypes.bfloat16
    assert lt.info(path)["dtype"] == "bfloat16"
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with lt.open(path) as a:
        assert a.dtype == np.uint16 and "uint16 (bfloat16)" in repr(a)
        np.testing.assert_array_equal(a[...], data.view("u2"))


def test_bfloat16_becomes_tensors(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    torch = pytest.importorskip("torch")
    data = DATA[:100].astype(ml_dtypes.bfloat16)
    write_safetensors(tmp_path / "m.safetensors", {"m": data})
    with lt.open(tmp_path / "m.safetensors") as a:
        loader = lt.torch.Loader(a, batch_size=10, order="sequential", epochs=1)
        found = torch.cat([batch[0] for batch in loader])
    assert found.dtype == torch.bfloat16
    np.testing.assert_array_equal(found.float().numpy(), data.astype("f4"))


def test_what_safetensors_wrote_is_read(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    arrays = {"w": DATA, "b": np.arange(9, dtype="i2"), "flags": DATA[:, 0] > 5}
    numpy.save_file(arrays, tmp_path / "m.safetensors", {"made": "here"})
    for key, array in arrays.items():
        with lt.open(tmp_path / "m.safetensors", key=key) as a:
            np.testing.assert_array_equal(a[...], array)


def test_a_compressed_member_says_what_to_do(tmp_path):
    np.savez_compressed(tmp_path / "m.npz", m=DATA, n=DATA)
    with pytest.raises(lt.FormatError, match=r"member 'm\.npy': .*np\.savez instead of"):
        lt.open(tmp_path / "m.npz", key="m")
    found = lt.info(tmp_path / "m.npz")
    assert ["np.savez instead" in one["error"] for one in found["arrays"]] == [True, True]
    assert "not checked" in lt.check(tmp_path / "m.npz")["notes"][0]
    assert "cannot be read" in run_command("info", str(tmp_path / "m.npz")).stdout


def test_check_finds_a_row_of_another_dimension(tmp_path):
    path = tmp_path / "v.fvecs"
    write_vecs(path, DATA)
    assert lt.check(path, nan=True)["nan"] == 0
    stride = 4 + 4 * COLUMNS
    with open(path, "r+b") as file:
        file.seek(1234 * stride)
        file.write(np.int32(COLUMNS + 1).tobytes())
    with lt.open(path) as a:
        assert a.shape == DATA.shape  # only the first and the last row are looked at
    with pytest.raises(lt.FormatError, match=rf"v\.fvecs: row 1234 at byte {1234 * stride}: "):
        lt.check(path)


def test_check_counts_nan_and_finds_false_booleans(tmp_path):
    data = DATA.copy()
    data[7, 3] = np.nan
    data[9, 1] = np.inf
    write_vecs(tmp_path / "v.fvecs", data)
    write_safetensors(tmp_path / "m.safetensors", {"m": data, "n": data[:8], "i": np.arange(3)})
    found = lt.check(tmp_path / "v.fvecs", nan=True)
    assert (found["nan"], found["infinite"]) == (1, 1)
    found = lt.check(tmp_path / "m.safetensors", nan=True)
    assert (found["nan"], found["infinite"]) == (2, 1)
    header = b'{"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},'
    header += b'"c":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}'
    path = tmp_path / "b.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\x01\x02\x00\x07")
    with pytest.raises(lt.FormatError, match="element 1: expected 0 or 1"):
        lt.check(path)


@pytest.mark.parametrize("order", ["C", "F"])
def test_check_compares_the_checksums_of_an_npz(tmp_path, order):
    np.savez(tmp_path / "m.npz", m=np.asarray(DATA, order=order), n=np.zeros((0, 3)), s=np.array(3))
    assert lt.check(tmp_path / "m.npz")["notes"] == []
    whole = bytearray((tmp_path / "m.npz").read_bytes())
    blank = whole.index(b"   \n")  # of the header; a tab is as good
    for at, changed in (
        (whole.index(DATA.tobytes(order)) + 4567, 0x20),
        (blank, ord("\t") ^ ord(" ")),
    ):
        whole[at] ^= changed
        (tmp_path / "m.npz").write_bytes(whole)
        with pytest.raises(lt.FormatError, match=r"m\.npz: bytes \d+ to \d+: expected CRC-32"):
            lt.check(tmp_path / "m.npz")
        whole[at] ^= changed


def test_truncated_files_are_refused(opened):
    path, key = opened
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2 + 1, 9, 3):
        path.write_bytes(whole[:size])
        for reader in (
            lambda: lt.open(path, key=key),
            lambda: lt.info(path),
            lambda: lt.check(path),
        ):
            with pytest.raises(lt.FormatError, match=rf"{path.name}: .*expected.*found"):
                reader()


def test_a_file_that_is_cut_while_it_is_open_is_an_error(opened):
    path, key = opened
    with lt.open(path, key=key, cache="drop") as a:
        os.truncate(path, path.stat().st_size // 3)
        with pytest.raises((lt.FormatError, OSError)):
            a[-10:]
