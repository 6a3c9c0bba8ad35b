"""lowtide cache: what of a file is in the page cache, and why it stays there."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import tempfile

import pytest
from command import command_path, environment, lowtide, on_terminal

SIZE = 8 << 20


@pytest.fixture
def data(tmp_path):
    """A file whose cache can be seen and emptied; skipped where it cannot."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(SIZE))
    state = json.loads(lowtide("cache", "--json", path).stdout)["files"][0]
    if state["cached"] is None:
        pytest.skip(state["unknown"])
    told = lowtide("cache", "--evict", path)
    if "tmpfs" in told.stderr:
        pytest.skip(told.stderr)
    assert told.returncode == 0, told.stderr
    return path


def state_of(path):
    return json.loads(lowtide("cache", "--json", path).stdout)["files"][0]


def test_evict_leaves_nothing_and_warm_brings_it_back(data):
    assert state_of(data)["cached"] == 0
    told = lowtide("cache", "--warm", "--json", data)
    change = json.loads(told.stdout)["files"][0]
    assert change["before"] == 0
    assert change["done"] == (change["after"] == SIZE) == (told.returncode == 0)
    assert change["done"] or change["reasons"]


def test_the_picture_has_full_and_empty_parts(data):
    with open(data, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
        pages.madvise(mmap.MADV_RANDOM)
        for at in range(0, SIZE // 2, 4096):  # mapped: the machine keeps them for a while
            pages[at]
        told = lowtide("cache", data)
        ascii_told = lowtide("cache", data, LANG="C")
        parts = state_of(data)["parts"]
    assert told.returncode == 0
    strip = told.stdout.splitlines()[1].strip()
    assert set(strip) <= set("·▁▂▃▄▅▆▇█")
    assert len(strip) == len(parts)
    assert set(ascii_told.stdout.splitlines()[1].strip()) <= set(".:+#")
    assert ("█" in strip) == any(part == 1 for part in parts)


def test_a_narrow_terminal_gets_a_narrow_picture(data):
    code, text = on_terminal("cache", data, columns=40, NO_COLOR="1")
    assert code == 0
    assert len(text.splitlines()[1]) <= 40


def test_json_has_as_many_parts_on_every_terminal(data):
    code, text = on_terminal("cache", "--json", data, columns=40)
    assert code == 0
    assert len(json.loads(text)["files"][0]["parts"]) == len(state_of(data)["parts"]) == 60


def test_pages_that_stay_are_explained(data):
    with open(data, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
        sum(pages[at] for at in range(0, SIZE, 4096))
        told = lowtide("cache", "--evict", data)
    if told.returncode == 0:
        pytest.skip("the machine took the mapped pages by itself")
    assert told.returncode == 1
    assert f"mapped by process {os.getpid()}" in told.stderr


def test_unknown_is_reported_to_a_user_without_permission(data):
    if os.geteuid() != 0:
        pytest.skip("needs root to become nobody")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        others = shutil.copy(data, folder)
        os.chmod(others, 0o444)
        look_as_nobody(others)


def look_as_nobody(data):
    program = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", command_path()]
    try:
        found = subprocess.run([*program, "--version"], capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("setpriv is missing")
    if found.returncode != 0:
        pytest.skip("nobody cannot run the command where it is installed")

    def as_nobody(*words):
        return subprocess.run(
            [*program, "cache", *words, data], capture_output=True, text=True, env=environment()
        )

    shown = as_nobody()
    assert shown.returncode == 0
    assert "unknown" in shown.stdout
    evicted = as_nobody("--evict")
    assert evicted.returncode == 1
    assert "unknown" in evicted.stderr


def test_files_in_memory_cannot_leave_it():
    path = f"/dev/shm/lowtide-{os.getpid()}"
    try:
        with open(path, "wb") as file:
            file.write(bytes(1 << 20))
    except OSError:
        pytest.skip("no /dev/shm")
    try:
        told = lowtide("cache", "--evict", path)
    finally:
        os.unlink(path)
    assert told.returncode == 1
    assert "tmpfs" in told.stderr or "unknown" in told.stderr


def test_several_files_have_a_sum_and_a_missing_one_an_error(data, tmp_path):
    told = lowtide("cache", data, data, tmp_path / "none")
    assert told.returncode == 2
    assert told.stdout.splitlines()[-1].startswith("2 files: ")
    assert "no such file" in told.stderr


def test_evict_and_warm_exclude_each_other(data):
    assert lowtide("cache", "--evict", "--warm", data).returncode == 2


def test_an_empty_file_has_nothing_to_show(tmp_path):
    (tmp_path / "empty").touch()
    for words in [(), ("--evict",), ("--warm",)]:
        assert lowtide("cache", *words, tmp_path / "empty").returncode == 0


@pytest.mark.parametrize("name", ["[a,b]", "[a]", "a,b"])
def test_a_name_in_brackets_is_one_file(tmp_path, monkeypatch, name):
    (tmp_path / name).write_bytes(b"x" * 4096)
    monkeypatch.chdir(tmp_path)
    told = lowtide("cache", "--json", name)
    assert told.returncode == 0, told.stderr
    assert [file["bytes"] for file in json.loads(told.stdout)["files"]] == [4096]


def test_a_missing_file_has_its_place_in_the_list(tmp_path):
    (tmp_path / "data").write_bytes(bytes(4096))
    none = str(tmp_path / "none")
    told = lowtide("cache", "--json", tmp_path / "data", none)
    assert told.returncode == 2
    found, missing = json.loads(told.stdout)["files"]
    assert (found["path"], found["bytes"]) == (str(tmp_path / "data"), 4096)
    assert missing == {"path": none, "error": f"no such file: {none}"}
