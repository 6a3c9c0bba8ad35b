"""tools/wheels/targets.py: the names by which pip and Python choose a wheel and its module."""

import pathlib
import sys

import pytest

TOOLS = pathlib.Path(__file__).parents[2] / "tools" / "wheels"


@pytest.fixture
def targets(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import targets

    yield targets
    sys.modules.pop("targets")


def test_every_wheel_has_tags_of_its_own(targets):
    assert len({target.file_tags for target in targets.TARGETS}) == len(targets.TARGETS) == 15


@pytest.mark.parametrize(
    "name, suffix",
    [
        ("cp310-manylinux_x86_64", ".cpython-310-x86_64-linux-gnu.so"),
        ("cp311-manylinux_aarch64", ".cpython-311-aarch64-linux-gnu.so"),
        ("cp310-musllinux_x86_64", ".cpython-310-x86_64-linux-gnu.so"),  # as in NumPy's wheel
        ("cp311-musllinux_x86_64", ".cpython-311-x86_64-linux-musl.so"),
        ("cp314t-musllinux_x86_64", ".cpython-314t-x86_64-linux-musl.so"),
    ],
)
def test_the_module_has_the_suffix_that_its_python_looks_for(targets, name, suffix):
    (target,) = targets.chosen([name])
    assert target.extension_suffix == suffix


def test_a_word_that_no_wheel_has_is_an_error_with_the_names(targets):
    with pytest.raises(SystemExit, match=r"(?s)cp39: no wheel has this.*cp310-manylinux_x86_64"):
        targets.chosen(["cp39"])
