"""The command of an installed package: a small program that loads the module and calls it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import lowtide as lt
import lowtide._core
import pytest
from command import command_path, copy_command

ROOT = pathlib.Path(__file__).parents[2]
MODULE = pathlib.Path(lowtide._core.__file__)


@pytest.fixture(autouse=True)
def command() -> str:
    return command_path()  # or skips


def version(prefix: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Runs the command with nothing in its environment, so that it cannot find a Python."""
    return subprocess.run(
        [prefix / "bin" / "lowtide", "--version"], env={}, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "folder",
    [
        "lib/python3.11/site-packages",
        "lib/python3/dist-packages",
        "lib64/python3.13/site-packages",
        ".",
    ],
)
def test_it_finds_the_module_of_its_own_prefix_without_python(tmp_path, folder):
    prefix = tmp_path / "a [b] *"  # names that a pattern would not match
    copy_command(prefix, folder)
    found = version(prefix)
    assert (found.stdout, found.stderr) == (f"lowtide {lt.__version__}\n", "")


def test_it_follows_the_link_by_which_it_was_called(tmp_path):
    copy_command(tmp_path / "tool", "lib/python3.12/site-packages")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lowtide").symlink_to(tmp_path / "tool" / "bin" / "lowtide")
    assert version(tmp_path).stdout == f"lowtide {lt.__version__}\n"


def test_a_module_of_another_version_is_passed_over(tmp_path):
    copy_command(tmp_path, "lib/python3.11/site-packages")
    module = tmp_path / "lib/python3.11/site-packages/lowtide" / MODULE.name
    entry = b"lowtide_main_" + lt.__version__.replace(".", "_").encode()
    assert entry in module.read_bytes()
    module.write_bytes(module.read_bytes().replace(entry, entry[:-1] + b"x"))
    found = version(tmp_path)
    assert found.returncode == 1
    assert f"package lowtide {lt.__version__}" in found.stderr
    assert "pip install --force-reinstall lowtide" in found.stderr
    copy_command(tmp_path, "lib/python3.12/site-packages")
    assert version(tmp_path).stdout == f"lowtide {lt.__version__}\n"


def test_a_module_that_cannot_be_loaded_is_reported(tmp_path):
    copy_command(tmp_path, "lib/python3.11/site-packages")
    module = tmp_path / "lib/python3.11/site-packages/lowtide" / MODULE.name
    module.write_bytes(b"not a module")
    found = version(tmp_path)
    assert found.returncode == 1
    assert str(module) in found.stderr


def test_a_command_without_its_package_says_so(tmp_path):
    copy_command(tmp_path)
    found = version(tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert str(tmp_path) in found.stderr


def test_all_references_of_the_module_to_python_are_weak(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "python" / "command"))
    weaken = pytest.importorskip("weaken", reason="needs the sources")
    elf = MODULE.read_bytes()
    assert not list(weaken.python_symbols(elf))
    assert b"PyErr_SetString" in elf, "the names are there"
    with pytest.raises(SystemExit, match="not a little-endian ELF"):
        list(weaken.python_symbols(b"\x7fELF\x01\x01" + bytes(100)))
    sys.modules.pop("weaken")
