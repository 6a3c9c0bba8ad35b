"""`./dev bench against`: two installations of Lowtide, measured in turns."""

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import lowtide
import pytest

PROGRAM = Path(__file__).parents[2] / "bench" / "scenarios" / "against.py"


@pytest.fixture
def wheel(tmp_path):
    """A wheel of the installed package, which says on import that it is the other one."""
    name = f"lowtide-{lowtide.__version__}"
    path = tmp_path / f"{name}-py3-none-any.whl"
    metadata = distribution("lowtide").read_text("METADATA")
    with zipfile.ZipFile(path, "w") as archive:
        for file in Path(lowtide.__file__).parent.rglob("*"):
            if file.is_file() and file.suffix != ".pyc":
                archive.write(
                    file, Path("lowtide") / file.relative_to(Path(lowtide.__file__).parent)
                )
        archive.writestr(f"{name}.dist-info/METADATA", metadata)
        archive.writestr(
            f"{name}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{name}.dist-info/RECORD", "")
    return path


def run(*words, cwd, **env):
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**kept, **env},
    )


@pytest.mark.slow
def test_both_sides_run_the_same_methods_in_turns(wheel, tmp_path):
    out = tmp_path / "out.json"
    quick = ["--data", tmp_path, "--rows", 20_000, "--rounds", 2, "--only", "hot-64,hot-preadv"]
    done = run(wheel, "rows", *quick, "--least", 0, "--out", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    turns = [line for line in done.stderr.splitlines() if line.startswith("round ")]
    names = ["this tree", wheel.name]
    assert [next(name for name in names if f", {name}:" in turn) for turn in turns] == [
        *names, *names, *names[::-1], *names[::-1],
    ]  # fmt: skip
    result = json.loads(out.read_text())
    assert [cell["key"] for cell in result["bars"]] == ["hot-64", "hot-64-own"]  # not preadv
    for cell in result["bars"]:
        assert cell["rounds"] == 2
        assert cell["least"] <= cell["ratio"] <= cell["most"]
    assert "lowtide 64MiB" in done.stdout and "PASS" in done.stdout
    assert str(tmp_path) not in out.read_text()


def test_a_ratio_below_the_least_is_named_and_fails(wheel, tmp_path):
    out = tmp_path / "out.json"
    quick = ["--data", tmp_path, "--rows", 5_000, "--rounds", 1, "--only", "hot-scan"]
    done = run(wheel, "rows", *quick, "--least", 1e9, "--out", out, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "below 1e+09" in done.stdout


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("no-such-revision", "no-such-revision"),
        ("nowhere.whl", "nowhere.whl: no such wheel"),
    ],
)
def test_what_cannot_be_installed_is_named(other, words, tmp_path):
    done = run(other, "rows", cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr


def test_a_revision_without_git_is_an_error_of_one_line(tmp_path):
    done = run("HEAD", "rows", cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == "against: revision HEAD: git is not installed\n"
