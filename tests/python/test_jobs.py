"""lt.jobs: what is written."""

from __future__ import annotations

import pickle
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from job_files import (
    entries,
    matrix_file,
    permutation,
    some_documents,
    write_documents,
)
from token_files import write_nanogpt

MANY_TASKS = "1MiB"


@pytest.mark.parametrize("memory", [MANY_TASKS, None])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_shuffle_is_numpys_permutation(tmp_path: Path, memory: str | None, shards: int) -> None:
    data = matrix_file(tmp_path / "m.npy", rows=20_000)
    out = tmp_path / ("out.npy" if shards == 1 else "out")
    lt.shuffle(tmp_path / "m.npy", out, seed=7, memory=memory, shards=shards)
    with lt.open(out) as a:
        np.testing.assert_array_equal(a[...], data[permutation(tmp_path, 20_000, 7)])
    made = ["m.npy", out.name]
    if shards > 1:
        made += [f"out/part-{part:05d}-of-00003.npy" for part in range(shards)]
    assert entries(tmp_path) == sorted(made)


def test_memory_and_shards_do_not_change_the_order(tmp_path: Path) -> None:
    matrix_file(tmp_path / "m.npy")
    lt.shuffle(tmp_path / "m.npy", tmp_path / "a.npy", seed=3, memory="1MiB")
    lt.shuffle(tmp_path / "m.npy", tmp_path / "b.npy", seed=3, memory="64MiB")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    lt.shuffle(tmp_path / "m.npy", tmp_path / "c.npy", seed=4)
    assert (tmp_path / "a.npy").read_bytes() != (tmp_path / "c.npy").read_bytes()


@pytest.mark.parametrize(
    "data",
    [
        np.arange(3000, dtype=">f8"),
        np.arange(3000 * 6, dtype="u1").reshape(3000, 2, 3),
        np.array([(i, i / 2) for i in range(3000)], [("a", "<i4"), ("b", "<f8")]),
        np.asfortranarray(np.arange(9000, dtype="<i2").reshape(3000, 3)),
        np.arange(5, dtype="<i8"),
        np.zeros((1, 4), "f4"),
    ],
    ids=["1d big-endian", "3d", "fields", "fortran", "few", "one"],
)
def test_rows_of_any_kind_are_shuffled(tmp_path: Path, data: np.ndarray) -> None:
    np.save(tmp_path / "m.npy", data)
    lt.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", seed=1, memory=MANY_TASKS)
    found = np.load(tmp_path / "out.npy")
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data[permutation(tmp_path, len(data), 1)])


def test_a_source_is_named_in_many_ways(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    data = np.arange(900, dtype="<f4").reshape(300, 3)
    np.save(tmp_path / "in" / "part_0.npy", data[:100])
    np.save(tmp_path / "in" / "part_1.npy", data[100:])
    data.tofile(tmp_path / "m.f32")
    parts = [tmp_path / "in" / f"part_{number}.npy" for number in range(2)]
    expected = data[permutation(tmp_path, 300, 0)]
    with lt.open(parts) as a, lt.open(tmp_path / "m.f32", dtype="<f4", shape=(300, 3)) as raw:
        sources = [tmp_path / "in", str(tmp_path / "in" / "part_*.npy"), parts, a, raw]
        for number, source in enumerate(sources):
            lt.shuffle(source, tmp_path / f"out{number}.npy")
            np.testing.assert_array_equal(np.load(tmp_path / f"out{number}.npy"), expected)


def test_a_relative_path_means_the_same_elsewhere(tmp_path: Path, monkeypatch) -> None:
    data = matrix_file(tmp_path / "m.npy")
    monkeypatch.chdir(tmp_path)
    plan = lt.jobs.shuffle("m.npy", "out.npy")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    pickle.loads(pickle.dumps(plan)).run()
    order = permutation(tmp_path, len(data), 0)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), data[order])


