"""Finds out what `lowtide.info` and `lowtide.check` are asked about, if the core cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lowtide import _core
from lowtide._data import arrow, arrow_inspect, hdf5, hdf5_inspect, scdl, sparse_inspect
from lowtide._data.files import Files

if TYPE_CHECKING:
    from lowtide._data.arrow_reader import Sources


class Subject(NamedTuple):
    """What is asked about."""

    names: list[bytes]
    shape: list[int] | None = None  # if given
    sources: Sources | None = None  # of Arrow files


def find_scdl(names: list[bytes], shape: list[int] | None) -> tuple[Any, Subject] | None:
    """Returns what examines a folder of BioNeMo-SCDL, and the folder; None for anything else."""
    local = len(names) == 1 and not _core.is_address(names[0])
    if not local or not scdl.is_scdl(names[0], Files()):
        return None
    return sparse_inspect, Subject(names, shape)


def find(names: list[bytes], word: str | None) -> tuple[Any, Subject] | None:
    """The same for Arrow files and an HDF5 file; `word` is the format that the caller names."""
    files = Files()
    if word in (None, "arrow"):
        sources = arrow.files_of(names, files)
        if sources is not None:
            return arrow_inspect, Subject(names, sources=sources)
    if word in (None, "hdf5") and len(names) == 1 and hdf5.is_hdf5(names[0], files):
        return hdf5_inspect, Subject(names)
    return None
