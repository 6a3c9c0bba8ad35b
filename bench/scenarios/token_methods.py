"""The methods of making batches of windows that are compared.

Each takes a Job and returns an iterator of (x, y), int64 tensors of shape (batch_size, block_size).
Work that a method does before it returns is preparation and is not timed; work of its iterator is.
All methods but the loaders get the same starts, which are drawn for many steps at once, so that
drawing them is not part of the comparison. (The original get_batch draws its own starts; here it is
spared that cost.)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.utils.data
from numpy.typing import NDArray

Batch = tuple[torch.Tensor, torch.Tensor]
_DRAWN_STEPS = 1024
_SEED = 1337


@dataclass
class Job:
    """What to read, and how."""

    path: str
    tokens: int
    batch_size: int = 12
    block_size: int = 1024
    epochs: int | None = None
    memory: str = "256MiB"
    engine: str = "auto"
    cache: str = "auto"
    state: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def starts(self) -> Iterator[torch.Tensor]:
        """Yields the starts of each step, the same ones each time; valid for one step.

        The tensors are reused, because making one would cost about a microsecond.
        """
        drawn = torch.Generator().manual_seed(_SEED)
        high = self.tokens - self.block_size
        steps = torch.empty((_DRAWN_STEPS, self.batch_size), dtype=torch.int64)
        rows = list(steps)
        while True:
            torch.randint(high, steps.shape, generator=drawn, out=steps)
            yield from rows


def map_of(path: str) -> np.memmap[Any, Any]:
    return np.memmap(path, dtype=np.uint16, mode="r")


def _sliced(data: np.memmap[Any, Any], ix: torch.Tensor, size: int) -> Batch:
    """nanoGPT's two lines: each window is read twice, once for x and once for y."""
    x = torch.stack([torch.from_numpy(data[i : i + size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + size].astype(np.int64)) for i in ix])
    return x, y


def get_batch(job: Job) -> Iterator[Batch]:
    """As nanoGPT does: a new np.memmap for every batch, so that memory does not grow."""

    def run() -> Iterator[Batch]:
        for ix in job.starts():
            yield _sliced(map_of(job.path), ix, job.block_size)

    return run()


def memmap(job: Job) -> Iterator[Batch]:
    def run() -> Iterator[Batch]:
        data = map_of(job.path)
        for ix in job.starts():
            yield _sliced(data, ix, job.block_size)

    return run()


def _preadv_windows(job: Job, announce: bool) -> Iterator[Batch]:
    buffer: NDArray[np.uint16] = np.empty((job.batch_size, job.block_size + 1), dtype=np.uint16)
    places = [[window.data.cast("B")] for window in buffer]
    first, second = buffer[:, :-1], buffer[:, 1:]
    size, preadv, advise = buffer[0].nbytes, os.preadv, os.posix_fadvise
    fd = os.open(job.path, os.O_RDONLY)
    try:
        for ix in job.starts():
            offsets = [2 * start for start in ix.tolist()]
            if announce:
                for offset in offsets:
                    advise(fd, offset, size, os.POSIX_FADV_WILLNEED)
            for place, offset in zip(places, offsets):
                preadv(fd, place, offset)
            x, y = first.astype(np.int64), second.astype(np.int64)
            yield torch.from_numpy(x), torch.from_numpy(y)
    finally:
        os.close(fd)


def preadv(job: Job) -> Iterator[Batch]:
    return _preadv_windows(job, announce=False)


def willneed(job: Job) -> Iterator[Batch]:
    return _preadv_windows(job, announce=True)


class _Windows(torch.utils.data.Dataset[Batch]):
    """Windows of a map by their starts; each worker has its own map."""

    def __init__(self, path: str, block_size: int) -> None:
        self._path = path
        self._block_size = block_size
        self._data: np.memmap[Any, Any] | None = None

    def __getitem__(self, start: int) -> Batch:
        if self._data is None:
            self._data = map_of(self._path)
        window = torch.from_numpy(self._data[start : start + self._block_size + 1].astype(np.int64))
        return window[:-1], window[1:]


def _fetched(batches: Iterator[Batch]) -> Iterator[Batch]:
    yield from batches


def data_loader(job: Job) -> Iterator[Batch]:
    """torch's DataLoader with two workers, which run before the clock starts."""
    batches = (ix.tolist() for ix in job.starts())
    windows = _Windows(job.path, job.block_size)
    loader = torch.utils.data.DataLoader(windows, batch_sampler=batches, num_workers=2)
    return _fetched(iter(loader))  # closing it releases the workers


def _open(job: Job) -> Any:
    import lowtide

    started_s = time.perf_counter()
    tokens = lowtide.tokens(
        job.path, dtype="uint16", memory=job.memory, engine=job.engine, cache=job.cache
    )
    job.notes["open_s"] = time.perf_counter() - started_s
    return tokens


def _loader(job: Job, tokens: Any) -> Any:
    import lowtide.torch

    return lowtide.torch.Loader(
        tokens,
        batch_size=job.batch_size,
        block_size=job.block_size,
        order="shuffle",
        seed=_SEED,
        epochs=job.epochs,
    )


def _note_stats(job: Job, source: Any) -> None:
    stats = source.stats()
    for name in "engine engine_reason cache cache_reason bytes_asked bytes_read reads".split():
        if name in stats:
            job.notes[name] = stats[name]


def lowtide_windows(job: Job) -> Iterator[Batch]:
    import lowtide.torch

    def run() -> Iterator[Batch]:
        with _open(job) as tokens:
            windows, size = lowtide.torch.windows, job.block_size
            try:
                for ix in job.starts():
                    yield windows(tokens, ix, size)
            finally:
                _note_stats(job, tokens)

    return run()


def _delivered(loader: Any) -> Iterator[Batch]:
    following = loader.next
    try:
        while True:
            yield following()
    except StopIteration:
        return


def lowtide_loader(job: Job) -> Iterator[Batch]:
    import lowtide.torch  # noqa: F401

    def run() -> Iterator[Batch]:
        with _open(job) as tokens, _loader(job, tokens) as loader:
            try:
                yield from _delivered(loader)
            finally:
                _note_stats(job, loader)

    return run()


def lowtide_half(job: Job) -> Iterator[Batch]:
    """Saves the state of a run in the middle of its epoch, for `lowtide_resume`."""

    def run() -> Iterator[Batch]:
        with _open(job) as tokens, _loader(job, tokens) as loader:
            loader.seek(len(loader) // 2)
            job.notes["state"] = loader.state_dict()
            yield loader.next()

    return run()


def lowtide_resume(job: Job) -> Iterator[Batch]:
    """Times Loader(...), load_state_dict and the batches, but not opening the tokens."""
    tokens = _open(job)

    def run() -> Iterator[Batch]:
        with tokens, _loader(job, tokens) as loader:
            loader.load_state_dict(job.state)
            batch = loader.next()
            if batch.step != len(loader) // 2:
                raise ValueError(f"resumed at step {batch.step}, not at {len(loader) // 2}")
            yield batch
            try:
                yield from _delivered(loader)
            finally:
                _note_stats(job, loader)

    return run()


READERS: dict[str, Callable[[Job], Iterator[Batch]]] = {
    "get-batch": get_batch,
    "memmap": memmap,
    "preadv": preadv,
    "willneed": willneed,
    "dataloader": data_loader,
    "lowtide-windows": lowtide_windows,
    "lowtide-loader": lowtide_loader,
    "lowtide-half": lowtide_half,
    "lowtide-resume": lowtide_resume,
}
