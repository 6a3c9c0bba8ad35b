"""The command as a whole: help, errors, exit codes, terminals of every kind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from command import command_path, environment, lowtide, on_terminal

VERBS = re.findall(r"^  (\w+) {2,}", lowtide().stdout.split("Verbs")[1].split("Options")[0], re.M)


def test_without_arguments_it_prints_its_help():
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


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_is_its_help(verb):
    assert lowtide("help", verb).stdout == lowtide(verb, "--help").stdout


def test_help_alone_lists_the_verbs():
    assert lowtide("help").stdout == lowtide("--help").stdout
    told = lowtide("help", "chekc")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == 'lowtide help: no verb "chekc"; did you mean "check"?\n'


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
        'lowtide: no verb "zzzzzzzzzz"; lowtide --help lists all verbs\n',
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


WRONG = [
    (("cache", "--evcit", "x"), "cache: no option --evcit; did you mean --evict?"),
    (("check", "--mem", "1MiB", "x"), "check: no option --mem; did you mean --memory?"),
    (("info", "--zzz", "x"), "info: no option --zzz; lowtide info --help lists all options"),
    (("info", "-z", "x"), "info: no option -z; lowtide info --help lists all options"),
    (("--vers",), ": no option --vers; did you mean --version?"),
    (
        ("check", "x", "--memory"),
        "check: --memory needs a value: --memory SIZE; lowtide check --help explains it",
    ),
    (
        ("check", "--memory=", "x"),
        "check: --memory needs a value: --memory SIZE; lowtide check --help explains it",
    ),
    (("info", "--json=yes", "x"), 'info: --json takes no value, but found "--json=yes"'),
    (
        ("info",),
        "info: no FILE was given: lowtide info [options] FILE...; lowtide info --help explains it",
    ),
    (
        ("completion",),
        "completion: no SHELL was given: lowtide completion [options] SHELL; "
        "lowtide completion --help explains it",
    ),
    (("bench", "a", "b"), 'bench: expected one FILE, but found a second: "b"'),
    (("doctor", "a", "b"), 'doctor: expected one PATH, but found a second: "b"'),
    (("demo", "a"), 'demo: lowtide demo takes no file, but found "a"'),
    (
        ("guard", "true"),
        "guard: --limit is missing; for example: lowtide guard --limit 512MiB python train.py",
    ),
    (
        ("guard", "--limit", "1GiB"),
        "guard: no program was given: write it after the options, as in lowtide guard "
        "--limit 512MiB python train.py",
    ),
    (
        ("guard", "--limit", "1GiB", "--cache", "x", "true"),
        'guard: --cache: expected keep or drop, found "x"',
    ),
    (
        ("cache", "--evict", "--warm", "x"),
        "cache: --evict and --warm cannot be combined: give only one of them",
    ),
    (
        ("check", "--vocab", "1", "--vocab", "2", "x"),
        "check: --vocab was given twice: give it once",
    ),
    (
        ("guard", "--limit", "512M", "true"),
        "guard: --limit: 512M: do you mean 512MiB or 512MB?",
    ),
    (("check", "--memory", "64m", "x"), "check: --memory: 64m: do you mean 64MiB or 64MB?"),
    (("bench", "--memory", "1.5G", "x"), "bench: --memory: 1.5G: do you mean 1.5GiB or 1.5GB?"),
    (("doctor", "--memory", "8k"), "doctor: --memory: 8k: do you mean 8KiB or 8KB?"),
    (
        ("bench", "--seconds", "soon", "x"),
        'bench: --seconds: expected a number of seconds, found "soon"',
    ),
    (("info", "--shape", "a", "x"), 'info: --shape: expected a whole number, found "a"'),
    (("info", "--order", "G", "x"), 'info: --order: expected C or F, found "G"'),
]


@pytest.mark.parametrize("words, sentence", WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_what_is_wrong_with_the_words_is_said_in_a_sentence(words, sentence):
    told = lowtide(*words)
    assert told.returncode == 2
    assert told.stderr == f"lowtide {sentence}\n".replace("lowtide :", "lowtide:")
    assert told.stdout == ""


def test_advice_speaks_the_language_of_the_command(tmp_path):
    (tmp_path / "m.f32").write_bytes(bytes(4000))
    np.arange(1, 5000, dtype="<u4").tofile(tmp_path / "t.bin")
    np.save(tmp_path / "m.npy", np.zeros((3000, 100)))
    for words in [
        ("info", "m.f32"),
        ("info", "--dtype", "complex128", "--offset", "8", "m.f32"),
        ("info", "t.bin"),
        ("check", "--memory", "1KiB", "m.npy"),
        ("bench", "--memory", "1KiB", "m.npy"),
    ]:
        told = lowtide(*words[:-1], tmp_path / words[-1])
        assert told.returncode in (1, 2), words
        assert re.search(r"\w=", told.stderr) is None, told.stderr
    assert re.search(r"\w+=\S", lowtide("doctor", tmp_path / "m.npy").stdout) is None


@pytest.mark.parametrize("words", [("bench",), ("doctor",), ("profile",)])
def test_a_failure_is_an_object_where_json_was_asked_for(words, tmp_path):
    told = lowtide(*words, "--json", tmp_path / "none.trace")
    assert told.returncode == 2
    assert json.loads(told.stdout)["error"] in told.stderr


@pytest.mark.parametrize("verb", ["info", "check", "cache", "doctor", "bench", "profile"])
def test_a_missing_file_is_exit_2(verb, tmp_path):
    told = lowtide(verb, tmp_path / "x.trace")
    assert told.returncode == 2
    assert told.stderr == f"lowtide {verb}: no such file: {tmp_path}/x.trace\n"


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


@pytest.mark.parametrize("name", ["cache", "help", "-", "[a,b]"])
def test_a_file_may_be_named_like_anything(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "x.npy").rename(tmp_path / name)
    assert lowtide("info", name).returncode == 0
    assert lowtide("check", name, "--json").returncode == 0


@pytest.fixture
def odd_names(tmp_path):
    """Files whose names a terminal should not be shown."""
    names = [
        b"with space.npy",
        b"two\nlines.npy",
        b"\xff\xfe.npy",
        b"\x1b[31mred.npy",
        "a\u009b31mred.npy".encode(),
        "a\u202egpj.npy".encode(),
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
        "a\\xc2\\x9b31mred.npy",
        "a\\xe2\\x80\\xaegpj.npy",
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
    parts = ["two\\nlines", "\\xff\\xfe", "\\x1b[31mred", "\\xc2\\x9b31mred", "\\xe2\\x80\\xaegpj"]
    for name, part in zip(odd_names[1:6], parts, strict=True):
        told = lowtide(*words, name)
        assert told.returncode == 0, told.stderr
        assert part in told.stdout
        assert all(line.isprintable() for line in (told.stdout + told.stderr).split("\n"))


@pytest.mark.parametrize("words", LOOKS)
def test_json_escapes_what_a_terminal_would_obey(words, odd_names):
    for name in [*odd_names[1:2], *odd_names[3:6]]:
        told = lowtide(*words, "--json", name)
        assert told.returncode == 0, told.stderr
        assert told.stdout.rstrip("\n").isprintable()
        assert os.fsdecode(name) in _texts(json.loads(told.stdout))


def _texts(value):
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in items for text in _texts(item)]


def test_a_report_shows_what_is_hidden_in_a_name(odd_names, tmp_path):
    code = (
        "import mmap, sys, time\n"
        "file = open(sys.argv[1], 'rb')\n"
        "pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "sum(pages[::4096])\n"
        "time.sleep(0.3)\n"
    )
    outputs = [tmp_path / f"report.{suffix}" for suffix in ("html", "svg", "json")]
    for name in odd_names[4:6]:
        words = [word for output in outputs for word in ("-o", output)]
        told = lowtide("profile", *words, "--json", sys.executable, "-c", code, name)
        assert told.returncode == 0, told.stderr
        for text in [told.stdout, *(output.read_text() for output in outputs)]:
            assert "\u009b" not in text
            assert "\u202e" not in text


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
