"""The command as a whole: help, errors, exit codes, terminals of every kind."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
from command import command_path, environment, lowtide, on_terminal

VERBS = re.findall(r"^  (\w+) {2,}", lowtide().stdout.split("Verbs")[1].split("Options")[0], re.M)


def test_alone_it_prints_its_help():
    alone = lowtide()
    assert alone.returncode == 0
    assert "Usage" in alone.stdout
    assert {"info", "check", "cache"} <= set(VERBS)
    assert lowtide("--help").stdout == alone.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb):
    told = lowtide(verb, "--help")
    assert told.returncode == 0
    assert f"lowtide {verb}" in told.stdout.split("Example")[1]
    assert told.stderr == ""


def test_version_is_that_of_the_package():
    import lowtide as lt

    assert lowtide("--version").stdout == f"lowtide {lt.__version__}\n"


@pytest.mark.parametrize("word, meant", [("infp", "info"), ("chekc", "check"), ("cahce", "cache")])
def test_an_unknown_verb_suggests_the_nearest(word, meant):
    told = lowtide(word, "x")
    assert told.returncode == 2
    assert told.stdout == ""
    assert told.stderr == f'lowtide: no verb "{word}"; did you mean "{meant}"?\n'


def test_a_verb_like_no_other_points_to_the_list():
    told = lowtide("zzzzzzzzzz")
    assert (told.returncode, told.stderr) == (
        2,
        'lowtide: no verb "zzzzzzzzzz"; lowtide --help lists them\n',
    )


@pytest.mark.parametrize(
    "words",
    [("info",), ("info", "--wrong", "x"), ("check", "--memory"), ("--wrong",)],
)
def test_wrong_usage_is_exit_2_with_the_way_out(words):
    told = lowtide(*words)
    assert told.returncode == 2
    assert "--help" in told.stderr
    assert told.stdout == ""


@pytest.mark.parametrize("verb", ["info", "check", "cache", "doctor", "bench"])
def test_a_missing_file_is_exit_2(verb, tmp_path):
    told = lowtide(verb, tmp_path / "x")
    assert told.returncode == 2
    assert told.stderr == f"lowtide {verb}: no such file: {tmp_path}/x\n"


@pytest.mark.parametrize("verb", ["info", "check", "cache"])
def test_a_pattern_without_a_match_is_exit_2(verb, tmp_path):
    told = lowtide(verb, tmp_path / "*.bin")
    assert told.returncode == 2
    assert "no file matches" in told.stderr


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        told = subprocess.run(
            [command_path(), "--help"], stdout=full, stderr=subprocess.PIPE, env=environment()
        )
    assert told.returncode == 1
    assert b"No space left" in told.stderr


def test_words_behind_two_dashes_are_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("--odd.npy", np.zeros(3))
    assert lowtide("info", "--", "--odd.npy").returncode == 0


@pytest.fixture
def odd_names(tmp_path):
    """Files whose names a terminal should not be shown."""
    names = [
        b"with space.npy",
        b"two\nlines.npy",
        b"\xff\xfe.npy",
        b"\x1b[31mred.npy",
        "ü.npy".encode(),
    ]
    for name in names:
        with open(bytes(tmp_path) + b"/" + name, "wb") as file:
            np.save(file, np.zeros((3000, 100), "f4"))  # enough for bench
    return [bytes(tmp_path) + b"/" + name for name in names]


def test_odd_names_never_break_the_table(odd_names):
    told = lowtide("info", *odd_names)
    assert told.returncode == 0
    lines = told.stdout.splitlines()
    assert len(lines) == 1 + len(odd_names)
    for part in [
        "with space.npy",
        "two\\nlines.npy",
        "\\xff\\xfe.npy",
        "\\x1b[31mred.npy",
        "ü.npy",
    ]:
        assert sum(part in line for line in lines) == 1
    assert "\x1b" not in told.stdout
    ends = {line.rindex("100 %") for line in lines[1:] if "100 %" in line}
    assert len(ends) <= 1  # the columns stand below each other


LOOKS = [
    ("info",),
    ("check",),
    ("cache",),
    ("cache", "--evict"),
    ("doctor",),
    ("bench", "--seconds", "0.01"),
]


@pytest.mark.parametrize("words", LOOKS)
def test_every_verb_shows_an_odd_name_on_one_line(words, odd_names):
    for name, part in zip(
        odd_names[1:4], ["two\\nlines", "\\xff\\xfe", "\\x1b[31mred"], strict=True
    ):
        told = lowtide(*words, name)
        assert told.returncode == 0, told.stderr
        assert part in told.stdout
        assert all(line.isprintable() for line in (told.stdout + told.stderr).split("\n"))


def test_an_odd_name_in_an_error_stays_on_its_line(tmp_path):
    told = lowtide("info", bytes(tmp_path) + b"/no\nsuch\xff")
    assert told.returncode == 2
    assert told.stderr.splitlines() == [f"lowtide info: no such file: {tmp_path}/no\\nsuch\\xff"]


def test_without_utf8_everything_is_ascii(odd_names, tmp_path):
    helps = [(verb, "--help") for verb in VERBS]
    looks = [(*words, odd_names[-1]) for words in LOOKS]
    watched = ("profile", "--", "sleep", "0.1")
    for words in [("info", *odd_names), ("--help",), ("--man",), watched, *helps, *looks]:
        told = lowtide(*words, LANG="C")
        assert told.returncode == 0, told.stderr
        assert told.stdout.isascii()
        assert told.stderr.isascii()
    assert "\\xc3\\xbc.npy" in lowtide("info", *odd_names, LANG="C").stdout


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, np.zeros((3000, 100), "f4"))
    return path


def test_colours_only_on_a_terminal(plain):
    path = plain
    assert "\x1b[" not in lowtide("info", path).stdout
    assert "\x1b[" in on_terminal("info", path)[1]
    assert "\x1b[" not in on_terminal("info", path, NO_COLOR="1")[1]
    for words in LOOKS:
        assert "\x1b[" not in lowtide(*words, path).stdout
        shown = on_terminal(*words, path, NO_COLOR="1")[1].replace("\x1b[K", "")  # progress
        assert "\x1b[" not in shown
        assert "\x1b" not in on_terminal(*words, path, TERM="dumb")[1]
    code, text = on_terminal("info", "/no/such/file")
    assert code == 2
    assert "\x1b[31m" in text


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_lines_fit_the_terminal(columns, plain):
    path = plain
    helps = [(verb, "--help") for verb in VERBS]
    looks = [(*words, path) for words in LOOKS]
    for words in [("info", path, path), ("doctor",), ("--help",), *looks, *helps]:
        code, text = on_terminal(*words, columns=columns, NO_COLOR="1")
        assert code == 0, text
        lines = text.replace("\x1b[K", "").splitlines()
        spaced = [line for line in lines if " " in line.strip()]
        examples = [line for line in spaced if line.startswith(("  lowtide", str(path.parent)))]
        assert max(len(line) for line in spaced if line not in examples) <= max(columns, 40), text
