"""lowtide profile: the program runs unchanged, and its memory is reported."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

from cgroup import MemoryGroup, Unavailable
from command import command_path, environment, hear_signals, lowtide, on_terminal

MIB = 1 << 20
HOLD = "import sys; b = bytearray(int(sys.argv[1]) << 20); b[::4096] = b'x' * len(b[::4096])"


def test_the_program_runs_as_without_it():
    told = lowtide("profile", "--", sys.executable, "-c", "print('out'); raise SystemExit(7)")
    assert told.returncode == 7
    assert told.stdout == "out\n"
    assert "resident (RSS)" in told.stderr
    assert "of a core" in told.stderr


SHOW = "import sys; print(sys.argv[1:])"


@pytest.mark.parametrize("mark", [[], ["--"]])
def test_the_first_word_that_is_no_option_begins_the_program(mark, tmp_path):
    """Its own options stay its own, also those that profile has too, and a second --."""
    own = ["--json", "-o", "x.html", "--", "--interval=0"]
    words = ["-o", tmp_path / "r.html", "--interval", "0.1", f"--output={tmp_path / 'r.svg'}"]
    told = lowtide("profile", *words, *mark, sys.executable, "-c", SHOW, *own)
    assert told.returncode == 0, told.stderr
    assert told.stdout == f"{own}\n"
    assert sorted(os.listdir(tmp_path)) == ["r.html", "r.svg"]


def test_an_output_takes_one_word_and_a_recording_may_follow_it(trace, tmp_path):
    told = lowtide("profile", "-o", tmp_path / "a.svg", trace, "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["readings"] > 0
    assert (tmp_path / "a.svg").exists()


def test_a_program_that_is_called_as_a_recording_is_run_behind_the_mark(tmp_path):
    program = tmp_path / "run.dat"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    assert lowtide("profile", "--", program).stdout == "ran\n"


def test_json_is_the_last_line_and_has_the_peaks():
    code = HOLD + "; import time; time.sleep(1); print('mine')"
    words = ["profile", "--json", "--", sys.executable, "-c", code, "64"]
    try:  # the verdict counts the page cache of the whole group, which other tests fill
        with MemoryGroup(512 * MIB) as group:
            argv = group.command([str(command_path()), *words])
            told = subprocess.run(argv, capture_output=True, text=True, env=environment())
    except Unavailable:
        told = lowtide(*words)
    assert told.returncode == 0, told.stderr
    first, last = told.stdout.splitlines()
    assert first == "mine"
    found = json.loads(last)
    peak = found["peak"]
    assert peak["anon"] > 64 * MIB
    assert peak["rss"] >= peak["anon"]
    assert {"rss", "anon", "file", "shmem", "page_tables"} <= set(peak)
    assert found["exit"] == 0
    assert found["verdict"]["kind"] in ["flat", "too-short"]
    assert found["command"][-1] == "64"


def test_children_are_followed_unless_asked_not_to():
    child = HOLD + "; import time; time.sleep(1.5)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}, '96'])"
    words = ["--", sys.executable, "-c", code]
    with_children = json.loads(lowtide("profile", "--json", *words).stdout)
    alone = json.loads(lowtide("profile", "--json", "--no-children", *words).stdout)
    assert with_children["peak"]["anon"] > 96 * MIB
    assert alone["peak"]["anon"] < 64 * MIB


def test_a_trace_is_readable_when_the_profiler_was_killed(tmp_path):
    trace = tmp_path / "run.trace"
    words = [command_path(), "profile", "-o", trace, "--interval", "0.01", "--", "sleep", "600"]
    with subprocess.Popen(words, env=environment()) as profiler:
        end = time.monotonic() + 60
        while not trace.exists() or len(trace.read_bytes().splitlines()) < 5:
            assert time.monotonic() < end, "nothing was written"
            time.sleep(0.01)
        profiler.kill()
    told = lowtide("profile", "--json", trace)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["cut"] is True
    assert found["readings"] >= 3
    assert found["exit"] is None


def test_every_kind_of_output_is_written_and_traces_come_back(tmp_path):
    names = ["r.html", "r.svg", "r.json", "r.dat", "r.trace"]
    outputs = [word for name in names for word in ("-o", tmp_path / name)]
    told = lowtide("profile", *outputs, "--", "sleep", "0.3")
    assert told.returncode == 0, told.stderr
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    assert (tmp_path / "r.html").read_text().startswith("<!")
    assert (tmp_path / "r.dat").read_text().startswith("CMDLINE")
    for name in ["r.trace", "r.dat"]:
        again = lowtide("profile", tmp_path / name)
        assert again.returncode == 0
        assert "resident (RSS)" in again.stdout
    trace = json.loads(lowtide("profile", "--json", tmp_path / "r.trace").stdout)
    whole = json.loads((tmp_path / "r.json").read_text())
    assert trace["peak"] == whole["peak"]
    assert lowtide("profile", tmp_path / "r.trace", "-o", tmp_path / "b.svg").returncode == 0
    assert (tmp_path / "b.svg").read_text() == (tmp_path / "r.svg").read_text()


@pytest.mark.parametrize(
    "output, words",
    [("none/r.html", "no such folder"), ("r.pdf", "ends in .html"), ("sub.html", "is a folder")],
)
def test_a_bad_output_stops_it_before_the_program_starts(output, words, tmp_path):
    (tmp_path / "sub.html").mkdir()
    told = lowtide("profile", "-o", tmp_path / output, "--", "touch", tmp_path / "ran")
    assert told.returncode == 2
    assert words in told.stderr
    assert not (tmp_path / "ran").exists()


def test_trying_an_output_touches_nothing_that_is_there(tmp_path):
    """Neither a name as long as names may be nor a link that waits for it is in its way."""
    victim, report = tmp_path / "victim", tmp_path / ("r" * 250 + ".html")
    victim.write_text("mine")
    (tmp_path / ".lowtide-check-0").symlink_to(victim)
    told = lowtide("profile", "-o", report, "--", "true")
    assert told.returncode == 0, told.stderr
    assert victim.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == [".lowtide-check-0", report.name, "victim"]


def test_a_full_folder_stops_it_before_the_program_starts(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        (tmp_path / "all").write_bytes(bytes(4096))
        told = lowtide("profile", "-o", tmp_path / "r.html", "--", "echo", "ran")
        left = os.listdir(tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert told.returncode == 2
    assert "full" in told.stderr
    assert told.stdout == ""
    assert left == ["all"]


@pytest.mark.parametrize("words", [(), ("--",), ("x.trace", "--", "true")])
def test_one_program_or_one_trace(words):
    told = lowtide("profile", *words)
    assert told.returncode == 2
    assert "program" in told.stderr


def test_a_json_report_comes_back_as_it_was(tmp_path):
    outputs = [word for name in ["r.json", "r.html"] for word in ("-o", tmp_path / name)]
    told = lowtide("profile", "--json", "--interval", "0.02", *outputs, "sleep", "0.6")
    assert told.returncode == 0, told.stderr
    again = lowtide("profile", "--json", "-o", tmp_path / "b.html", tmp_path / "r.json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == json.loads(told.stdout)
    assert (tmp_path / "b.html").read_bytes() == (tmp_path / "r.html").read_bytes()
    (tmp_path / "other.json").write_text('{"trace": []}')
    assert lowtide("profile", tmp_path / "other.json").returncode == 1


def test_start_peak_and_end_are_reported_and_the_end_is_before_the_exit():
    code = HOLD + "; import time; time.sleep(1); del b"
    told = lowtide("profile", "--json", "--interval", "0.02", sys.executable, "-c", code, "64")
    found = json.loads(told.stdout)
    assert set(found["start"]) == set(found["peak"]) == set(found["end"])
    assert found["end"]["anon"] - found["start"]["anon"] == found["growth"]["anon"]
    assert found["end"]["anon"] > 64 * MIB
    assert found["verdict"]["unknown"] == []


def test_the_page_cache_of_a_watched_file_is_reported_though_nobody_maps_it(tmp_path):
    data = tmp_path / "data.bin"
    data.write_bytes(bytes(MIB))
    code = "import sys, time; open(sys.argv[1], 'rb').read(); time.sleep(0.5)"
    words = ["--watch", data, "--watch", tmp_path / "none", "--json", "-o", tmp_path / "r.json"]
    told = lowtide("profile", *words, sys.executable, "-c", code, data)
    assert told.returncode == 0, told.stderr
    found, missing = json.loads(told.stdout)["watched"]
    assert found["path"] == str(data) and found["size"] == MIB
    assert missing["peak"] is None
    if found["peak"] is None:
        pytest.skip("this kernel does not tell the page cache")
    assert found["end"] <= found["peak"] <= MIB
    files = {file["path"]: file for file in json.loads((tmp_path / "r.json").read_text())["files"]}
    looks = files[str(data)]["looks"]
    assert len(looks["seconds"]) == len(looks["cached"]) >= 2
    assert looks["cached"][-1] == found["end"]
    assert f"cached of {data}" in lowtide("profile", "--watch", data, tmp_path / "r.json").stdout


@pytest.mark.parametrize(
    "limit, code, expected", [("1MiB", 0, 1), ("1TiB", 0, 0), ("1MiB", 3, 3), ("much", 0, 2)]
)
def test_a_peak_above_the_limit_fails_unless_the_program_did(limit, code, expected, tmp_path):
    words = ["-o", tmp_path / "r.trace", sys.executable, "-c", f"raise SystemExit({code})"]
    told = lowtide("profile", "--fail-above", limit, *words)
    assert told.returncode == expected, told.stderr
    assert ("--fail-above 1MiB: the peak RSS is" in told.stderr) == (limit == "1MiB")
    if expected != 2:
        again = lowtide("profile", "--fail-above", limit, tmp_path / "r.trace")
        assert again.returncode == (1 if limit == "1MiB" else 0)


@pytest.fixture
def stranger():
    code = HOLD + "; print('held', flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, "64"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def attach(process, *words):
    profiler = subprocess.Popen(
        [command_path(), "profile", "--pid", str(process.pid), "--json", *words],
        stdout=subprocess.PIPE,
        env=environment(),
        preexec_fn=hear_signals,
    )
    return profiler


def wait_for_lines(path, count):
    end = time.monotonic() + 60
    while not path.exists() or len(path.read_bytes().splitlines()) < count:
        assert time.monotonic() < end, "nothing was written"
        time.sleep(0.01)


def test_a_process_that_runs_already_is_watched_until_it_ends(stranger, tmp_path):
    profiler = attach(stranger, "-o", tmp_path / "r.trace")
    wait_for_lines(tmp_path / "r.trace", 4)
    stranger.stdin.close()
    assert stranger.wait(60) == 0
    out, _ = profiler.communicate(timeout=60)
    assert profiler.returncode == 0
    found = json.loads(out)
    assert found["peak"]["anon"] > 64 * MIB
    assert found["command"] == stranger.args
    assert found["exit"] is None


def test_an_interrupt_ends_the_watching_and_not_the_process(stranger, tmp_path):
    profiler = attach(stranger, "-o", tmp_path / "r.trace")
    wait_for_lines(tmp_path / "r.trace", 4)
    profiler.send_signal(signal.SIGINT)
    out, _ = profiler.communicate(timeout=60)
    assert profiler.returncode == 0
    assert json.loads(out)["peak"]["anon"] > 64 * MIB
    assert stranger.poll() is None
    stranger.stdin.close()


@pytest.mark.parametrize("pid", ["0", "-3", "x", "999999999", "99999999999"])
def test_no_such_process_is_exit_2(pid):
    told = lowtide("profile", f"--pid={pid}")
    assert told.returncode == 2
    assert "--pid" in told.stderr


def test_a_line_at_the_foot_of_the_terminal_tells_while_it_runs():
    words = ["profile", "sh", "-c", "echo one; sleep 2; echo two"]
    code, text = on_terminal(*words, columns=120)
    assert code == 0
    assert re.search(r"\x1b\[24;1H[^\n]*RSS .* heap .* \d process", text)
    foot = text.index("\x1b[24;1H")
    assert text.index("one") < foot < text.index("two")
    assert text.rindex("\x1b[r") < text.rindex("\x1b[24;1H\x1b[K") < text.index("resident (RSS)")
    for quiet in [["profile", "--json", *words[1:]], words]:
        dumb = {} if "--json" in quiet else {"TERM": "dumb"}
        code, text = on_terminal(*quiet, **dumb)
        assert code == 0
        assert "\x1b7" not in text


def test_a_missing_program_is_127():
    told = lowtide("profile", "--", "no-such-program-here")
    assert told.returncode == 127
    assert "no-such-program-here" in told.stderr


def test_a_program_that_dies_by_a_signal_is_128_and_its_number():
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    told = lowtide("profile", "--json", "--", sys.executable, "-c", code)
    assert told.returncode == 128 + signal.SIGKILL
    assert json.loads(told.stdout)["exit"] == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on_and_no_orphan_stays(number):
    code = (
        "import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "print(os.getpid(), flush=True); time.sleep(600)"
    )
    wrapper = subprocess.Popen(
        [command_path(), "profile", "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=hear_signals,
    )
    assert wrapper.stdout is not None
    program = int(wrapper.stdout.readline())
    wrapper.send_signal(number)
    _, errors = wrapper.communicate(timeout=60)
    assert wrapper.returncode == 128 + number
    assert "resident (RSS)" in errors  # what was seen until then
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{program}") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{program}")


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "r.trace"
    assert lowtide("profile", "-o", path, "--", "sleep", "0.3").returncode == 0
    return path


def test_a_truncated_trace_is_reported_up_to_its_end(trace):
    whole = trace.read_bytes()
    trace.write_bytes(whole[: len(whole) * 2 // 3])
    told = lowtide("profile", trace)
    assert told.returncode == 0, told.stderr
    assert "last line of the trace is incomplete" in told.stdout


def test_a_trace_of_a_newer_format_is_refused(trace):
    first, rest = trace.read_bytes().split(b"\n", 1)
    trace.write_bytes(re.sub(rb"\d+", b"99", first, count=1) + b"\n" + rest)
    told = lowtide("profile", trace)
    assert told.returncode == 1
    assert "99" in told.stderr
    assert told.stdout == ""


def test_names_that_are_not_text_are_accepted_and_shown_on_one_line(tmp_path):
    trace = bytes(tmp_path) + b"/two\nlines \xff.trace"
    told = lowtide("profile", "--json", "-o", trace, "--", "echo", b"\xff\n")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout.splitlines()[-1])["command"] == ["echo", "\ufffd\n"]
    assert lowtide("profile", trace).returncode == 0
    missing = lowtide("profile", trace + b"2.trace")
    assert missing.returncode == 2
    assert missing.stderr.splitlines() == [
        f"lowtide profile: no such file: {tmp_path}/two\\nlines \\xff.trace2.trace"
    ]
    no_program = lowtide("profile", "--", bytes(tmp_path) + b"/no\n\xff")
    assert no_program.returncode == 127
    assert len(no_program.stderr.splitlines()) == 1


def test_a_file_that_is_not_a_trace_is_refused(tmp_path):
    (tmp_path / "x.trace").write_bytes(b"\xff\x00 no trace")
    assert lowtide("profile", tmp_path / "x.trace").returncode == 1
    assert lowtide("profile", tmp_path / "none.trace").returncode == 2


def test_a_bad_interval_is_exit_2():
    for interval in ["0", "-1", "soon", "nan"]:
        assert lowtide("profile", "--interval", interval, "--", "true").returncode == 2


def test_it_fits_a_terminal_of_40_columns():
    code, text = on_terminal("profile", "--", "sleep", "0.2", columns=40, NO_COLOR="1")
    assert code == 0
    table = text.split("\n\n")[0]
    assert max(len(line) for line in table.splitlines()) <= 40
