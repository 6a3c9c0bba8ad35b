"""The methods of the benchmark `columns`: each takes a Task and returns an iterator of batches.

Work that a method does before it returns is preparation and is not timed. A batch is a tuple of
tensors: features and labels of 256 rows, or the features alone; documents and windows of tokens.
All samplers of torch get one permutation, which is drawn before the clock starts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import columns_data
import lowtide as lt
import lowtide.torch
import matrix
import numpy as np
import torch
import torch.utils.data

if TYPE_CHECKING:
    from columns_worker import Task

Batches = Iterator[tuple[torch.Tensor, ...]]
_SEED = 1337


@functools.cache
def _permutation(rows: int) -> Any:
    return np.random.default_rng(_SEED).permutation(rows)


@functools.cache
def _weights(rows: int) -> Any:
    return np.random.default_rng(_SEED).random(rows)


def prepare(task: Task) -> None:
    """Makes what belongs to the caller, so that it does not count as memory of a method."""
    if task.reader == "lowtide-weighted":
        _weights(task.rows)
    elif READERS[task.reader] in (data_loader, item_memmap, item_lowtide, dataset):
        _permutation(task.rows)


def _maps(task: Task) -> tuple[Any, Any]:
    x = np.memmap(task.path, np.float32, "r", shape=(task.rows, matrix.COLUMNS))
    return x, np.memmap(task.labels, np.int64, "r")


def _arrays(task: Task) -> tuple[lt.Array, lt.Array]:
    told: dict[str, Any] = {"memory": task.memory, "cache": task.cache}
    x = lt.open(task.path, "float32", (task.rows, matrix.COLUMNS), **told)
    return x, lt.open(task.labels, "int64", (task.rows,), **told)


class Pairs(torch.utils.data.Dataset[Any]):
    """What people write: one row and its label at a time. Each worker opens its own files."""

    def __init__(self, task: Task, opened: Callable[[Task], tuple[Any, Any]]) -> None:
        self._task = task
        self._open = opened
        self._columns: tuple[Any, Any] | None = None

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        if self._columns is None:
            self._columns = self._open(self._task)
        x, y = self._columns
        return torch.from_numpy(np.array(x[row])), int(y[row])


def _sampled(task: Task, dataset: Any, workers: int) -> Batches:
    order, size = _permutation(task.rows), task.batch_size
    starts = range(0, task.rows - size + 1, size)
    batches = (order[first : first + size].tolist() for first in starts)
    loader = torch.utils.data.DataLoader(dataset, batch_sampler=batches, num_workers=workers)
    return _closable(iter(loader))


def _closable(batches: Iterator[Any]) -> Batches:
    yield from batches  # closing this releases the workers


def data_loader(task: Task) -> Batches:
    return _sampled(task, Pairs(task, _maps), 2)


def item_memmap(task: Task) -> Batches:
    return _sampled(task, Pairs(task, _maps), 0)


def item_lowtide(task: Task) -> Batches:
    return _sampled(task, Pairs(task, _arrays), 0)


def dataset(task: Task) -> Batches:
    return _sampled(task, lowtide.torch.Dataset(_arrays(task)), 0)


def _loader(task: Task, source: Any, **more: Any) -> Batches:
    loader = lowtide.torch.Loader(source, task.batch_size, seed=_SEED, **more)

    def run() -> Batches:
        with loader:
            for _ in range(task.epochs):
                yield from loader

    return run()


def columns(task: Task) -> Batches:
    return _loader(task, _arrays(task))


def alone(task: Task) -> Batches:
    return _loader(task, _arrays(task)[0])


def uniform(task: Task) -> Batches:
    return _loader(task, _arrays(task), order="random")


def weighted(task: Task) -> Batches:
    return _loader(task, _arrays(task), weights=_weights(task.rows))


def documents(task: Task) -> Batches:
    offsets = columns_data.offsets(task.documents)
    told: dict[str, Any] = {"memory": task.memory, "cache": task.cache}
    values = lt.open(task.tokens, "uint16", (int(offsets[-1]),), **told)
    return _loader(task, lt.ragged(values, offsets))


def windows(task: Task) -> Batches:
    tokens = lt.tokens(task.tokens, "uint16", memory=task.memory, cache=task.cache)
    return _loader(task, tokens, block_size=columns_data.MEAN_TOKENS, dtype="uint16")


READERS: dict[str, Callable[[Task], Batches]] = {
    "dataloader": data_loader,
    "item-memmap": item_memmap,
    "lowtide-item": item_lowtide,
    "lowtide-dataset": dataset,
    "lowtide-columns": columns,
    "lowtide-alone": alone,
    "lowtide-uniform": uniform,
    "lowtide-weighted": weighted,
    "lowtide-documents": documents,
    "lowtide-windows": windows,
}


def check(task: Task, batch: tuple[torch.Tensor, ...]) -> None:
    """Raises ValueError unless a batch is what the files contain, as far as one can tell."""
    first, *rest = batch
    if task.reader == "lowtide-documents":
        sizes = rest[0].diff()
        least, most = columns_data.LEAST_TOKENS, columns_data.MOST_TOKENS
        right = len(first) == rest[0][-1] and bool(((sizes >= least) & (sizes <= most)).all())
    elif task.reader == "lowtide-windows":
        right = bool((first[:, 1:].int() == rest[0][:, :-1].int()).all())
    else:
        numbers = first[:, 0].long()  # the matrix has the numbers of its rows in its first column
        right = bool(((numbers >= 0) & (numbers < task.rows)).all())
        right = right and (not rest or bool((numbers == rest[0]).all()))
    if not right:
        raise ValueError("a batch differs from the files")
