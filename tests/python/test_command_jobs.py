"""lowtide shuffle, convert and merge."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest
from command import command_path, environment, hear_signals, lowtide, on_terminal
from job_files import (
    entries,
    matrix_file,
    permutation,
    require_notes,
    some_documents,
    write_documents,
)
from token_files import write_nanogpt


@pytest.fixture
def source(tmp_path: Path) -> Path:
    matrix_file(tmp_path / "m.npy", rows=20_000)
    return tmp_path / "m.npy"


def done(*words: object) -> subprocess.CompletedProcess[str]:
    ran = lowtide(*words)
    assert ran.returncode == 0, ran.stderr
    return ran


def json_of(*words: object) -> dict[str, Any]:
    return json.loads(done(*words, "--json").stdout)


def test_a_shuffle_gives_the_bytes_of_python(tmp_path: Path, source: Path) -> None:
    ran = done("shuffle", "--seed", 3, "--memory", "1MiB", source, tmp_path / "out.npy")
    lt.shuffle(source, tmp_path / "python.npy", seed=3, memory="1MiB")
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "python.npy").read_bytes()
    assert ran.stdout.startswith(f"{tmp_path / 'out.npy'}\n")
    assert re.search(r"data +2\.82 MiB in [\d.]+ s \(", ran.stdout)
    tasks = re.search(r"tasks +scatter (\d+), gather (\d+)\n", ran.stdout)
    assert tasks is not None
    lines = ran.stderr.splitlines()  # elsewhere than on a terminal: one line per task
    assert len(lines) == int(tasks[1]) + int(tasks[2])
    assert lines[0].startswith(f"lowtide shuffle: scatter: 1 of {tasks[1]} tasks done, ")
    assert lines[-1].startswith("lowtide shuffle: gather: 1 of 1 task done, ")
    assert entries(tmp_path) == ["m.npy", "out.npy", "python.npy"]


def test_shards_units_and_overwriting(tmp_path: Path, source: Path) -> None:
    found = json_of("shuffle", "--shards", 3, source, tmp_path / "out")
    assert found["verb"] == "shuffle" and found["destination"] == str(tmp_path / "out")
    assert found["bytes"] == 20_000 * 37 * 4 and found["seconds"] > 0
    with lt.open(tmp_path / "out") as a, lt.open(source) as b:
        np.testing.assert_array_equal(a[...], b[permutation(tmp_path, 20_000, 0)])
    another = lowtide("shuffle", "--shards", 3, "--seed", 1, source, tmp_path / "out")
    assert another.returncode == 1 and "exists" in another.stderr
    done("shuffle", "--shards", 3, "--overwrite", source, tmp_path / "out")
    documents = some_documents()
    path = write_documents(tmp_path / "d.ds", "datatrove", documents)
    done("shuffle", "--unit", "document", path, tmp_path / "e.ds")
    with lt.tokens(tmp_path / "e.ds") as t:
        assert t.documents is not None
        order = permutation(tmp_path, len(documents), 0)
        assert [d.tolist() for d in t.documents] == [documents[i].tolist() for i in order]
    tokens = write_nanogpt(tmp_path / "t.bin", np.arange(1000))
    done("shuffle", "--unit", "window", "--block-size", 9, tokens, tmp_path / "w.npy")
    assert np.load(tmp_path / "w.npy").shape == (111, 10)


def test_raw_files_are_described_as_for_info(tmp_path: Path) -> None:
    data = np.arange(600, dtype="<f4").reshape(200, 3)
    data.tofile(tmp_path / "m.f32")
    layout = ("--dtype", "float32", "--shape", "200,3")
    done("convert", "--format", "npy", *layout, tmp_path / "m.f32", tmp_path / "m.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), data)
    ran = lowtide("shuffle", tmp_path / "m.f32", tmp_path / "o.npy")
    assert ran.returncode == 1 and "dtype" in ran.stderr


def test_convert_and_merge(tmp_path: Path) -> None:
    documents = some_documents()
    path = write_documents(tmp_path / "d.ds", "datatrove", documents)
    done("convert", "--format", "megatron", path, tmp_path / "o.bin")
    with lt.tokens(tmp_path / "o.bin") as t:
        assert t.format == "megatron" and t.documents is not None
        assert [d.tolist() for d in t.documents] == [d.tolist() for d in documents]
    flat = write_nanogpt(tmp_path / "t.bin", [1, 2, 0, 3, 0])
    words = ("--from", "nanogpt", "--eot", 0, "--to-dtype", "int32")
    found = json_of("convert", "--format", "megatron", *words, flat, tmp_path / "p.bin")
    assert found["verb"] == "convert"
    with lt.tokens(tmp_path / "p.bin") as t:
        assert t.dtype == np.int32 and t.documents is not None and len(t.documents) == 2
    merged = ("merge", tmp_path / "o.bin", tmp_path / "o.bin", "-o", tmp_path / "q.bin")
    assert json_of(*merged)["verb"] == "merge"
    with lt.tokens(tmp_path / "q.bin") as t:
        assert t.documents is not None and len(t.documents) == 2 * len(documents)
        np.testing.assert_array_equal(t[:], np.concatenate(documents * 2))


@pytest.mark.parametrize("shards", [1, 3])
def test_tasks_are_run_one_by_one(tmp_path: Path, source: Path, shards: int) -> None:
    out = tmp_path / ("out.npy" if shards == 1 else "out")
    words = ("shuffle", "--memory", "1MiB", "--seed", 5, "--shards", shards, source, out)
    plan = json_of(*words, "--plan")
    scatter, gather = plan["stages"]
    assert (scatter["name"], scatter["done"], scatter["ready"]) == ("scatter", 0, True)
    assert (gather["name"], gather["done"], gather["ready"]) == ("gather", 0, False)
    assert entries(tmp_path) == ["m.npy"]  # a plan changes nothing
    early = lowtide(*words, "--stage", "gather", "--task", f"0/{gather['tasks']}")
    assert early.returncode == 1
    assert f"{scatter['tasks']} of {scatter['tasks']} tasks of scatter are not done" in early.stderr
    for task in reversed(range(scatter["tasks"])):
        told = json_of(*words, "--stage", "scatter", "--task", f"{task}/{scatter['tasks']}")
        assert (told["name"], told["task"], told["was_done"]) == ("scatter", task, False)
    again = done(*words, "--stage", "0", "--task", f"0/{scatter['tasks']}")
    assert again.stdout == f"scatter 0/{scatter['tasks']}  already done\n"
    assert json_of(*words, "--plan")["stages"][1]["ready"] is True
    assert "done: " + str(scatter["tasks"]) in done(*words, "--plan").stdout
    for task in range(gather["tasks"]):
        ran = done(*words, "--stage", 1, "--task", f"{task}/{gather['tasks']}")
        assert ran.stdout.startswith(f"gather {task}/{gather['tasks']}  ")
    with lt.open(out) as a, lt.open(source) as b:
        np.testing.assert_array_equal(a[...], b[permutation(tmp_path, 20_000, 5)])
    assert [name for name in entries(tmp_path) if name.startswith(".")] == []


def test_what_is_repeated_after_the_end_has_nothing_to_do(tmp_path: Path, source: Path) -> None:
    require_notes(tmp_path)
    out = tmp_path / "out"
    words = ("shuffle", "--memory", "1MiB", "--shards", 2, source, out)
    for more in (("--overwrite",), ()):
        assert json_of(*words, *more)["was_done"] is (not more)
        made = (out / "part-00001-of-00002.npy").stat()
        splits = json_of(*words, *more, "--plan")["stages"][0]["tasks"]
        for stage, task in (("scatter", f"0/{splits}"), ("gather", "1/2")):
            late = done(*words, *more, "--stage", stage, "--task", task)
            assert late.stdout == f"{stage} {task}  already done: the result is {out}\n"
        assert (out / "part-00001-of-00002.npy").stat() == made
    assert "already done: this job wrote it before" in done(*words).stdout
    os.utime(out / "part-00000-of-00002.npy")
    late = lowtide(*words, "--stage", "gather", "--task", "1/2")
    assert late.returncode == 1
    assert "File exists; set overwrite to replace it; if another task of this job wrote it" in (
        late.stderr
    )
    assert entries(tmp_path) == [
        *("m.npy", "out", "out/part-00000-of-00002.npy", "out/part-00001-of-00002.npy")
    ]


def test_one_stage_needs_no_name(tmp_path: Path, source: Path) -> None:
    words = ("convert", "--format", "raw", source, tmp_path / "m.i4")
    (stage,) = json_of(*words, "--plan")["stages"]
    for task in range(stage["tasks"]):
        done(*words, "--task", f"{task}/{stage['tasks']}")
    assert (tmp_path / "m.i4").read_bytes() == np.load(source).tobytes()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["IN"], "no OUT was given: lowtide shuffle [options] IN OUT"),
        ([], "no IN was given"),
        (["IN", "OUT", "more"], 'expected IN and OUT, but found a third: "more"'),
        (["IN", "OUT", "--task", "0/3"], "--stage is missing; stages and their tasks: scatter "),
        (["IN", "OUT", "--stage", "sort", "--task", "0/3"], 'there is no stage "sort"'),
        (["IN", "OUT", "--stage", "0", "--task", "0/999"], "Give every task the same options"),
        (["IN", "OUT", "--stage", "0", "--task", "3"], "expected K/N"),
        (["IN", "OUT", "--stage", "0", "--task", "x/3"], "--task: expected a whole number"),
        (["IN", "OUT", "--stage", "0"], "--stage needs --task K/N"),
        (["IN", "OUT", "--plan", "--task", "0/1"], "cannot be combined"),
        (["IN", "OUT", "--unit", "rows"], "document"),
        (["IN", "OUT", "--block-size", "8"], "block_size is for windows, not for rows"),
        (["IN", "OUT", "--seed", "-1"], "--seed: expected a whole number"),
        (["IN", "OUT", "--shards", "20001"], "shards"),
        (["IN", "OUT", "--memory", "512M"], "--memory: "),
        (["IN", "OUT", "--eot", "0"], "--eot is for tokens"),
        (["none.npy", "OUT"], "no such file: none.npy"),
    ],
)
def test_wrong_usage_exits_with_2(
    tmp_path: Path, source: Path, words: list[str], text: str
) -> None:
    named = {"IN": str(source), "OUT": str(tmp_path / "out.npy")}
    ran = lowtide("shuffle", *(named.get(word, word) for word in words))
    assert ran.returncode == 2, ran.stderr
    assert text in ran.stderr and ran.stderr.startswith("lowtide shuffle: ")
    assert entries(tmp_path) == ["m.npy"]


def test_wrong_usage_of_convert_and_merge(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out.npy"
    missing = lowtide("convert", source, out)
    assert missing.returncode == 2 and "--format is missing" in missing.stderr
    unknown = lowtide("convert", "--format", "parquet", source, out)
    assert unknown.returncode == 2 and "parquet" in unknown.stderr
    nowhere = lowtide("merge", source)
    assert nowhere.returncode == 2 and "-o" in nowhere.stderr
    last = lowtide("shuffle", "--stage", "0", "--task", "1/1", source, out)
    assert last.returncode == 2 and "K counts from 0" in last.stderr
    assert entries(tmp_path) == ["m.npy"]


def test_help_has_an_example(tmp_path: Path) -> None:
    for verb in ("shuffle", "convert", "merge"):
        text = done(verb, "--help").stdout
        assert f"lowtide {verb} --" in text or f"lowtide {verb} a.bin" in text
        for word in ("--memory", "--overwrite", "--task", "--stage", "--json", "--plan"):
            assert word in text


def endless(tmp_path: Path) -> list[object]:
    """Words for a merge that takes longer than any test: its source is sparse."""
    with open(tmp_path / "endless.u8", "wb") as file:
        file.truncate(1 << 40)
    layout = ["--dtype", "uint8", "--shape", f"{1 << 30},1024"]
    return ["merge", *layout, tmp_path / "endless.u8", "-o", tmp_path / "out.npy"]


def test_ctrl_c_leaves_nothing_and_a_clean_terminal(tmp_path: Path) -> None:
    code, text = on_terminal(*endless(tmp_path), interrupt_at=" s left", NO_COLOR="1")
    assert code == 130
    drawn, left = text.rsplit("\r\x1b[K", 1)
    assert re.search(r"merge  .*%  [\d.]+ [MG]iB of 1 TiB  [\d.]+ [MG]iB/s  \d+ s left", drawn)
    told = r"lowtide merge: stopped after [\d.]+ [MG]iB of 1 TiB: nothing was written\n"
    assert re.fullmatch(told, left)
    assert entries(tmp_path) == ["endless.u8"]


def test_a_task_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [command_path(), *map(str, endless(tmp_path)), "--task", "0/1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        preexec_fn=hear_signals,
    )  # fmt: skip
    while process.poll() is None and len(entries(tmp_path)) == 1:
        time.sleep(0.01)  # until it has begun to write
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "of this task: it left nothing behind" in errors
    assert not (tmp_path / "out.npy").exists()
