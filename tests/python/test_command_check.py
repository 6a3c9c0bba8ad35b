"""lowtide check and lt.check: read the whole file, and report the first fault with its position."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import lowtide as lt
import numpy as np
import pytest
from command import lowtide, on_terminal
from token_files import write_megatron, write_nanogpt


def test_a_good_file_is_reported_with_what_was_found(tmp_path):
    path = write_nanogpt(tmp_path / "t.bin", np.arange(1000) % 900)
    told = lowtide("check", "--vocab", 50257, path)
    assert told.returncode == 0, told.stderr
    assert "good" in told.stdout
    assert told.stderr == ""
    found = json.loads(lowtide("check", "--json", path).stdout)
    assert found["good"] is True
    assert found["info"]["tokens"] == 1000
    assert (found["highest_token"], found["read"]) == (899, 2000)
    assert lt.check(path, vocab=900)["highest_token"] == 899


def test_a_token_outside_the_vocabulary_is_placed(tmp_path):
    tokens = np.zeros(5000, int)
    tokens[4321] = 50257
    path = write_nanogpt(tmp_path / "t.bin", tokens)
    expected = (
        f"{path}: token 4321 at byte 8642: expected 0 or more and below vocab 50257, found 50257"
    )
    told = lowtide("check", "--vocab", 50257, path)
    assert (told.returncode, told.stderr) == (1, f"lowtide check: {expected}\n")
    assert told.stdout == ""
    found = json.loads(lowtide("check", "--json", "--vocab", 50257, path).stdout)
    assert found == {"good": False, "path": path, "error": expected}
    with pytest.raises(lt.FormatError, match="token 4321 at byte 8642"):
        lt.check(path, vocab=50257)


def test_a_document_without_its_end_is_found(tmp_path):
    path = write_megatron(tmp_path / "m", [[1, 2, 0], [3, 4], [5, 0]])
    assert lt.check(path)["documents"] == 3
    told = lowtide("check", "--eot", 0, path)
    assert told.returncode == 1
    assert "token 4 at byte 8" in told.stderr


def test_an_index_that_goes_down_is_found(tmp_path):
    path = write_megatron(tmp_path / "m", [[1, 2, 0], [3, 4], [5, 0]])
    index = bytearray((tmp_path / "m.idx").read_bytes())
    index[-16:-8] = (7).to_bytes(8, "little")
    (tmp_path / "m.idx").write_bytes(index)
    told = lowtide("check", path)
    assert told.returncode == 1
    assert "m.idx" in told.stderr


def test_nan_are_counted_on_request(tmp_path):
    data = np.zeros((100, 3))
    data[7, 1], data[8, 0], data[9, 2] = np.nan, np.inf, -np.inf
    path = tmp_path / "m.npy"
    np.save(path, data)
    found = json.loads(lowtide("check", "--json", "--nan", path).stdout)
    assert (found["nan"], found["infinite"]) == (1, 2)
    assert json.loads(lowtide("check", "--json", path).stdout)["nan"] is None
    found = lt.check(path, nan=True)
    assert (found["nan"], found["infinite"]) == (1, 2)
    assert "nan" not in lt.check(path)


def test_a_file_that_cannot_be_read_is_a_fault_in_json_too(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    told = lowtide("check", "--json", tmp_path / "loop")
    assert told.returncode == 1
    found = json.loads(told.stdout)
    assert (found["good"], found["path"]) == (False, str(tmp_path / "loop"))
    assert found["error"] in told.stderr
    told = lowtide("check", "--json", tmp_path / "none")
    assert told.returncode == 2
    assert json.loads(told.stdout) == {
        "good": False,
        "path": str(tmp_path / "none"),
        "error": f"no such file: {tmp_path}/none",
    }


def test_many_files_are_checked_each_for_itself(tmp_path):
    good = write_nanogpt(tmp_path / "a.bin", np.arange(1000))
    bad = write_nanogpt(tmp_path / "b.bin", np.full(10, 60000))
    matrix = tmp_path / "m.npy"
    np.save(matrix, np.zeros((100, 3), "f4"))
    told = lowtide("check", "--vocab", 50257, good, bad, good)
    assert told.returncode == 1
    lines = told.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["good", "bad", "good", "3"]
    assert lines[-1] == "3 files: 2 good, 1 bad"
    assert lines[0].startswith(f"good  {good}: 1,000 tokens, 1.95 KiB in ")
    assert told.stderr.startswith(f"lowtide check: {bad}: token 0 ")
    assert lowtide("check", good, matrix).returncode == 0
    told = lowtide("check", "--json", "--vocab", 50257, good, bad, tmp_path / "none")
    assert told.returncode == 2
    found = json.loads(told.stdout)["files"]
    assert [file["good"] for file in found] == [True, False, False]
    assert found[0]["info"]["path"] == good
    assert [file["path"] for file in found[1:]] == [bad, str(tmp_path / "none")]


def test_a_check_of_many_that_is_stopped_says_what_is_left(tmp_path):
    small = write_nanogpt(tmp_path / "a.bin", np.arange(1000))
    large = tmp_path / "m.bin"
    with open(large, "wb") as file:
        file.truncate(1 << 40)  # sparse: reading it takes minutes
    words = ("check", "--dtype", "uint16", small, large, small)
    code, text = on_terminal(*words, interrupt_at="left")
    assert code == 130
    assert "no fault found so far" in text
    assert "files not checked: 1" in text
    assert "1 file: 1 good, 0 bad" in text


def test_a_cut_file_is_found(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, np.zeros(1000))
    os.truncate(path, 5000)
    told = lowtide("check", path)
    assert told.returncode == 1
    assert str(path) in told.stderr


@pytest.mark.parametrize(
    "words",
    [("--nan",), ("--vocab", "-1"), ("--eot", "0x5"), ("--memory", "lots"), ("--memory", "1KiB")],
)
def test_what_cannot_be_done_is_exit_2(words, tmp_path):
    path = write_nanogpt(tmp_path / "t.bin", np.arange(1000))
    assert lowtide("check", *words, path).returncode == 2


def test_memory_stays_small_and_the_page_cache_as_it_was(tmp_path):
    path = tmp_path / "m.npy"
    data = np.lib.format.open_memmap(path, "w+", "<f4", (32, 1 << 20))
    data[:] = 1
    del data
    gone = lowtide("cache", "--evict", path).returncode == 0
    code = (
        "import sys, lowtide as lt\n"
        "lt.check(sys.argv[1], nan=True, memory='16MiB')\n"
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')][0])\n"
    )
    base = "import lowtide\n" + code.split("\n")[2]
    peaks = [
        int(subprocess.check_output([sys.executable, "-c", text, str(path)], timeout=240))
        for text in [base, code]
    ]
    assert peaks[1] - peaks[0] < 64 * 1024  # KiB; the file has 128 MiB
    if gone:
        assert (lt.info(path)["cached"] or 0) < path.stat().st_size // 4


def test_ctrl_c_ends_a_check_in_python(tmp_path):
    path = tmp_path / "m.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # sparse: reading it takes minutes
    code = (
        "import sys, lowtide as lt\nprint('go', flush=True)\nlt.check(sys.argv[1], dtype='uint16')"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "go\n"
    time.sleep(0.2)  # before or while it reads: both must end
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_after_a_second(tmp_path):
    path = tmp_path / "m.bin"
    with open(path, "wb") as file:
        file.truncate(3 << 30)  # sparse
    code, text = on_terminal("check", "--dtype", "uint16", path, columns=60)
    assert code == 0
    slow = text.rfind(" s (") > 0 and float(text.split(" in ")[-1].split(" s")[0]) > 2
    if slow:
        assert "left" in text
    shown = [len(part) for part in text.replace("\x1b[K", "").split("\r")]
    assert max(shown[:-1], default=0) <= 60
    assert lowtide("check", "--dtype", "uint16", path).stderr == ""
