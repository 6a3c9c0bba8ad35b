"""`lt.doctor`: what this build has and what the machine allows."""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from pathlib import Path

import lowtide as lt
import pytest
from command import command_path, lowtide


def test_it_reports_what_the_command_reports(matrix):
    path, _ = matrix
    command = command_path()
    mine = lt.doctor(path, memory="1MiB")
    other = json.loads(lowtide("doctor", "--json", "--memory", "1MiB", path).stdout)
    of_python = {
        key: mine["build"].pop(key) for key in ("python", "module", "free_threaded", "gil")
    }
    other["build"]["guard"] = os.path.normpath(other["build"]["guard"])
    assert Path(mine["build"].pop("command")).samefile(other["build"].pop("command"))
    assert Path(mine["build"].pop("guard")).samefile(other["build"].pop("guard"))
    assert mine["build"] == other["build"]
    assert [fact["name"] for fact in mine["facts"]] == [fact["name"] for fact in other["facts"]]
    assert mine["facts"][0] == other["facts"][0]
    assert (mine["path"], mine["conclusion"]) == (str(path), other["conclusion"])
    assert Path(command).samefile(lt.doctor()["build"]["command"])
    assert of_python["python"] == sys.version.split()[0]
    assert of_python["module"].startswith("_core.")
    assert of_python["gil"] or of_python["free_threaded"]


def test_json_can_hold_it_even_with_names_that_are_no_text(tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.bin"))
    odd.write_bytes(bytes(64))
    found = lt.doctor(odd)
    assert found["path"] == str(odd)
    assert json.loads(json.dumps(found)) == found
    assert lt.doctor()["path"] is None


def test_the_version_is_the_same_everywhere():
    version = metadata.version("lowtide")
    assert lt.__version__ == version
    assert lt.doctor()["build"]["version"] == version
    assert lowtide("--version").stdout == f"lowtide {version}\n"
    assert f'"lowtide {version}"' in lowtide("--man").stdout
    root = Path(__file__).parents[2]
    assert f"project(lowtide VERSION {version} " in (root / "CMakeLists.txt").read_text()
    assert f"\n## [{version}] - " in (root / "CHANGELOG.md").read_text()


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        lt.doctor(tmp_path / "missing")
    with pytest.raises(TypeError, match=r"path must be a str or an os\.PathLike, not list"):
        lt.doctor([tmp_path])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="memory"):
        lt.doctor(memory=-1)
