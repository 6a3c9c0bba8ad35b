"""Which libcurl reads objects: that of the system, or the one that a wheel contains."""

import os
import pathlib
import shutil
import subprocess
import sys

import lowtide as lt
import pytest
from lowtide import _core

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)

PROGRAM = "from lowtide import _core; print(_core.why_no_http())"


def mapped(word: str) -> pathlib.Path:
    """A library that this process has loaded."""
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return next(pathlib.Path(line.split()[-1]) for line in lines if word in line)


@pytest.fixture
def unusable(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder whose libraries have the names of libcurl and none of its functions."""
    folder = tmp_path / "unusable"
    folder.mkdir()
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        shutil.copyfile(mapped("libm.so"), folder / name)
    return folder


def why_not(packages: pathlib.Path, libraries: pathlib.Path) -> str:
    """What the copy of lowtide in `packages` says, with `libraries` before those of the system."""
    found = {"PYTHONPATH": str(packages), "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **found},
        cwd=packages,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("where", ["lib/python3/site-packages", "."], ids=["venv", "target"])
def test_a_library_in_the_wheel_takes_the_place_of_an_unusable_one(tmp_path, unusable, where):
    packages = tmp_path / "environment" / where
    shutil.copytree(pathlib.Path(lt.__file__).parent, packages / "lowtide")
    assert why_not(packages, unusable) == "the libcurl of this machine is older than 7.88"
    wheel = tmp_path / "environment" / "lib" / "lowtide"
    wheel.mkdir(parents=True)
    (wheel / "liblowtide_curl.so").symlink_to(mapped("curl"))
    assert why_not(packages, unusable) == ""