@pytest.mark.parametrize(("form", "name"), [("megatron", "t.bin"), ("datatrove", "t.ds")])
@pytest.mark.parametrize("shards", [1, 4])
def test_documents_stay_whole(tmp_path: Path, form: str, name: str, shards: int) -> None:
    documents = some_documents()
    path = write_documents(tmp_path / name, form, documents)
    order = permutation(tmp_path, len(documents), 11)
    out = tmp_path / (f"out{path.suffix}" if shards == 1 else "out")
    with lt.tokens(path) as t:
        plan = lt.jobs.shuffle(t.documents, out, seed=11, memory=MANY_TASKS, shards=shards)
    plan.run()
    with lt.tokens(out) as t:
        assert t.format == form
        found = [document.tolist() for document in t.documents]
    assert found == [documents[place].tolist() for place in order]
    other = tmp_path / (f"other{path.suffix}" if shards == 1 else "other")
    lt.shuffle(path, other, unit="document", seed=11, shards=shards)
    with lt.tokens(other) as t, lt.tokens(out) as u:
        np.testing.assert_array_equal(t[:], u[:])


@pytest.mark.parametrize("shards", [1, 3])
def test_documents_are_found_by_their_eot(tmp_path: Path, shards: int) -> None:
    documents = [np.append(np.maximum(one, 1), 0) for one in some_documents(20_000)]
    documents[-1] = documents[-1][:-1]  # it may lack its eot
    write_nanogpt(tmp_path / "t.bin", np.concatenate(documents))
    with lt.tokens(tmp_path / "t.bin", eot=0) as t:
        plan = lt.jobs.shuffle(
            t, tmp_path / "out.bin", unit="document", seed=3, memory="1MiB", shards=shards
        )
    assert len(plan.stages[0]) > 1
    assert len(pickle.dumps(plan.tasks[0])) < 4096
    plan.run()
    order = permutation(tmp_path, len(documents), 3)
    with lt.tokens(tmp_path / "out.bin") as t:
        np.testing.assert_array_equal(t[:], np.concatenate([documents[i] for i in order]))
    with pytest.raises(ValueError, match="give eot"):
        lt.jobs.shuffle(lt.tokens(tmp_path / "t.bin"), tmp_path / "no.bin", unit="document")
    with pytest.raises(ValueError, match="70000 does not fit uint16"):
        with lt.tokens(tmp_path / "t.bin", eot=70_000) as t:
            lt.jobs.shuffle(t, tmp_path / "no.bin", unit="document")


def test_windows_become_rows(tmp_path: Path) -> None:
    tokens = np.random.default_rng(0).integers(0, 50257, 10_007).astype("<u2")
    path = write_nanogpt(tmp_path / "t.bin", tokens)
    lt.shuffle(path, tmp_path / "out.npy", unit="window", block_size=16, seed=2, memory=MANY_TASKS)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, 17)[::16]
    assert len(windows) == (len(tokens) - 1) // 16
    expected = windows[permutation(tmp_path, len(windows), 2)]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@pytest.mark.parametrize("shards", [1, 3])
