"""The methods of the benchmark `sparse`. Each runs in the interpreter that has its packages.

A constructor imports, `open` opens files, and both are not timed; `batches` is. All orders are
fully random, but for annbatch's blocks. Methods of others that take an order get one permutation.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np
import sparse_rows

if TYPE_CHECKING:
    from sparse_worker import Task

Batches = Generator[Any, None, None]
_SEED = 1337
_ANNBATCH_ROWS = 8192  # in memory at a time: 256 blocks of 32, as in its README


def picked_genes() -> Any:
    """A tenth of the columns."""
    count = sparse_rows.COLUMNS // 10
    return np.sort(np.random.default_rng(0).permutation(sparse_rows.COLUMNS)[:count])


class Reader:
    """One method. A batch may be of any type that `parts` takes apart."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def open(self) -> None:
        raise NotImplementedError

    def batches(self) -> Batches:
        """Yields batches of rows; closing it ends reading."""
        raise NotImplementedError

    def rows(self, batch: Any) -> int:
        return self.task.batch_size

    def parts(self, batch: Any) -> tuple[Any, ...]:
        """Values, columns, offsets, and the numbers of the rows if the batch has them."""
        return batch.data, batch.indices, batch.indptr

    def check(self, batch: Any) -> int:
        """Compares a batch with the source and returns its rows. Raises ValueError."""
        sparse_rows.check(*self.parts(batch))
        return self.rows(batch)


class Permuted(Reader):
    """A method that gets the order from its caller."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.order = np.random.default_rng(_SEED).permutation(task.rows)

    def indices(self) -> Generator[Any, None, None]:
        for _ in range(self.task.epochs):
            for first in range(0, self.task.rows, self.task.batch_size):
                yield self.order[first : first + self.task.batch_size]


class Lowtide(Reader):
    """`lt.Loader` over a matrix that is opened by its path."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        import h5py  # noqa: F401
        import lowtide

        self.lt = lowtide
        self.told: dict[str, Any] = {}

    def open(self) -> None:
        self.source = self.lt.open(self.task.path, memory=self.task.memory, cache=self.task.cache)

    def batches(self) -> Batches:
        told = {"batch_size": self.task.batch_size, "seed": _SEED, **self.told}
        with self.lt.Loader(self.source, **told) as loader:
            for _ in range(self.task.epochs):
                yield from loader

    def parts(self, batch: Any) -> tuple[Any, ...]:
        return batch.data, batch.indices, batch.indptr, batch.index


class LowtideDense(Lowtide):
    """Some columns as dense rows, filled while they are delivered."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.told = {"dense": True, "columns": picked_genes()}

    def check(self, batch: Any) -> int:
        sparse_rows.check_dense(batch[0], batch.index, picked_genes())
        return self.rows(batch)


class LowtideScipy(Lowtide):
    """The same, from sparse batches by SciPy."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        import scipy.sparse  # noqa: F401

    def batches(self) -> Batches:
        genes = picked_genes()
        for batch in super().batches():
            yield batch.index, batch.scipy()[:, genes].toarray()

    def check(self, batch: Any) -> int:
        sparse_rows.check_dense(batch[1], batch[0], picked_genes())
        return self.rows(batch)


class Scipy(LowtideScipy, Permuted):
    """SciPy alone: batches of a matrix that is in memory, each made before the clock starts."""

    def open(self) -> None:
        import h5py
        import scipy.sparse

        with h5py.File(self.task.path) as file:
            parts = tuple(file["X"][name][:] for name in ("data", "indices", "indptr"))
        whole = scipy.sparse.csr_array(parts, shape=(self.task.rows, sparse_rows.COLUMNS))
        size = self.task.batch_size
        epoch = range(0, self.task.rows - size + 1, size)
        self.made = [(rows, whole[rows]) for rows in (self.order[i : i + size] for i in epoch)]

    def batches(self) -> Batches:
        genes = picked_genes()
        for _ in range(self.task.epochs):
            for rows, batch in self.made:
                yield rows, batch[:, genes].toarray()


