"""The conda recipe: it renders for every target, and its own tests hold here."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from command import command_path

ROOT = pathlib.Path(__file__).parents[2]
RECIPE = ROOT / "packaging/conda/recipe.yaml"


def rendered(target: str) -> list[dict[str, Any]]:
    """The recipe for each Python, built on x86_64 for `target`."""
    rattler = pytest.importorskip("rattler_build")
    platform = rattler.PlatformConfig(
        build_platform="linux-64", host_platform=target, target_platform=target
    )
    variants = rattler.VariantConfig.from_file(str(RECIPE.with_name("variants.yaml")))
    recipe = rattler.Stage0Recipe.from_file(str(RECIPE))
    found = recipe.render(variants, rattler.RenderConfig(platform=platform))
    return [one.recipe.to_dict() for one in found]


@pytest.mark.parametrize("target", ["linux-64", "linux-aarch64"])
def test_it_renders_for_every_python(target):
    recipes = rendered(target)
    strings = sorted(recipe["build"]["string"][:5] for recipe in recipes)
    assert strings == ["py310", "py311", "py312", "py313", "py314"]
    for recipe in recipes:
        needed = recipe["requirements"]["build"]
        assert f"gxx_{target}" in needed
        assert (f"cross-python_{target}" in needed) == (target != "linux-64")


def test_it_builds_what_the_other_files_say():
    cmake = (ROOT / "CMakeLists.txt").read_text()
    pyproject = (ROOT / "pyproject.toml").read_text()
    recipe = rendered("linux-64")[0]
    assert f"project(lowtide VERSION {recipe['package']['version']} " in cmake
    for package in ("scikit-build-core >=0.10", "nanobind >=2.4"):
        assert package in recipe["requirements"]["host"]
        assert f'"{package}"' in pyproject
    assert "numpy >=1.24" in recipe["requirements"]["run"]
    assert 'dependencies = ["numpy >=1.24"]' in pyproject
    liburing = recipe["source"][1]
    fetched = (ROOT / "cmake/liburing.cmake").read_text()
    assert liburing["sha256"] in fetched
    assert all(url.endswith(re.search(r"FILE (\S+)", fetched)[1]) for url in liburing["url"])


def test_its_own_tests_hold_for_this_installation(tmp_path):
    command_path()  # or skips
    tests = rendered("linux-64")[0]["tests"]
    script = "\n".join(line for test in tests for line in test.get("script", []))
    assert "lowtide doctor --json" in script
    beside = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": beside},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_release_writes_its_version_and_hash_into_it(tmp_path):
    sdist = tmp_path / "lowtide-7.8.9.tar.gz"
    sdist.write_bytes(b"an sdist")
    copy = tmp_path / "recipe.yaml"
    copy.write_text(RECIPE.read_text())
    words = [sys.executable, ROOT / "tools/conda_source.py", sdist, copy]
    assert subprocess.run(words).returncode == 0
    before = RECIPE.read_text().splitlines()
    changed = [
        line for old, line in zip(before, copy.read_text().splitlines(), strict=True) if old != line
    ]
    assert [line.split("#")[0].strip() for line in changed] == [
        'version: "7.8.9"',
        f'sha256: "{hashlib.sha256(b"an sdist").hexdigest()}"',
    ]
    words[2] = tmp_path / "other.tar.gz"
    assert subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 1
