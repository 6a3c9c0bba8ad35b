"""`python -m lowtide` is the command of the same installation."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import lowtide as lt
import pytest
from command import command_path


@pytest.fixture(autouse=True)
def command() -> str:
    return command_path()  # or skips


def module(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lowtide", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_it_is_the_installed_command(command: str):
    assert module("--version").stdout == f"lowtide {lt.__version__}\n"
    for words in (["--help"], ["doctor", "--help"], ["no-such-verb"], ["check", "/missing"]):
        mine = subprocess.run([command, *words], capture_output=True, text=True)
        other = module(*words)
        told = (other.returncode, other.stdout, other.stderr)
        assert told == (mine.returncode, mine.stdout, mine.stderr)


def test_exit_codes_and_bytes_of_file_names_pass_through(tmp_path):
    assert module("profile", "sh", "-c", "exit 7").returncode == 7
    assert module("--no-such-option").returncode == 2
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.bin")
    pathlib.Path(odd).write_bytes(bytes(64))
    assert module("info", "--dtype", "uint8", odd).returncode == 0


def test_the_process_becomes_the_command():
    started = subprocess.Popen(
        [sys.executable, "-m", "lowtide", "profile", "sh", "-c", "echo $PPID; sleep 100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert started.stdout is not None
    parent = int(started.stdout.readline())
    assert parent == started.pid, "the program's parent is the process that was started"
    started.send_signal(signal.SIGTERM)
    started.stdout.close()
    assert started.wait(60) == 128 + signal.SIGTERM


def test_signals_that_python_ignores_are_as_they_were(tmp_path):
    shown = module("profile", "grep", "SigIgn", "/proc/self/status").stdout
    ignored = int(shown.split("SigIgn:")[1].split()[0], 16)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored >> (number - 1) & 1, number


def test_a_build_without_the_command_says_what_to_do(tmp_path):
    package = pathlib.Path(lt.__file__).parent
    shutil.copytree(package, tmp_path / "lowtide", ignore=shutil.ignore_patterns("__pycache__"))
    hidden = (
        "import importlib.metadata as m, runpy, sysconfig\n"
        "m.files = lambda name: []\n"
        f"sysconfig.get_path = lambda *scheme: {str(tmp_path / 'bin')!r}\n"
        "runpy.run_module('lowtide', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 1
    assert f"{tmp_path}/bin/lowtide" in done.stderr
    assert "this build of Lowtide has no command" in done.stderr
    assert "pip install --force-reinstall lowtide" in done.stderr
