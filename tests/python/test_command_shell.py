"""Completion for the shell and the manual page, made from the options."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from command import command_path, environment, lowtide


def completed(line: str, tmp_path: pathlib.Path) -> list[str]:
    """What bash offers for the last word of `line`."""
    script = tmp_path / "lowtide.bash"
    script.write_text(lowtide("completion", "bash").stdout)
    words = line.split(" ")
    code = (
        f"source {script}; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
        f"COMP_CWORD={len(words) - 1}; _lowtide; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    found = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=60)
    assert found.stderr == ""
    return found.stdout.split()


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing")


@needs_bash
def test_bash_completes_verbs(tmp_path):
    assert completed("lowtide c", tmp_path) == ["check", "cache", "convert", "completion"]
    assert completed("lowtide help c", tmp_path) == ["check", "cache", "convert", "completion"]
    assert completed("lowtide --ver", tmp_path) == ["--version"]


@needs_bash
def test_bash_completes_the_options_of_a_verb(tmp_path):
    assert completed("lowtide cache --e", tmp_path) == ["--evict"]
    assert "--vocab" in completed("lowtide check --", tmp_path)
    assert "--evict" not in completed("lowtide check --", tmp_path)
    assert completed("lowtide completion ", tmp_path) == ["bash", "zsh", "fish"]


@needs_bash
def test_bash_offers_no_files_for_a_number(tmp_path):
    assert completed("lowtide check --vocab ", tmp_path) == []


@needs_bash
def test_bash_completes_the_program_that_guard_runs(tmp_path):
    for line in ["guard --limit 1GiB ", "guard --limit 1GiB -- ", "guard --json "]:
        assert "bash" in completed(f"lowtide {line}bas", tmp_path)
    assert completed("lowtide guard --li", tmp_path) == ["--limit"]
    assert completed("lowtide guard --limit 1GiB bash --js", tmp_path) == []


def fish_offers(line: str, tmp_path: pathlib.Path) -> list[str]:
    script = tmp_path / "lowtide.fish"
    script.write_text(lowtide("completion", "fish").stdout)
    code = f"source {script}; complete -C '{line}'"
    found = subprocess.run(["fish", "-N", "-c", code], capture_output=True, text=True, timeout=60)
    assert found.stderr == ""
    return [offer.split("\t")[0] for offer in found.stdout.splitlines()]


def test_fish_completes_verbs_options_and_programs(tmp_path):
    script = lowtide("completion", "fish").stdout
    for verb in ("info", "guard", "help"):
        assert f"-a {verb} -d '" in script
    if shutil.which("fish") is None:
        pytest.skip("fish is missing: the script was not run")
    assert set(fish_offers("lowtide c", tmp_path)) == {"check", "cache", "convert", "completion"}
    assert fish_offers("lowtide cache --ev", tmp_path) == ["--evict"]
    assert "--evict" not in fish_offers("lowtide check --", tmp_path)
    assert set(fish_offers("lowtide completion ", tmp_path)) == {"bash", "zsh", "fish"}
    assert "bench" in fish_offers("lowtide help b", tmp_path)
    assert fish_offers("lowtide check --vocab ", tmp_path) == []
    assert "bash" in fish_offers("lowtide guard --limit 1GiB bas", tmp_path)


def test_zsh_can_read_its_script(tmp_path):
    script = lowtide("completion", "zsh").stdout
    assert script.startswith("#compdef lowtide\n")
    assert "--evict[" in script
    for verb in script.split("_arguments")[1:]:  # zsh refuses a second rest of the words
        assert verb.split(";;")[0].count("'*:") <= 1
    if shutil.which("zsh") is None:
        pytest.skip("zsh is missing: the script was not parsed")
    path = tmp_path / "_lowtide"
    path.write_text(script)
    subprocess.run(["zsh", "-n", path], check=True, timeout=60)


def test_another_shell_is_exit_2():
    told = lowtide("completion", "tcsh")
    assert told.returncode == 2
    assert told.stderr == 'lowtide completion: expected bash, zsh or fish, found "tcsh"\n'


def test_the_manual_page_has_every_verb_and_no_faults(tmp_path):
    page = tmp_path / "lowtide.1"
    page.write_text(lowtide("--man").stdout)
    verbs = [
        line.split()[0]
        for line in lowtide().stdout.split("Verbs")[1].split("Options")[0].strip().splitlines()
    ]
    for verb in verbs:
        assert f"lowtide {verb}" in page.read_text()
    if shutil.which("groff") is None:
        pytest.skip("groff is missing: the page was not formatted")
    found = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, timeout=60)
    assert found.stderr == b""


def test_the_manual_page_is_installed_with_the_command():
    page = pathlib.Path(sys.prefix) / "share/man/man1/lowtide.1"
    if pathlib.Path(command_path()).parent != pathlib.Path(sys.prefix) / "bin":
        pytest.skip("the command was not installed by pip")
    assert page.read_text() == lowtide("--man").stdout


def test_it_needs_neither_python_nor_a_library_of_ours():
    ldd = shutil.which("ldd")
    if ldd is None:
        pytest.skip("ldd is missing")
    linked = subprocess.check_output([ldd, command_path()], text=True, timeout=60)
    assert "python" not in linked
    assert "lowtide" not in linked
    assert os.path.getsize(command_path()) < 3 << 20
    alone = {key: value for key, value in environment().items() if key != "PATH"}
    subprocess.run([command_path(), "--version"], env={**alone, "PATH": ""}, check=True, timeout=60)
