"""What is in the token files that Lowtide writes."""

from __future__ import annotations

import os
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_files import write_llmc, write_megatron, write_nanogpt

TYPES = {
    "nanogpt": ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"],
    "olmo": ["u1", "u2", "u4", "u8"],
    "llmc": ["u2", "u4"],
    "datatrove": ["u2", "u4"],
    "megatron": ["u1", "i1", "u2", "i2", "i4", "i8"],
}
NAMES = {
    "nanogpt": "t.bin",
    "olmo": "t.npy",
    "llmc": "t.bin",
    "megatron": "t.bin",
    "datatrove": "t.ds",
}
INDEXES = {"megatron": "t.idx", "datatrove": "t.ds.index"}
IN_FILES = [(form, dtype) for form, types in TYPES.items() for dtype in types]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read_documents(t):
    return [d.tolist() for d in t.documents]


@st.composite
def written(draw):
    """A format, a type that it stores, and documents of ids that fit, in types of their own."""
    form, dtype = draw(st.sampled_from(IN_FILES))
    limits = np.iinfo(dtype)
    ids = st.integers(int(limits.min), int(limits.max))
    documents = draw(st.lists(st.lists(ids, max_size=40), max_size=12))
    return form, dtype, documents, draw(st.booleans())


@given(written())
@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_written_is_read_back(tmp_path, case):
    form, dtype, documents, as_arrays = case
    path = tmp_path / NAMES[form]
    for old in tmp_path.iterdir():
        old.unlink()
    with lt.TokenWriter(path, form, dtype, memory="256KiB") as w:
        for document in documents:
            w.append(np.array(document, dtype) if as_arrays else document)
        assert (w.documents, w.tokens) == (len(documents), sum(map(len, documents)))
    whole = [token for document in documents for token in document]
    if not whole:
        return
    with lt.tokens(path, dtype=dtype) as t:
        assert t.format == form
        assert t.dtype == np.dtype(dtype)
        assert t[:].tolist() == whole
        if form in INDEXES:
            assert read_documents(t) == documents
    lt.check(path, dtype=dtype)


@pytest.mark.parametrize(("form", "dtype"), IN_FILES)
def test_the_bytes_are_those_of_the_tools(tmp_path, form, dtype):
    documents = [np.arange(5), np.array([7]), np.arange(100), np.empty(0, int), np.arange(3)]
    tokens = np.concatenate(documents)
    theirs = tmp_path / "theirs.bin"
    if form == "llmc":
        magic, version = {"u2": (20240520, 1), "u4": (20240801, 7)}[dtype]
        write_llmc(theirs, tokens, magic=magic, version=version, dtype=f"<{dtype}")
    elif form == "megatron":
        write_megatron(theirs, documents, dtype=dtype)
    else:
        write_nanogpt(theirs, tokens, f"<{dtype}")
    if form == "datatrove":  # struct.pack of all ends
        np.cumsum([len(d) for d in documents]).astype("<u8").tofile(tmp_path / "theirs.idx")
    with lt.TokenWriter(tmp_path / NAMES[form], form, dtype) as w:
        w.extend(documents)
    for name, path in zip(["theirs.bin", "theirs.idx"], w.paths, strict=False):
        with open(path, "rb") as ours:
            assert ours.read() == (tmp_path / name).read_bytes()


def test_llmc_readers_find_the_header_that_they_check(tmp_path):
    """As dataloader.h of llm.c and _load_data_shard of modded-nanogpt do."""
    with lt.TokenWriter(tmp_path / "t.bin", "llmc", "uint16") as w:
        w.append(range(1000))
    header = np.fromfile(tmp_path / "t.bin", "<i4", 256)
    assert header[:3].tolist() == [20240520, 1, 1000]
    assert os.path.getsize(tmp_path / "t.bin") == 256 * 4 + 1000 * 2
    tokens = np.fromfile(tmp_path / "t.bin", "<u2", offset=1024)
    assert tokens.tolist() == list(range(1000))


@pytest.mark.parametrize(("form", "dtype"), IN_FILES)
def test_append_continues_a_file(tmp_path, form, dtype):
    path = tmp_path / NAMES[form]
    first, second = [[1, 2], [], [3] * 50_000], [[4], [5, 6]]
    for documents in (first, second):
        with lt.TokenWriter(path, form, dtype, append=True, memory="256KiB") as w:
            w.extend(documents)
    assert w.tokens == 50_005
    assert w.documents == (5 if form in INDEXES else 2)
    appended = path.read_bytes()
    with lt.tokens(path, dtype=dtype) as t:
        assert form not in INDEXES or read_documents(t) == first + second
    index = [path.read_bytes() for path in map(Path, w.paths[1:])]
    with lt.TokenWriter(path, form, dtype) as w:
        w.extend(first + second)
    assert path.read_bytes() == appended
    assert [path.read_bytes() for path in map(Path, w.paths[1:])] == index


