"""Lowtide in DLIO, which imports these classes by their names.

`LowtideReader` replaces only DLIO's reader of .npy files (`reader.reader_classname`): DLIO's worker
processes ask it for one sample at a time. `LowtideLoader` replaces these processes, too
(`reader.data_loader_classname`): it knows the order, so that Lowtide reads batches ahead.

Both open all files at once, as one array joined along the first axis: files of 4.6 MB that are
opened one by one took about three times as long or more. All files must have the same shape.

The `Checked` classes read the same way and compare each sample with np.load; a run with them comes
before the timed ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import lowtide as lt
import numpy as np
from dlio_benchmark.common.enumerations import DataLoaderType, DatasetType, Shuffle
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader
from dlio_benchmark.reader.npy_reader import NPYReader


class LowtideReader(NPYReader):
    """As DLIO's own reader, which loads a file by np.load; samples are along the last axis."""

    def __init__(self, dataset_type: Any, thread_index: int, epoch: int) -> None:
        super().__init__(dataset_type, thread_index, epoch)
        names = [os.path.abspath(name) for name in self._file_list]
        self._array = lt.open(names, memory="64MiB")
        self._rows = len(self._array) // len(names)
        self._numbers = {name: number for number, name in enumerate(names)}

    def open(self, filename: str) -> None:
        """Nothing to do: all files are open."""

    def get_sample(self, filename: str, sample_index: int) -> Any:
        """Reads a sample. DLIO ignores what it returns and delivers an array of its own."""
        first = self._numbers[filename] * self._rows
        return self._array[first : first + self._rows][..., sample_index]


class LowtideLoader(BaseDataLoader):
    """Delivers one epoch with `lowtide.Loader`, in which a sample is all rows of a file."""

    def __init__(self, format_type: Any, dataset_type: Any, epoch_number: int) -> None:
        super().__init__(format_type, dataset_type, epoch_number, DataLoaderType.PYTORCH)

    def read(self) -> None:
        train = self.dataset_type is DatasetType.TRAIN
        names = self._args.file_list_train if train else self._args.file_list_eval
        array = lt.open(names, memory="256MiB")
        self.names = list(names)
        samples = lt.ragged(array, np.arange(len(names) + 1) * (len(array) // len(names)))
        order = "sequential" if self._args.sample_shuffle is Shuffle.OFF else "shuffle"
        self.loader = lt.Loader(samples, self.batch_size, order=order, seed=self._args.seed)

    def next(self) -> Iterator[Any]:
        """Yields what DLIO's own loader yields for a batch: its resized image, once per sample."""
        for batch in self.loader:
            self.seen(batch)
            yield np.array([self._args.resized_image] * self.batch_size)

    def seen(self, batch: Any) -> None:
        """For a subclass that looks at the samples."""

    def finalize(self) -> None:
        """DLIO calls this after each epoch; the loader goes on with the next one."""


class CheckedReader(LowtideReader):
    def get_sample(self, filename: str, sample_index: int) -> None:
        found = super().get_sample(filename, sample_index)
        _compare(filename, found, np.load(filename)[..., sample_index])


class CheckedLoader(LowtideLoader):
    def seen(self, batch: Any) -> None:
        values, offsets = batch
        for number, first, last in zip(batch.index, offsets[:-1], offsets[1:], strict=True):
            _compare(self.names[number], values[first:last], np.load(self.names[number]))


def _compare(name: str, found: Any, expected: Any) -> None:
    if not np.array_equal(found, expected):
        raise ValueError(f"{os.path.basename(name)}: a sample differs from what np.load reads")
