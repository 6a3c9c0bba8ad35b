"""Files of other tools are named for what they are, and never read as numbers by accident."""

from __future__ import annotations

import gzip
import json
import pathlib

import lowtide as lt
import numpy as np
import pytest
from command import lowtide as run_command

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "foreign"
EXPECTED = dict(
    line.split("\t") for line in (GOLDEN / "expected.txt").read_text(encoding="utf-8").splitlines()
)
# These are arrays, but not tokens.
ARRAYS = {
    "stream.arrow",
    "t.feather",
    "arrays.npz",
    "compressed.npz",
    "m.h5",
    "m.safetensors",
    "user_block.mat",
}


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_arrays_of_other_tools_are_not_tokens(name):
    with pytest.raises(lt.FormatError, match=f"expected tokens, found {EXPECTED[name]}"):
        lt.tokens(GOLDEN / name)


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - ARRAYS))
@pytest.mark.parametrize(
    "reader", [lt.open, lt.tokens, lt.info, lt.check], ids=lambda f: f.__name__
)
def test_every_way_to_open_one_says_what_it_is(name, reader):
    with pytest.raises(lt.FormatError) as caught:
        reader(GOLDEN / name)
    text = str(caught.value)
    assert text.startswith(f"{GOLDEN / name}: expected ")
    assert f"found {EXPECTED[name]}" in text
    assert text.endswith("To read its bytes as raw data anyway, give their dtype")
    assert "float32" not in text


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_dtype_reads_the_bytes_as_they_are(name):
    data = np.frombuffer((GOLDEN / name).read_bytes(), np.uint8)
    with lt.open(GOLDEN / name, dtype="u1") as a, lt.tokens(GOLDEN / name, dtype="u1") as t:
        np.testing.assert_array_equal(a[:], data)
        np.testing.assert_array_equal(t[:], data)


def test_what_users_do_first(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(1000), b=np.arange(3.0))
    with gzip.open(tmp_path / "x.npy.gz", "wb") as file:
        np.save(file, np.arange(1000))
    (tmp_path / "input.txt").write_text("First Citizen:\nBefore we proceed any further\n" * 100)
    with pytest.raises(lt.FormatError, match=r"x\.npz: .* a NumPy \.npz .*: unzip it"):
        lt.tokens(tmp_path / "x.npz")
    with pytest.raises(lt.FormatError, match=r"x\.npy\.gz: .* gzip-compressed file: gunzip it"):
        lt.open(tmp_path / "x.npy.gz")
    with pytest.raises(lt.FormatError, match=r"input\.txt: .* text: tokenize it"):
        lt.tokens(tmp_path / "input.txt")


def test_one_among_good_files_is_named(tmp_path):
    np.arange(1000, dtype=np.uint16).tofile(tmp_path / "a.bin")
    (tmp_path / "b.bin").write_bytes(gzip.compress(bytes(1000)))
    for where in (tmp_path, str(tmp_path / "*.bin"), [tmp_path / "a.bin", tmp_path / "b.bin"]):
        with pytest.raises(lt.FormatError, match=r"b\.bin: .* gzip"):
            lt.tokens(where)


@pytest.mark.parametrize("verb", ["info", "check"])
def test_the_command_names_it_too(verb):
    found = run_command(verb, str(GOLDEN / "t.parquet"))
    assert found.returncode == 1
    assert "found a Parquet file: read it with pyarrow" in found.stderr
    assert "dtype=" not in found.stderr
    told = json.loads(
        run_command("info", "--json", str(GOLDEN / "m.bin.xz"), "--dtype", "u1").stdout
    )
    assert told["bytes"] == (GOLDEN / "m.bin.xz").stat().st_size