def test_ragged_samples_stay_whole(tmp_path: Path, shards: int) -> None:
    samples = some_documents(dtype="i4")
    np.save(tmp_path / "values.npy", np.concatenate(samples))
    np.save(tmp_path / "offsets.npy", np.cumsum([0, *map(len, samples)]))
    r = lt.ragged(lt.open(tmp_path / "values.npy"), lt.open(tmp_path / "offsets.npy"))
    lt.shuffle(r, tmp_path / "out", seed=9, memory=MANY_TASKS, shards=shards)
    suffix = ".npy" if shards == 1 else ""
    found = lt.ragged(
        lt.open(tmp_path / "out" / f"values{suffix}"),
        lt.open(tmp_path / "out" / f"offsets{suffix}"),
    )
    order = permutation(tmp_path, len(samples), 9)
    assert [s.tolist() for s in found] == [samples[place].tolist() for place in order]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("nanogpt", "o.bin"),
        ("llmc", "o.bin"),
        ("megatron", "o.bin"),
        ("olmo", "o.npy"),
        ("datatrove", "o.ds"),
        ("npy", "o.npy"),
    ],
)
def test_tokens_are_converted_to_every_format(tmp_path: Path, form: str, name: str) -> None:
    documents = some_documents()
    path = write_documents(tmp_path / "t.bin", "megatron", documents)
    lt.convert(path, tmp_path / name, form, memory=MANY_TASKS)
    with lt.tokens(tmp_path / name, format=form, dtype="uint16") as t:
        np.testing.assert_array_equal(t[:], np.concatenate(documents))
        if form in ("megatron", "datatrove"):
            found = t.documents
            assert found is not None
            assert [d.tolist() for d in found] == [d.tolist() for d in documents]


def test_an_eot_of_the_source_gives_documents(tmp_path: Path) -> None:
    documents = [[1, 2, 0], [0], [5, 6, 7, 0]]
    path = write_nanogpt(tmp_path / "t.bin", np.concatenate(documents))
    with lt.tokens(path, eot=0) as t:
        lt.convert(t, tmp_path / "o.bin", "megatron", dtype="int32")
    with lt.tokens(tmp_path / "o.bin") as t:
        assert t.dtype == np.int32
        assert t.documents is not None
        assert [d.tolist() for d in t.documents] == documents


def test_arrays_are_converted(tmp_path: Path) -> None:
    data = np.asfortranarray(np.arange(900, dtype="<f4").reshape(300, 3))
    np.save(tmp_path / "f.npy", data)
    lt.convert(tmp_path / "f.npy", tmp_path / "raw.f32", "raw")
    assert (tmp_path / "raw.f32").read_bytes() == data.tobytes("C")
    with lt.open(tmp_path / "raw.f32", dtype="<f4", shape=(300, 3)) as raw:
        lt.convert(raw, tmp_path / "c.npy", "npy")
    np.save(tmp_path / "expected.npy", np.ascontiguousarray(data))
    assert (tmp_path / "c.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()


def test_files_are_merged_in_order(tmp_path: Path) -> None:
    data = matrix_file(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", data[::-1])
    with lt.open(tmp_path / "b.npy") as b:
        lt.merge([tmp_path / "a.npy", b, tmp_path / "a.npy"], tmp_path / "all.npy")
    np.testing.assert_array_equal(
        np.load(tmp_path / "all.npy"), np.concatenate([data, data[::-1], data])
    )
    documents = some_documents()
    first = write_documents(tmp_path / "x.bin", "megatron", documents[:100])
    second = write_documents(tmp_path / "y.bin", "megatron", documents[100:])
    whole = write_documents(tmp_path / "whole.bin", "megatron", documents)
    lt.merge([first, second], tmp_path / "z.bin", memory=MANY_TASKS)
    for suffix in (".bin", ".idx"):
        merged = (tmp_path / "z.bin").with_suffix(suffix)
        assert merged.read_bytes() == whole.with_suffix(suffix).read_bytes()


def test_a_check_finds_the_fault_and_writes_nothing(tmp_path: Path) -> None:
    matrix_file(tmp_path / "m.npy")
    plan = lt.jobs.check(tmp_path / "m.npy")
    assert plan.verb == "check" and plan.destination == ""
    plan.run()
    path = write_documents(tmp_path / "t.bin", "megatron", some_documents())
    plan = lt.jobs.check(path)
    with open(path.with_suffix(".idx"), "r+b") as index:
        index.seek(34 + 4 * 3)
        index.write(b"\xff\xff\xff\x7f")
    with pytest.raises((lt.FormatError, OSError)):
        plan.run()
    assert entries(tmp_path) == ["m.npy", "t.bin", "t.idx"]
