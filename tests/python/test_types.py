"""The package as tools see it: names, stubs, the cost of an import."""

from __future__ import annotations

import lowtide as lt
from conftest import run


def test_the_names_of_the_package():
    for name in ("open", "Array", "Batches", "FormatError", "__version__"):
        assert name in lt.__all__
        assert getattr(lt, name) is not None
    assert issubclass(lt.FormatError, ValueError)
    assert lt.FormatError.__module__ == "lowtide"


def test_everything_public_has_a_docstring():
    for kind in (lt.Array, lt.Batches):
        for name, value in vars(kind).items():
            if not name.startswith("_"):
                assert value.__doc__, f"{kind.__name__}.{name}"
    assert lt.open.__doc__


def test_import_brings_no_heavy_module():
    code = """
import sys, numpy
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
