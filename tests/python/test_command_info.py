"""lowtide info: the same facts as lt.info, as a table and as JSON."""

from __future__ import annotations

import json

import lowtide as lt
import numpy as np
import pytest
from command import lowtide
from token_files import write_llmc, write_megatron, write_nanogpt, write_shards


def json_of(*words: object) -> dict:
    told = lowtide("info", "--json", *words)
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("\n") == 1
    return json.loads(told.stdout)


def same(path: object, *words: str, **options: object) -> dict:
    """Returns the JSON of the command, after comparing it with lt.info."""
    found = json_of(*words, path)
    here = lt.info(path, **options)
    del found["cached_unknown"]
    for facts in [found, here]:  # the machine may evict between the two
        for part in [facts, *facts["files"]]:
            part.pop("cached")
    assert found == json.loads(json.dumps(here))
    return found


def test_an_array_reports_type_shape_and_size(matrix):
    path, data = matrix
    found = same(path)
    assert found["kind"] == "array"
    assert found["format"] == "npy"
    assert np.dtype(found["dtype"]) == data.dtype
    assert tuple(found["shape"]) == data.shape
    assert found["bytes"] == path.stat().st_size
    assert found["shards"] == 1


def test_a_raw_file_is_what_it_is_called(tmp_path):
    path = tmp_path / "m.f32"
    np.zeros((6, 4), "<f4").tofile(path)
    found = same(path, "--dtype", "float32", "--shape", "6,4", dtype="float32", shape=(6, 4))
    assert found["shape"] == [6, 4]
    assert json_of("--dtype", "f4", "--shape", "(6, 4)", "--order", "F", path)["order"] == "F"
    assert json_of("--dtype", "f4", "--offset", "8", path)["shape"] == [22]
    refused = lowtide("info", path)
    assert refused.returncode == 1
    assert "dtype" in refused.stderr


@pytest.mark.parametrize("words", [("--shape", "a,b"), ("--order", "X"), ("--offset", "-1")])
def test_a_bad_description_is_exit_2(words, tmp_path):
    path = tmp_path / "m.f32"
    path.write_bytes(bytes(8))
    told = lowtide("info", "--dtype", "f4", *words, path)
    assert told.returncode == 2
    assert words[0] in told.stderr


def test_tokens_of_every_format(tmp_path):
    tokens = np.arange(3000) % 50257
    nanogpt = same(write_nanogpt(tmp_path / "n.bin", tokens))
    assert (nanogpt["kind"], nanogpt["format"], nanogpt["tokens"]) == ("tokens", "nanogpt", 3000)
    assert nanogpt["documents"] is None
    assert same(write_llmc(tmp_path / "l.bin", tokens))["format"] == "llmc"
    megatron = same(write_megatron(tmp_path / "m", [tokens[:1000], tokens[1000:]]))
    assert (megatron["format"], megatron["documents"]) == ("megatron", 2)
    assert [file["path"][-4:] for file in megatron["files"]] == [".bin", ".idx"]
    np.save(tmp_path / "t.npy", tokens)
    assert json_of(tmp_path / "t.npy")["kind"] == "array"
    assert same(tmp_path / "t.npy", "--tokens", tokens=True)["tokens"] == 3000


def test_a_folder_and_a_pattern_are_one_data_set(tmp_path):
    write_shards(tmp_path, np.arange(1000), [400, 400])
    for path in [tmp_path, tmp_path / "shard_*.bin"]:
        found = same(path)
        assert (found["tokens"], found["shards"]) == (1000, 3)


def test_several_files_are_a_table_and_a_list(matrix, tmp_path):
    path, _ = matrix
    tokens = write_nanogpt(tmp_path / "n.bin", np.arange(10))
    told = lowtide("info", path, tokens, tmp_path / "none")
    assert told.returncode == 2
    assert "no such file" in told.stderr
    heading, *rows = told.stdout.splitlines()
    assert heading.split()[:4] == ["file", "kind", "format", "dtype"]
    assert [row.split()[1:3] for row in rows] == [["array", "npy"], ["tokens", "nanogpt"]]
    assert [facts["kind"] for facts in json_of(path, tokens)["files"]] == ["array", "tokens"]


def test_a_file_that_cannot_be_read_is_an_object_in_json(matrix, tmp_path):
    path, _ = matrix
    none = tmp_path / "none"
    told = lowtide("info", "--json", none)
    assert told.returncode == 2
    assert json.loads(told.stdout) == {"path": str(none), "error": f"no such file: {none}"}
    assert told.stderr == f"lowtide info: no such file: {none}\n"
    told = lowtide("info", "--json", none, path)
    assert told.returncode == 2
    missing, found = json.loads(told.stdout)["files"]
    assert (missing["path"], found["path"]) == (str(none), str(path))
    assert "error" not in found


def test_names_that_are_not_text_are_replaced_in_json(tmp_path):
    name = bytes(tmp_path) + b"/a\n\xff.bin"
    with open(name, "wb") as file:
        file.write(bytes(range(8)))
    told = lowtide("info", "--json", name)
    assert json.loads(told.stdout)["path"].endswith("/a\n\ufffd.bin")
    assert lt.info(name)["path"].encode(errors="surrogateescape") == name


def test_bad_bytes_are_exit_1(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, np.zeros(100))
    path.write_bytes(path.read_bytes()[:-1])
    told = lowtide("info", path)
    assert told.returncode == 1
    assert str(path) in told.stderr
    with pytest.raises(lt.FormatError, match=r"m\.npy"):
        lt.info(path)


def test_arguments_of_the_wrong_kind_are_refused(matrix):
    path, _ = matrix
    for wrong in [{"tokens": 1}, {"format": 3}, {"offset": 1.5}, {"shape": (True,)}]:
        with pytest.raises(TypeError):
            lt.info(path, **wrong)
    for wrong in [{"order": "X"}, {"format": "zip"}, {"tokens": True, "shape": (3,)}]:
        with pytest.raises(ValueError):
            lt.info(path, **wrong)
    with pytest.raises(FileNotFoundError):
        lt.info("/no/such/file")
