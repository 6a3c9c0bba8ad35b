"""Folders whose index.json lists their data files: MDS and LitData."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from command import lowtide as run_command
from token_files import BLOCK, windows_of, write_litdata, write_mds

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tokens" / "folders"
LINES = [line.split("\t") for line in (GOLDEN / "expected.txt").read_text().splitlines()]
WRITERS = {"mds": write_mds, "litdata": write_litdata}
DTYPES = {"mds": np.int32, "litdata": np.uint16}


def made_documents(form, seed=5, shards=4, count=40, longest=90):
    """Documents of different lengths, some of them empty, for each shard."""
    rng = np.random.default_rng(seed)
    return [
        [rng.integers(0, 50000, n).astype(DTYPES[form]) for n in rng.integers(0, longest, count)]
        for _ in range(shards)
    ]


def flat(shards):
    return [document for documents in shards for document in documents]


@pytest.fixture(params=["mds", "litdata"])
def made(request, tmp_path):
    shards = made_documents(request.param)
    path = WRITERS[request.param](tmp_path / "data", shards)
    return request.param, path, flat(shards)


def change_index(folder, change):
    index = json.loads((Path(folder) / "index.json").read_text())
    change(index)
    (Path(folder) / "index.json").write_text(json.dumps(index))


@pytest.mark.parametrize("expected", LINES, ids=[line[0] for line in LINES])
def test_golden_folders(expected):
    name, form, given, descr, count, checksum, offsets = expected
    dtype = None if given == "-" else given
    with lt.tokens(GOLDEN / name, dtype=dtype, memory="1MiB") as t:
        assert (t.format, repr(t.dtype.str), len(t)) == (form, descr, int(count))
        places = np.arange(1, len(t) + 1, dtype=object)
        assert int((places * t[:].astype(object)).sum()) % 2**64 == int(checksum)
        assert t.documents.offsets.tolist() == list(map(int, offsets.split(",")))
        for i, document in enumerate(t.documents):
            first, last = t.documents.offsets[i : i + 2]
            np.testing.assert_array_equal(document, t[first:last])
    found = lt.check(GOLDEN / name, dtype=dtype)
    assert (found["format"], found["tokens"]) == (form, int(count))
    assert [note for note in found["notes"] if "hashlib" not in note] == []
    assert Path(found["files"][-1]["path"]).name == "index.json"


def test_documents_windows_and_indexing(made):
    form, path, documents = made
    data = np.concatenate(documents)
    with lt.tokens(path, memory="2MiB") as t:
        assert (t.format, t.dtype, len(t)) == (form, data.dtype, len(data))
        np.testing.assert_array_equal(t[:], data)
        some = np.random.default_rng(1).integers(0, len(data), 300)
        np.testing.assert_array_equal(t[some], data[some])
        assert len(t.documents) == len(documents)
        for i in (0, 1, 39, 40, -1):
            np.testing.assert_array_equal(t.documents[i], documents[i])
        starts = np.arange(0, len(data) - BLOCK, 7)
        x, y = t.windows(starts, BLOCK)
        np.testing.assert_array_equal(x[:, 0], data[starts])
        np.testing.assert_array_equal(y[:, -1], data[starts + BLOCK])
        with lt.Loader(t, 3, BLOCK, seed=4, epochs=1) as loader:
            seen = windows_of(loader, data, BLOCK)
        assert len(set(seen.tolist())) == len(seen) == (len(data) - 1) // BLOCK // 3 * 3


def test_a_loader_of_documents(made):
    _, path, documents = made
    with (
        lt.tokens(path, memory="2MiB") as t,
        lt.Loader(t.documents, batch_size=8, seed=3, epochs=1) as loader,
    ):
        seen = []
        for batch in loader:
            values, offsets = batch
            for i, number in enumerate(batch.index):
                np.testing.assert_array_equal(
                    values[offsets[i] : offsets[i + 1]], documents[number]
                )
            seen += batch.index.tolist()
    assert sorted(seen) == list(range(len(documents)))


def test_documents_apart(made):
    _, path, documents = made
    starts = np.cumsum([len(document) for document in documents])
    with (
        lt.tokens(path, memory="2MiB") as t,
        lt.Loader(t, 4, BLOCK, documents="separate", epochs=1) as loader,
    ):
        for batch in loader:
            for row, sample in enumerate(batch.samples):
                tokens = np.arange(sample * BLOCK, (sample + 1) * BLOCK)
                begins = np.maximum(tokens[0], [max([0, *starts[starts <= k]]) for k in tokens])
                assert batch.positions[row].tolist() == (tokens - begins).tolist()


def test_a_copy_of_the_folder_resumes(made, tmp_path):
    _, path, _ = made
    with lt.tokens(path, memory="2MiB") as t, lt.Loader(t, 4, BLOCK, seed=2) as loader:
        for _ in range(5):
            loader.next()
        state = json.loads(json.dumps(loader.state_dict()))
        expected = loader.next().x.copy()
    shutil.copytree(path, tmp_path / "copy")
    with lt.tokens(tmp_path / "copy") as t, lt.Loader(t, 4, BLOCK, seed=2) as loader:
        loader.load_state_dict(state)
        np.testing.assert_array_equal(loader.next().x, expected)


def test_pickles_by_reference(made):
    form, path, documents = made
    with lt.tokens(path, format=form) as t:
        assert len(pickle.dumps(t)) < 1000
        with pickle.loads(pickle.dumps(t)) as again:
            np.testing.assert_array_equal(again[:], np.concatenate(documents))


def test_the_index_decides_the_order(made):
    form, path, documents = made
    change_index(path, lambda index: index["shards" if form == "mds" else "chunks"].reverse())
    turned = flat([documents[120:], documents[80:120], documents[40:80], documents[:40]])
    with lt.tokens(path) as t:
        np.testing.assert_array_equal(t[:], np.concatenate(turned))
        np.testing.assert_array_equal(t.documents[3], turned[3])


def test_an_index_can_be_named_and_data_files_too(made):
    form, path, documents = made
    data = np.concatenate(documents)
    with lt.tokens(Path(path) / "index.json") as t:
        np.testing.assert_array_equal(t[:], data)
    with lt.tokens(f"{path}/*") as t:
        assert t.format == form
        np.testing.assert_array_equal(t[:], data)
    with lt.tokens([f"{path}/index.json", f"{path}/index.json"]) as t:
        assert len(t) == 2 * len(data)
    with pytest.raises(lt.FormatError, match="open it as tokens"):
        lt.open(path)


def test_a_litdata_folder_without_its_index(tmp_path):
    path = write_litdata(tmp_path / "data", made_documents("litdata"))
    (tmp_path / "data" / "index.json").unlink()
    with pytest.raises(lt.FormatError, match=r"chunk-0-0\.bin: expected an index\.json beside"):
        lt.tokens(path)
    with lt.tokens(path, dtype="uint16") as t:
        assert t.format == "litdata"


def test_an_mds_folder_without_its_index(tmp_path):
    shards = made_documents("mds")
    path = write_mds(tmp_path / "data", shards)
    (tmp_path / "data" / "index.json").unlink()
    with lt.tokens(path) as t:
        np.testing.assert_array_equal(t[:], np.concatenate(flat(shards)))


def test_convert_keeps_documents(made, tmp_path):
    form, path, documents = made
    lt.convert(path, tmp_path / "o.bin", format="megatron", memory="8MiB")
    with lt.tokens(tmp_path / "o.bin") as t:
        assert len(t.documents) == len(documents)
        for ours, theirs in zip(t.documents, documents, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for call in (
        lambda: lt.convert(path, tmp_path / "x.mds", format=form),
        lambda: lt.merge([path, path], tmp_path / "x.mds"),
        lambda: lt.TokenWriter(tmp_path / "x.mds", format=form, dtype="int32"),
    ):
        with pytest.raises(ValueError, match=f"'{form}', which is only read"):
            call()


def test_a_plan_of_an_index_that_changed(made, tmp_path):
    form, path, documents = made
    plan = lt.jobs.convert(path, tmp_path / "o.bin", format="megatron")
    change_index(path, lambda index: index.update(more=1))
    with pytest.raises(OSError, match="plan again"):
        plan.run()
    with pytest.raises(ValueError, match=f"'{form}', which is only read"):
        lt.shuffle(path, tmp_path / "o.bin", unit="document")
    lt.shuffle(lt.tokens(path), tmp_path / "w.npy", unit="window", block_size=BLOCK, seed=1)
    data = np.concatenate(documents)
    starts = range(0, (len(data) - 1) // BLOCK * BLOCK, BLOCK)
    expected = [data[start : start + BLOCK + 1].tolist() for start in starts]
    assert sorted(lt.open(tmp_path / "w.npy")[:].tolist()) == sorted(expected)


def test_info_and_the_command(made):
    form, path, documents = made
    count = sum(len(document) for document in documents)
    found = lt.info(path)
    assert (found["kind"], found["format"], found["tokens"]) == ("tokens", form, count)
    assert (found["documents"], found["shards"]) == (len(documents), 4)
    assert len(found["files"]) == 5
    assert found["bytes"] == sum(file.stat().st_size for file in Path(path).iterdir())
    shown = run_command("info", "--json", path)
    assert json.loads(shown.stdout)["format"] == form
    assert run_command("check", path).returncode == 0
    assert run_command("info", f"{path}/index.json").returncode == 0


def test_check_says_where_a_token_is(made):
    _, path, documents = made
    highest = max(int(document.max()) for document in documents if len(document))
    assert lt.check(path)["highest_token"] == highest
    with pytest.raises(
        lt.FormatError, match=rf"(mds|bin): token \d+ at byte \d+: .*found {highest}"
    ):
        lt.check(path, vocab=highest)


def test_check_reads_every_header(tmp_path):
    path = write_mds(tmp_path / "data", [[np.arange(5)] * 9])
    shard = tmp_path / "data" / "shard.00000.mds"
    data = bytearray(shard.read_bytes())
    fourth = int.from_bytes(data[20:24], "little")
    data[fourth + 5] = 6  # of 5 tokens
    shard.write_bytes(data)
    with lt.tokens(path) as t:
        assert len(t) == 45
    with pytest.raises(lt.FormatError, match=rf"sample 4 \(at byte {fourth}\).*6 tokens.*found 5"):
        lt.check(path)
    shown = run_command("check", path)
    assert shown.returncode == 1
    assert "sample 4" in shown.stderr


@pytest.mark.parametrize("name", ["../secret.mds", "/etc/passwd", "a/../../secret.mds", "..", ""])
def test_names_outside_the_folder(made, name):
    form, path, _ = made

    def change(index):
        if form == "mds":
            index["shards"][1]["raw_data"]["basename"] = name
        else:
            index["chunks"][1]["filename"] = name

    change_index(path, change)
    with pytest.raises(lt.FormatError, match=r"index\.json: expected the name of a file in the f"):
        lt.tokens(path)


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("key", ["bytes", "samples", "tokens"])
def test_an_index_that_lies(made, key, by):
    form, path, _ = made

    def change(index):
        if form == "litdata":
            names = {"bytes": "chunk_bytes", "samples": "chunk_size", "tokens": "dim"}
            index["chunks"][2][names[key]] += by
        elif key == "samples":
            index["shards"][2]["samples"] += by
        else:
            index["shards"][2]["raw_data"]["bytes"] += by

    change_index(path, change)
    with pytest.raises(lt.FormatError, match=r"(00002\.mds|-2\.bin): expected \d+ .*index\.json"):
        lt.tokens(path)


def test_a_file_that_is_missing_or_cut(made):
    _, path, _ = made
    third = sorted(Path(path).glob("*[0-9].*"))[2]
    data = third.read_bytes()
    third.write_bytes(data[:-1])
    with pytest.raises(lt.FormatError, match=rf"{third.name}: expected {len(data)} bytes"):
        lt.tokens(path)
    third.write_bytes(b"")
    with pytest.raises(lt.FormatError, match=rf"{third.name}: expected {len(data)} bytes"):
        lt.tokens(path)
    third.unlink()
    with pytest.raises(FileNotFoundError, match=third.name):
        lt.tokens(path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("refused_mds_zstd", "zstd -d shard.00000.mds.zstd -o shard.00000.mds"),
        ("refused_litdata_zstd", "zstd -d chunk-0-0.zstd.bin -o chunk-0-0.bin"),
        ("refused_mds_pickles", "never loads"),
        ("refused_litdata_trees", "TokensLoader"),
    ],
)
def test_folders_that_are_refused(name, says):
    with pytest.raises(lt.FormatError) as error:
        lt.tokens(GOLDEN / name)
    assert says in str(error.value)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd")
@pytest.mark.parametrize("name", ["refused_mds_zstd", "refused_litdata_zstd"])
def test_what_a_refusal_advises_helps(tmp_path, name):
    shutil.copytree(GOLDEN / name, tmp_path / "data")
    with pytest.raises(lt.FormatError) as error:
        lt.tokens(tmp_path / "data")
    advice = str(error.value).rsplit(": ", 1)[1]
    subprocess.run(advice.split(), cwd=tmp_path / "data", check=True, capture_output=True)
    with lt.tokens(tmp_path / "data") as t:
        assert len(t) in (5, 10)


def test_formats_and_dtypes_that_disagree(made):
    form, path, _ = made
    other = "litdata" if form == "mds" else "mds"
    with pytest.raises(lt.FormatError, match=f"format '{other}' was given"):
        lt.tokens(path, format=other)
    with pytest.raises(lt.FormatError, match="dtype '<i8' was given, but the header says"):
        lt.tokens(path, dtype="int64")
    with lt.tokens(path, format=form, dtype=DTYPES[form]) as t:
        assert t.format == form


def test_samples_of_one_length_take_no_memory(tmp_path):
    equal = [[np.arange(4)] * 50_000]
    unlike = [[np.arange(4 + i % 2) for i in range(50_000)]]
    claims = []
    for name, shards in (("equal", equal), ("unlike", unlike)):
        with lt.tokens(write_mds(tmp_path / name, shards), memory="1MiB") as t:
            claims.append(sum(t.stats()["memory"]["claims"].values()))
            assert len(t.documents) == 50_000
            assert t.documents[49_999].tolist() == shards[0][-1].tolist()
    assert claims[1] - claims[0] == pytest.approx(50_000 * 8, abs=4096)
    with pytest.raises(ValueError, match="50000 samples of different lengths"):
        lt.tokens(tmp_path / "unlike", memory="256KiB")


def test_a_key_names_the_column(tmp_path):
    path = write_mds(tmp_path / "data", [[np.arange(3), np.arange(9)]])
    shard = tmp_path / "data" / "shard.00000.mds"
    shard.write_bytes(shard.read_bytes().replace(b'["tokens"]', b'["labels"]'))
    for given in ({}, {"key": "labels"}):
        with lt.tokens(path, **given) as t:
            assert len(t) == 12
            with pickle.loads(pickle.dumps(t)) as again:
                assert again[:].tolist() == t[:].tolist()
            lt.convert(t, tmp_path / "o.bin", format="megatron", overwrite=True)
    with pytest.raises(lt.FormatError, match=r"a column named 'x', found the columns 'labels'"):
        lt.tokens(path, key="x")
    with pytest.raises(ValueError, match="have no columns; leave the key out"):
        lt.tokens(tmp_path / "o.bin", key="x")
    with pytest.raises(TypeError, match="key"):
        lt.tokens(path, key=3)
    for verb in ("info", "check"):
        assert run_command(verb, "--key", "labels", path).returncode == 0
        shown = run_command(verb, "--key", "x", path)
        assert shown.returncode == 1
        assert "'labels'" in shown.stderr
    made = run_command(
        "convert", "--key", "labels", "--format", "megatron", path, tmp_path / "c.bin"
    )
    assert made.returncode == 0, made.stderr
    with lt.tokens(tmp_path / "c.bin") as t:
        assert [len(document) for document in t.documents] == [3, 9]


def test_check_compares_the_hashes_of_the_index(tmp_path):
    """streaming wrote this one with sha1, which hashlib has, and with xxh64, which it lacks."""
    folder = shutil.copytree(GOLDEN / "mds_long", tmp_path / "data")
    for path in (folder, folder / "index.json"):
        (note,) = lt.check(path)["notes"]
        assert note == "xxh64 of 1 files was not compared: Python's hashlib lacks it"
    shard = folder / "shard.00000.mds"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1  # a token: all that the table says is still true
    shard.write_bytes(data)
    with pytest.raises(lt.FormatError, match=r"shard\.00000\.mds: expected the sha1 b7ad3156"):
        lt.check(folder)
    with pytest.raises(lt.FormatError, match="expected the sha1"):
        lt.check(folder, vocab=256)
    change_index(folder, lambda index: index["shards"][0]["raw_data"].update(hashes={}))
    assert lt.check(folder)["notes"] == []