def test_append_refuses_other_files(tmp_path):
    path = tmp_path / "t.bin"
    write_llmc(path, np.arange(10))
    with pytest.raises(lt.FormatError, match="found the header of 'llmc'"):
        lt.TokenWriter(path, "nanogpt", "uint16", append=True)
    with pytest.raises(lt.FormatError, match="the header says '<u2'"):
        lt.TokenWriter(path, "llmc", "uint32", append=True)
    with pytest.raises(FileNotFoundError, match="idx"):
        lt.TokenWriter(path, "megatron", "uint16", append=True)
    with pytest.raises(TypeError, match="append must be a bool"):
        lt.TokenWriter(path, "llmc", "uint16", append=1)
    write_megatron(path, [np.arange(3), np.arange(4)])
    index = bytearray((tmp_path / "t.idx").read_bytes())
    index[-16:-8] = (0).to_bytes(8, "little")  # the second document has both sequences
    (tmp_path / "t.idx").write_bytes(index)
    with pytest.raises(lt.FormatError, match="document 1: expected one sequence per document"):
        lt.TokenWriter(path, "megatron", "uint16", append=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.bin", "t.idx"]


@pytest.mark.parametrize(
    "tokens",
    [
        [1, 2, 3],
        (1, 2, 3),
        range(1, 4),
        np.array([1, 2, 3], "int8"),
        np.array([1, 2, 3], ">i4"),
        np.array([1, 0, 2, 0, 3], "u8")[::2],
        np.array([3, 2, 1])[::-1],
        memoryview(np.array([1, 2, 3], "u2")),
    ],
    ids=lambda tokens: type(tokens).__name__,
)
def test_any_integers_are_a_document(tmp_path, tokens):
    with lt.TokenWriter(tmp_path / "t.bin", "nanogpt", "uint16") as w:
        w.append(tokens)
    assert np.fromfile(tmp_path / "t.bin", "u2").tolist() == [1, 2, 3]


def test_a_tensor_is_a_document(tmp_path):
    torch = pytest.importorskip("torch")
    with lt.TokenWriter(tmp_path / "t.bin", "nanogpt", "uint16") as w:
        w.append(torch.arange(5))
    assert np.fromfile(tmp_path / "t.bin", "u2").tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("tokens", "error", "says"),
    [
        ([1, 70000], ValueError, "document 1: id 70000 at token 1 does not fit uint16"),
        ([-1], ValueError, "document 1: id -1 at token 0 does not fit uint16"),
        ([1, -1, 2**63], ValueError, "document 1: id -1 at token 1 does not fit uint16"),
        ([2**70], ValueError, f"document 1: id {2**70} at token 0 does not fit uint16"),
        ([1.0], TypeError, "document 1: tokens must be integers, not float64"),
        ([True], TypeError, "document 1: tokens must be integers, not bool"),
        (["a"], TypeError, "document 1: tokens must be integers"),
        ("12", TypeError, "document 1: tokens must be integers, not str"),
        (b"12", TypeError, "document 1: tokens must be integers, not bytes"),
        (None, TypeError, "document 1: tokens must be integers, not object"),
        (np.empty(0), TypeError, "document 1: tokens must be integers, not float64"),
        (5, ValueError, r"document 1: tokens must have one axis, not shape \(\)"),
        ([[1, 2]], ValueError, r"document 1: tokens must have one axis, not shape \(1, 2\)"),
        ([[1], [1, 2]], ValueError, "document 1: tokens must have one axis"),
    ],
    ids=repr,
)
def test_what_is_no_document_leaves_nothing(tmp_path, tokens, error, says):
    with lt.TokenWriter(tmp_path / "t.bin", "megatron", "uint16") as w:
        w.append([1, 2])
        for refused in (w.append, lambda bad: w.extend([bad])):
            with pytest.raises(error, match=says):
                refused(tokens)
        w.append([3])
        assert (w.documents, w.tokens) == (2, 3)
    with lt.tokens(tmp_path / "t.bin") as t:
        assert read_documents(t) == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"format": "mds"}, ValueError, "format: expected one that can be written"),
        ({"format": "npy"}, ValueError, "'npy', which is only read"),
        ({"format": None}, TypeError, "format must be a str"),
        ({"dtype": "uint32"}, ValueError, r"megatron files store \(uint8, .*int64\)"),
        ({"dtype": "float32"}, ValueError, "dtype of tokens must be one of"),
        ({"dtype": "nonsense"}, TypeError, "dtype must be a NumPy dtype"),
        ({"memory": "4KiB"}, ValueError, "memory: 4 KiB is too small.*the write buffer"),
        ({"memory": 0}, ValueError, "memory must be from 1"),
        ({"path": "t.tokens"}, ValueError, "expected a name that ends in .bin"),
        ({"path": "none/t.bin"}, FileNotFoundError, "create the folder first"),
        ({"path": "folder.bin"}, IsADirectoryError, "directory"),
        ({"path": ["t.bin"]}, TypeError, "path must be a str"),
        ({"path": "a\0.bin"}, ValueError, "null byte"),
    ],
    ids=repr,
)
def test_wrong_arguments(tmp_path, monkeypatch, asked, error, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.bin").mkdir()
    told = {"path": "t.bin", "format": "megatron", "dtype": "uint16", **asked}
    with pytest.raises(error, match=says):
        lt.TokenWriter(**told)
    assert names(tmp_path) == ["folder.bin"]
