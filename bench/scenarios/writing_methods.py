"""The methods of the benchmark `writing`: each writes a file, durably, and checks it afterwards.

What a constructor does is preparation and is not timed: the rows and documents are the caller's.
Packages are imported there too, because megatron-core has an interpreter of its own.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any

import matrix
import numpy as np

if TYPE_CHECKING:
    from writing_worker import Task

CHUNK = 4096
COPIED = 8 << 20
MEAN_TOKENS = 600
_KINDS = 64  # different documents


class Rows:
    """Writes the same rows of noise again and again, numbered in the first column."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.shape = (task.rows, matrix.COLUMNS)
        rng = np.random.default_rng(0)
        self.chunk = rng.random((CHUNK, matrix.COLUMNS), dtype=np.float32)
        self.header_bytes = 128

    def chunks(self) -> Any:
        for first in range(0, self.task.rows, CHUNK):
            count = min(CHUNK, self.task.rows - first)
            self.chunk[:count, 0] = np.arange(first, first + count)
            yield first, self.chunk[:count]

    def write(self) -> int:
        raise NotImplementedError

    def check(self) -> None:
        # Page by page: what a check puts into the page cache would count as memory of the method.
        places = np.linspace(0, self.task.rows - 1, 100).astype(np.int64)
        with open(self.task.path, "rb", 0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            offsets = (self.header_bytes + place * matrix.ROW_BYTES for place in places.tolist())
            found = b"".join(os.pread(file.fileno(), 4, offset) for offset in offsets)
        if not np.array_equal(np.frombuffer(found, np.float32), places.astype(np.float32)):
            raise ValueError("the file differs from what was written")

    @property
    def size_bytes(self) -> int:
        return self.task.rows * matrix.ROW_BYTES


class LowtideRows(Rows):
    def __init__(self, task: Task) -> None:
        import lowtide

        super().__init__(task)
        self.lt = lowtide

    def create(self, rows: int | None) -> Any:
        shape = (rows, matrix.COLUMNS)
        return self.lt.create(self.task.path, "float32", shape, memory=self.task.memory)


class CreateLowtide(LowtideRows):
    def write(self) -> int:
        with self.create(self.task.rows) as w:
            for first, rows in self.chunks():
                w[first : first + len(rows)] = rows
        return self.size_bytes


class AppendLowtide(LowtideRows):
    def write(self) -> int:
        with self.create(None) as w:
            for _, rows in self.chunks():
                w.append(rows)
        return self.size_bytes


class CreateMemmap(Rows):
    def write(self) -> int:
        m = np.lib.format.open_memmap(self.task.path, "w+", np.float32, self.shape)
        for first, rows in self.chunks():
            m[first : first + len(rows)] = rows
        m.flush()
        return self.size_bytes


class AppendTofile(Rows):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.header_bytes = 0

    def write(self) -> int:
        with open(self.task.path, "wb") as file:
            for _, rows in self.chunks():
                rows.tofile(file)
            file.flush()
            os.fsync(file.fileno())
        return self.size_bytes


class Scattered(Rows):
    """Rows in an order of chance."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.order = np.random.default_rng(1).permutation(task.rows)

    def scatter(self, target: Any) -> None:
        for first, rows in self.chunks():
            index = self.order[first : first + len(rows)]
            rows[:, 0] = index
            target[index] = rows


class ScatterLowtide(Scattered, LowtideRows):
    def write(self) -> int:
        with self.create(self.task.rows) as w:
            self.scatter(w)
        return self.size_bytes


class ScatterMemmap(Scattered):
    def write(self) -> int:
        m = np.lib.format.open_memmap(self.task.path, "w+", np.float32, self.shape)
        self.scatter(m)
        m.flush()
        return self.size_bytes


class Documents:
    """Writes documents of a few hundred ids each, as arrays."""

    def __init__(self, task: Task) -> None:
        self.task = task
        rng = np.random.default_rng(0)
        lengths = rng.integers(MEAN_TOKENS // 6, 2 * MEAN_TOKENS - MEAN_TOKENS // 6, _KINDS)
        self.kinds: list[Any] = [rng.integers(0, 50257, n) for n in lengths]
        self.tokens = sum(len(self.kinds[i % _KINDS]) for i in range(task.documents))
        self.prefix = task.path.removesuffix(".bin")

    def all(self) -> Any:
        kinds = self.kinds
        for i in range(self.task.documents):
            yield kinds[i % _KINDS]

    def check(self) -> None:
        found = np.memmap(self.task.path, np.uint16, "r")
        first = np.asarray(self.kinds[0])
        last = np.asarray(self.kinds[(self.task.documents - 1) % _KINDS])
        right = len(found) == self.tokens and np.array_equal(found[: len(first)], first)
        right = right and np.array_equal(found[-len(last) :], last)
        if not right or not os.path.getsize(f"{self.prefix}.idx"):
            raise ValueError("the file differs from what was written")


class TokensLowtide(Documents):
    def __init__(self, task: Task) -> None:
        import lowtide

        super().__init__(task)
        self.lt = lowtide

    def write(self) -> int:
        path, memory = self.task.path, self.task.memory
        with self.lt.TokenWriter(path, "megatron", "uint16", memory=memory) as w:
            w.extend(self.all())
        return self.tokens * 2


class TokensLowtideLists(TokensLowtide):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.kinds = [kind.tolist() for kind in self.kinds]


class TokensMegatron(Documents):
    """megatron-core's builder, as it is: it does not wait for the disk."""

    durable = False

    def __init__(self, task: Task) -> None:
        import torch
        from megatron.core.datasets import indexed_dataset

        super().__init__(task)
        self.builder = indexed_dataset.IndexedDatasetBuilder
        self.kinds = [torch.from_numpy(kind) for kind in self.kinds]

    def write(self) -> int:
        builder = self.builder(self.task.path, dtype=np.uint16)
        for document in self.all():
            builder.add_document(document, [len(document)])
        builder.finalize(f"{self.prefix}.idx")
        if self.durable:
            for name in (self.task.path, f"{self.prefix}.idx"):
                with open(name, "rb+") as file:
                    os.fsync(file.fileno())
        return self.tokens * 2


class TokensMegatronDurable(TokensMegatron):
    durable = True


class TokensMegatronLists(TokensMegatron):
    """As megatron's preprocess_data.py calls it: with lists of a tokenizer."""

    durable = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.kinds = [kind.tolist() for kind in self.kinds]


class ShuffleLowtide:
    """lt.shuffle of the source, in the memory of the task."""

    def __init__(self, task: Task) -> None:
        import lowtide

        self.task = task
        self.lt = lowtide

    def write(self) -> int:
        self.lt.shuffle(self.task.source, self.task.path, seed=1, memory=self.task.memory)
        return self.task.rows * matrix.ROW_BYTES

    def check(self) -> None:
        with self.lt.open(self.task.source) as a, self.lt.open(self.task.path) as b:
            index, rows = next(iter(a.batches(CHUNK, seed=1, epoch=0)))
            if len(b) != len(a) or not np.array_equal(b[: len(index)], rows):
                raise ValueError("the shuffled file differs from a.batches")


class ShuffleCopy:
    """The bandwidth: reads the source once and writes it once, in large blocks, without a cache."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def write(self) -> int:
        block = memoryview(mmap.mmap(-1, COPIED))  # aligned, as O_DIRECT wants it
        source = os.open(self.task.source, os.O_RDONLY | os.O_DIRECT)
        target = os.open(self.task.path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        size = 0
        while count := os.preadv(source, [block], size):
            whole = -(-count // 4096) * 4096
            if os.pwrite(target, block[:whole], size) != whole:
                raise OSError("a direct write was cut short")
            size += count
        os.ftruncate(target, size)
        os.fsync(target)
        os.close(source)
        os.close(target)
        return size

    def check(self) -> None:
        if os.path.getsize(self.task.path) != os.path.getsize(self.task.source):
            raise ValueError("the copy differs from its source")


WRITERS: dict[str, Any] = {
    "lowtide-create": CreateLowtide,
    "lowtide-append": AppendLowtide,
    "lowtide-scatter": ScatterLowtide,
    "lowtide-tokens": TokensLowtide,
    "lowtide-lists": TokensLowtideLists,
    "lowtide-shuffle": ShuffleLowtide,
    "memmap": CreateMemmap,
    "memmap-scatter": ScatterMemmap,
    "tofile": AppendTofile,
    "megatron": TokensMegatron,
    "megatron-durable": TokensMegatronDurable,
    "megatron-lists": TokensMegatronLists,
    "copy": ShuffleCopy,
}
