"""A reader for DLIO that reads .npy files with Lowtide; DLIO imports it (`reader_classname`)."""

from __future__ import annotations

from typing import Any

import lowtide
from dlio_benchmark.reader.npy_reader import NPYReader


class LowtideReader(NPYReader):
    """As DLIO's own reader, which loads a file by np.load; samples are along the last axis."""

    def open(self, filename: str) -> Any:
        return lowtide.open(filename, memory="64MiB")

    def get_sample(self, filename: str, sample_index: int) -> None:
        self.open_file_map[filename][..., sample_index]

    def close(self, filename: str) -> None:
        self.open_file_map[filename].close()
