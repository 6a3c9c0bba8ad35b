"""A batch of sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowtide._data.csr import scipy_sparse
from lowtide._loader.batch import Batch


class SparseBatch(Batch):
    """A batch of rows of a sparse matrix: `data, indices, indptr = batch`.

    Row i has the values `data[indptr[i]:indptr[i + 1]]`, and the same slice of `indices` is their
    columns, in the order in which they are stored.
    """

    _width: int = 0  # columns of the matrix

    @property
    def data(self) -> Any:
        """The stored values of all rows."""
        return self[0]

    @property
    def indices(self) -> Any:
        """Column of each value."""
        return self[1]

    @property
    def indptr(self) -> Any:
        """Where each row starts, from 0, and the end, int64."""
        return self[2]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self[2]) - 1, self._width

    def scipy(self) -> Any:
        """Returns the batch as a `scipy.sparse.csr_array` that borrows its values.

        Raises:
            ImportError: SciPy is not installed.
        """
        entries = tuple(np.asarray(entry) for entry in self)
        return scipy_sparse().csr_array(entries, shape=self.shape)

    def sparse_csr(self) -> Any:
        """Returns the batch as a sparse CSR tensor, which borrows its values.

        Some functions of torch need sorted and unique indices; here they are as stored.

        Raises:
            TypeError: The batch holds arrays (use `lowtide.torch.Loader`).
        """
        if self._convert is None:
            raise TypeError("sparse_csr() needs tensors: use lowtide.torch.Loader")
        from lowtide._torch.tensors import sparse_csr

        return sparse_csr(self)

    def __reduce__(self) -> tuple[Any, ...]:
        _, (_, arrays, facts) = super().__reduce__()
        return _copied_sparse, (self._width, arrays, facts)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"<lowtide.Batch {rows} x {columns} sparse {self.data.dtype} nnz={len(self.data)} "
            f"epoch={self.epoch} step={self.step}>"
        )


def sparse_batch(width: int) -> type[SparseBatch]:
    """Returns the class of the batches of a matrix with this many columns."""
    return type("SparseBatch", (SparseBatch,), {"_width": width, "__module__": __name__})


def _copied_sparse(width: int, arrays: tuple[Any, ...], facts: dict[str, Any]) -> SparseBatch:
    batch = sparse_batch(width)(arrays)
    batch.__dict__.update(facts)
    return batch
