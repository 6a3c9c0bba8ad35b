"""Token files with false headers, and files that are not token files."""

from __future__ import annotations

import json
import os
import pickle
import struct

import lowtide as lt
import numpy as np
import pytest
from token_files import write_llmc, write_megatron, write_nanogpt


def test_uint32_without_a_dtype_is_caught(tmp_path):
    path = write_nanogpt(tmp_path / "t.bin", np.arange(1, 5000), "<u4")
    with pytest.raises(lt.FormatError, match="give the dtype explicitly, uint32 or uint16"):
        lt.tokens(path)
    with lt.tokens(path, dtype="uint32") as t:
        assert t[4998] == 4999
    with lt.tokens(path, dtype="uint16") as t:
        assert len(t) == 9998


def test_a_size_that_is_not_a_multiple(tmp_path):
    (tmp_path / "t.bin").write_bytes(b"\1" * 101)
    with pytest.raises(lt.FormatError, match=r"multiple of 2.*101"):
        lt.tokens(tmp_path / "t.bin")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"version": 2}, "expected version 1"),
        ({"magic": 20240801}, "version 7"),
        ({"magic": 20240522}, "evaluation file"),
        ({"count": 99}, "99"),
        ({"count": 101}, "101"),
        ({"count": -1}, "-1"),
    ],
    ids=repr,
)
def test_llmc_headers_that_lie(tmp_path, asked, says):
    path = write_llmc(tmp_path / "t.bin", np.arange(100) + 300, **asked)
    with pytest.raises(lt.FormatError, match=says):
        lt.tokens(path)


def test_an_unknown_magic_under_a_given_format(tmp_path):
    path = write_llmc(tmp_path / "t.bin", np.arange(100) + 300, magic=12345)
    with pytest.raises(lt.FormatError, match=r"magic 20240520 or 20240801"):
        lt.tokens(path, format="llmc")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"version": 2}, "version 1, found 2"),
        ({"code": 6}, "float|6"),
        ({"code": 7}, "float|7"),
        ({"code": 99}, "99"),
    ],
    ids=repr,
)
def test_megatron_headers_that_lie(tmp_path, asked, says):
    path = write_megatron(tmp_path / "d", [[1, 2, 3]], **asked)
    with pytest.raises(lt.FormatError, match=says):
        lt.tokens(path)


def test_megatron_pairs_that_do_not_fit(tmp_path):
    path = write_megatron(tmp_path / "d", [[1, 2, 3], [4, 5]])
    whole = (tmp_path / "d.bin").read_bytes()
    (tmp_path / "d.bin").write_bytes(whole[:-2])
    with pytest.raises(lt.FormatError, match=r"d\.(idx|bin).*sequence 1"):
        lt.tokens(path)
    (tmp_path / "d.bin").unlink()
    with pytest.raises((lt.FormatError, OSError), match=r"d\.bin"):
        lt.tokens(tmp_path / "d.idx")
    (tmp_path / "d.bin").write_bytes(whole)
    index = (tmp_path / "d.idx").read_bytes()
    (tmp_path / "d.idx").write_bytes(index[:-1])
    with pytest.raises(lt.FormatError, match=r"d\.idx"):
        lt.tokens(path)
    (tmp_path / "d.idx").write_bytes(index[:18] + struct.pack("<Q", 2**60) + index[26:])
    with pytest.raises(lt.FormatError, match=r"d\.idx"):
        lt.tokens(path)


def test_shards_of_different_types(tmp_path):
    paths = [
        write_llmc(tmp_path / "a.bin", np.arange(50)),
        write_llmc(tmp_path / "b.bin", np.arange(50), 20240801, 7, dtype="<u4"),
    ]
    with pytest.raises(lt.FormatError, match=r"b\.bin"):
        lt.tokens(paths)
    plain = write_nanogpt(tmp_path / "c.bin", np.arange(50) + 300)
    with pytest.raises(lt.FormatError, match=r"c\.bin"):
        lt.tokens([paths[0], plain])


def test_an_index_that_names_a_path_outside(tmp_path):
    (tmp_path / "data").mkdir()
    write_nanogpt(tmp_path / "secret.bin", np.arange(100))
    index = {"version": 2, "shards": [{"raw_data": {"basename": "../secret.bin"}}]}
    (tmp_path / "data" / "index.json").write_text(json.dumps(index))
    with pytest.raises(lt.FormatError, match=r"index\.json"):
        lt.tokens(tmp_path / "data")


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def test_a_pickle_is_never_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    path = write_nanogpt(tmp_path / "data" / "train.bin", np.arange(100) + 300)
    (tmp_path / "data" / "meta.pkl").write_bytes(pickle.dumps(Bomb()))
    for named in (path, tmp_path / "data"):
        with lt.tokens(named) as t:
            assert len(t) == 100
    np.save(tmp_path / "o.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises((lt.FormatError, ValueError), match=r"o\.npy"):
        lt.tokens(tmp_path / "o.npy")
    assert not (tmp_path / "unpickled").exists()


def test_an_npy_of_two_axes_is_refused(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((4, 5), np.uint16))
    with pytest.raises(lt.FormatError, match="one axis"):
        lt.tokens(tmp_path / "m.npy")


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_datatrove_files_have_their_documents(tmp_path, dtype):
    """As TokenizedFile of datatrove writes them: tokens, and the end of every document."""
    files = [[[1, 2, 3], [], [4]], [[5, 6]]]
    for number, documents in enumerate(files):
        name = tmp_path / f"{number:05d}_unshuffled.ds"
        write_nanogpt(name, [token for document in documents for token in document], dtype)
        np.cumsum([len(d) for d in documents]).astype("<u8").tofile(f"{name}.index")
        (tmp_path / f"{name.name}.metadata").write_text("gpt2|2\n4\n4 T")
    for asked in (tmp_path, f"{tmp_path}/*.ds", [f"{tmp_path}/00000_unshuffled.ds.index"]):
        with lt.tokens(asked) as t:
            whole = files if not isinstance(asked, list) else files[:1]
            assert (t.format, t.dtype) == ("datatrove", np.dtype(dtype))
            assert [d.tolist() for d in t.documents] == [d for part in whole for d in part]
    lt.check(tmp_path / "00000_unshuffled.ds")
    with pytest.raises(lt.FormatError, match=r"2 or 4 bytes for each of the 4 tokens"):
        write_nanogpt(tmp_path / "00000_unshuffled.ds", range(7))
        lt.tokens(tmp_path / "00000_unshuffled.ds")
