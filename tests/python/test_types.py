"""The package as tools see it: names, docstrings, the cost of an import."""

from __future__ import annotations

import inspect
import re

import lowtide as lt
import pytest
from conftest import run


def test_the_names_of_the_package():
    for name in ("open", "Array", "Batches", "FormatError", "__version__"):
        assert name in lt.__all__
        assert getattr(lt, name) is not None
    assert issubclass(lt.FormatError, ValueError)
    assert lt.FormatError.__module__ == "lowtide"


def test_everything_public_has_a_docstring():
    for name in set(lt.__all__) - {"__version__"}:
        public = getattr(lt, name)
        assert public.__doc__, name
        for member, value in members(public):
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{name}.{member}"


def members(public):
    """The members of a class, also those of our own classes below it."""
    bases = public.__mro__ if isinstance(public, type) else ()
    ours = [base for base in bases if base.__module__.startswith("lowtide")]
    return [item for base in ours for item in vars(base).items()]


# Users never call these themselves: lt.open, a loader, a file make them.
MADE_BY_OTHERS = {
    "Csr",
    "Array",
    "Batch",
    "Batches",
    "Documents",
    "FormatError",
    "Part",
    "Ragged",
    "Tokens",
    "Verdict",
    "Writer",
}


def test_docstrings_name_every_argument():
    for name in set(lt.__all__) - {"__version__"}:
        check_arguments(getattr(lt, name), name)


def test_docstrings_of_torch_name_every_argument():
    pytest.importorskip("torch")
    for name in lt.torch.__all__:
        check_arguments(getattr(lt.torch, name), name)


def check_arguments(public, name):
    if not isinstance(public, type):
        check_function(public, public.__doc__, name)
        return
    for member, value in members(public):
        if inspect.isfunction(value) and not member.startswith("_"):
            check_function(value, value.__doc__, f"{name}.{member}")
    if name not in MADE_BY_OTHERS | {"When"}:
        made = public.__new__ if public is lt.memmap else public.__init__
        check_function(made, public.__doc__ + (made.__doc__ or ""), name)


def check_function(function, text, name):
    for argument in inspect.signature(function).parameters:
        if argument not in ("self", "cls"):
            assert re.search(rf"^ +\**{argument}: [A-Z`\"(]", text, re.MULTILINE), (name, argument)


def test_the_methods_of_an_array_are_listed_and_explained():
    names = {"mean", "sum", "min", "max", "std", "var", "any", "all", "argmin", "argmax", "take"}
    assert names <= set(dir(lt.Array))
    for name in names:
        assert "Args:" in inspect.getdoc(getattr(lt.Array, name))


def test_import_brings_no_heavy_module():
    code = """
import sys, numpy, inspect  # which NumPy imports itself since 2.3
before = set(sys.modules)
import lowtide
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - {"lowtide"}))
"""
    found = run(code)
    assert found.returncode == 0, found.stderr
    heavy = {"asyncio", "concurrent", "ctypes", "dask", "email", "inspect", "json", "logging"}
    heavy |= {"multiprocessing", "pandas", "pyarrow", "subprocess", "sysconfig", "tempfile"}
    heavy |= {"torch", "typing_extensions", "urllib", "xml", "zipfile"}
    assert not heavy & set(eval(found.stdout))