class Bionemo(Permuted):
    """The data set of bionemo-scdl in a DataLoader, as in its README, but with one thread of torch:
    on a loaded machine of two cores, that was 7 to 9 times as fast as the default of two."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        import torch
        from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset
        from bionemo.scdl.util.torch_dataloader_utils import collate_sparse_matrix_batch
        from torch.utils.data import DataLoader

        torch.set_num_threads(1)
        self.opened, self.loader = SingleCellMemMapDataset, DataLoader
        self.collate = collate_sparse_matrix_batch

    def open(self) -> None:
        self.source = self.opened(self.task.path)

    def batches(self) -> Batches:
        yield from self.loader(self.source, batch_sampler=self.indices(), collate_fn=self.collate)

    def parts(self, batch: Any) -> tuple[Any, ...]:
        return batch.values(), batch.col_indices(), batch.crow_indices()


class AnnLoader(Permuted):
    """anndata's own loader over a backed file; its batches stay sparse."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        import anndata
        from anndata.experimental import AnnLoader

        self.anndata, self.loader = anndata, AnnLoader

    def open(self) -> None:
        self.source = self.anndata.read_h5ad(self.task.path, backed="r")

    def batches(self) -> Batches:
        told = {"batch_size": self.task.batch_size, "sampler": self.order.tolist()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = self.loader(self.source, use_default_converter=False, **told)
        for batch in loader:
            yield batch.X


class Annbatch(Reader):
    """annbatch over its own store, with the codecs that it recommends."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        import annbatch
        import anndata
        import zarr
        import zarrs  # noqa: F401

        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
        self.anndata, self.annbatch = anndata, annbatch

    def open(self) -> None:
        loader = self.annbatch.Loader(
            batch_size=self.task.batch_size, chunk_size=self.task.block,
            preload_nchunks=_ANNBATCH_ROWS // self.task.block, shuffle=True,
            preload_to_gpu=False, rng=np.random.default_rng(_SEED),
        )  # fmt: skip
        store = self.annbatch.DatasetCollection(self.task.path, mode="r")
        self.loader = loader.use_collection(store, load_adata=self._values)

    def _values(self, group: Any) -> Any:
        """Without obs, which would have to be put in the same order."""
        return self.anndata.AnnData(X=self.anndata.io.sparse_dataset(group["X"]))

    def rows(self, batch: Any) -> int:
        return int(batch.shape[0])

    def batches(self) -> Batches:
        for batch in self.loader:
            yield batch["X"]


class LowtideRows(Lowtide):
    """Dense rows of a file that `lt.open` knows."""

    def check(self, batch: Any) -> int:
        return _check_rows(batch[0], batch.index)


class LowtideHeld(LowtideRows):
    """The same with memory for the whole file, after an epoch in which it was read."""

    def open(self) -> None:
        super().open()
        with self.lt.Loader(self.source, batch_size=self.task.batch_size, epochs=1) as loader:
            for _ in loader:
                pass


class Rows(Permuted):
    """Dense rows by the reader of the format, which `open` puts into `x`."""

    x: Any

    def batches(self) -> Batches:
        for index in self.indices():
            yield index, self.taken(index)

    def taken(self, index: Any) -> Any:
        return self.x[index]

    def check(self, batch: Any) -> int:
        return _check_rows(batch[1], batch[0])


def _check_rows(rows: Any, index: Any) -> int:
    if not np.array_equal(np.asarray(rows[:, 0]), np.asarray(index).astype(np.float32)):
        raise ValueError("a batch has other rows than it says")
    return len(index)


class Safetensors(Rows):
    """A tensor that torch maps. NumPy takes the rows: with torch's own indexing, the rate varied
    from 0.02 to 3.5 million rows per second between runs, for reasons that were not isolated."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        import safetensors
        import torch  # noqa: F401

        self.safetensors = safetensors

    def open(self) -> None:
        self.file = self.safetensors.safe_open(self.task.path, "pt")
        self.x = self.file.get_tensor("x").numpy()


class Npz(Rows):
    """np.load ignores mmap_mode for archives: it reads the whole array, which is timed."""

    def open(self) -> None:
        self.file = np.load(self.task.path, mmap_mode="r")

    def batches(self) -> Batches:
        self.x = self.file["x"]
        yield from super().batches()


class Fbin(Rows):
    def open(self) -> None:
        rows, columns = np.fromfile(self.task.path, "<u4", 2).tolist()
        self.x = np.memmap(self.task.path, "<f4", "r", 8, (rows, columns))


READERS: dict[str, type[Reader]] = {
    "lowtide": Lowtide,
    "lowtide-dense": LowtideDense,
    "lowtide-scipy": LowtideScipy,
    "lowtide-rows": LowtideRows,
    "lowtide-held": LowtideHeld,
    "scipy": Scipy,
    "bionemo": Bionemo,
    "annloader": AnnLoader,
    "annbatch": Annbatch,
    "safetensors": Safetensors,
    "npz": Npz,
    "fbin": Fbin,
}
