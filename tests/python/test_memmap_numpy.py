"""NumPy's own tests of np.memmap, from the NumPy that is installed, with lt.memmap in its place."""

from __future__ import annotations

import importlib

import lowtide as lt
import pytest


def _theirs():
    for name in ("numpy._core.tests.test_memmap", "numpy.core.tests.test_memmap"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    pytest.skip("this NumPy came without its tests", allow_module_level=True)


theirs = _theirs()


class TestWithOurClass(theirs.TestMemmap):
    """Every test of theirs; the name `memmap` in their module is our class."""

    @pytest.fixture(autouse=True)
    def _ours(self, monkeypatch):
        monkeypatch.setattr(theirs, "memmap", lt.memmap)

    def test_that_it_is_our_class(self):
        made = theirs.memmap(self.tmpfp, dtype=self.dtype, mode="w+", shape=self.shape)
        assert type(made) is lt.memmap
