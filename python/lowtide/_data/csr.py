"""A sparse matrix in files: compressed sparse rows, read within a memory budget."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from lowtide import _core
from lowtide._arguments import MAX, integer, told
from lowtide._closing import Closing
from lowtide._data.array import Array
from lowtide._index.indexing import check_rows
from lowtide._operators import NoOperators

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import scipy.sparse


def csr(data: Array, indices: Array, indptr: Array, shape: Sequence[int] | None = None) -> Csr:
    """Combines three arrays into a sparse matrix of compressed rows.

    Row i consists of the values `data[indptr[i]:indptr[i + 1]]`, and the same slice of `indices` is
    their columns, as in `scipy.sparse.csr_array`. Indices need not be sorted, and a column may
    occur more than once.

    Args:
        data: The stored values, an `Array` with one axis. Its `memory` is the budget of the matrix.
        indices: Column of each value: integers, as many as there are values.
        indptr: Where each row starts, and the end of the last: one integer more than rows. It is
            read and checked once. The matrix keeps a table of 2 bytes per row, up to a quarter of
            `memory`; if that is not enough, `indptr` is read again on demand.
        shape: Rows and columns. Required, because the arrays do not record how many columns there
            are.

    Returns:
        The matrix, which is also a source for `Loader`.

    Raises:
        FormatError: `indptr` decreases, does not begin with 0 or exceeds the values, or `data` and
            `indices` differ in length; the message names the place.
        ValueError: `shape` is missing or has the wrong number of rows, or an array has the wrong
            type or number of axes.
        TypeError: An argument has the wrong type.
    """
    return Csr(data, indices, indptr, shape)


class Csr(NoOperators, Closing):
    """A sparse matrix on disk; `lowtide.csr` creates it.

    Indexing reads rows: `c[i]`, `c[i:j]`, `c[idx]` and `c[mask]` return a
    `scipy.sparse.csr_array` with the indices in the order in which they are stored. Any thread may
    use a matrix. A pickle holds the arrays by reference.
    """

    __slots__ = ("__weakref__", "_arrays", "_core", "_shape")

    ndim = 2

    def __init__(
        self, data: Array, indices: Array, indptr: Array, shape: Sequence[int] | None = None
    ) -> None:
        arrays = {"data": data, "indices": indices, "indptr": indptr}
        for name, array in arrays.items():
            if not isinstance(array, Array):
                kind = type(array).__name__
                raise TypeError(f"{name} must be a lowtide.Array (lowtide.open), not {kind}")
        if shape is None:
            raise ValueError(
                "shape is required: the arrays do not record how many columns the matrix has"
            )
        try:
            found = tuple(shape)
        except TypeError:
            raise TypeError(f"shape must be (rows, columns), not {told(shape)}") from None
        if len(found) != 2:
            raise ValueError(f"shape must be (rows, columns), not {found}")
        rows = integer(found[0], "rows of shape", 0, MAX)
        columns = integer(found[1], "columns of shape", 0, MAX)
        self._core = _core.Csr.open(data._core, indices._core, indptr._core, columns)
        self._arrays = (data, indices, indptr)
        self._shape = (self._core.rows, columns)
        if rows != self._core.rows:
            raise ValueError(
                f"shape has {rows} rows, but indptr has {self._core.rows + 1} entries, which means "
                f"{self._core.rows} rows"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._arrays[0].dtype

    @property
    def nnz(self) -> int:
        """Number of stored values."""
        return self._core.values

    @property
    def data(self) -> Array:
        """The stored values, as given."""
        return self._arrays[0]

    @property
    def indices(self) -> Array:
        """The column of each value, as given."""
        return self._arrays[1]

    @property
    def indptr(self) -> Array:
        """Where each row starts, as given."""
        return self._arrays[2]

    @property
    def memory(self) -> int:
        """Budget in bytes, which the matrix shares with `data`."""
        return self._arrays[0].memory

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._core.closed

    def __len__(self) -> int:
        """Number of rows."""
        return self._shape[0]

    def __getitem__(self, index: Any) -> scipy.sparse.csr_array:
        """Reads rows.

        Args:
            index: An integer, a slice, integers or a bool mask. An integer gives a matrix of one
                row.

        Returns:
            A `scipy.sparse.csr_array` that owns its memory.

        Raises:
            IndexError: A row does not exist.
            TypeError: `index` selects columns, or is of another type.
            FormatError: An index of a row is not below the number of columns.
            ImportError: SciPy is not installed.
        """
        sparse = scipy_sparse()
        rows = self._rows(index)
        indptr = np.empty(len(rows) + 1, np.int64)
        self._core.offsets(rows, indptr)
        count = int(indptr[-1])
        data = np.empty(count, self._arrays[0].dtype)
        indices = np.empty(count, self._arrays[1].dtype)
        self._core.take(rows, data, indices)
        return sparse.csr_array((data, indices, indptr), shape=(len(rows), self._shape[1]))

    def _rows(self, index: Any) -> npt.NDArray[Any]:
        if isinstance(index, slice):
            return np.arange(*index.indices(len(self)), dtype=np.int64)
        if isinstance(index, tuple):
            raise TypeError("only rows can be selected on disk: use c[rows][:, columns]")
        if not isinstance(index, (np.ndarray, list, range)):
            try:
                if isinstance(index, (bool, np.bool_)):
                    raise TypeError
                index = [operator.index(index)]
            except TypeError:
                raise TypeError(
                    f"rows must be an integer, a slice, integers or a bool mask, not {told(index)}"
                ) from None
        found = np.asarray(index)
        if found.ndim != 1:
            raise IndexError(f"rows must have one axis, not shape {found.shape}")
        if found.dtype == np.bool_:
            if len(found) != len(self):
                raise IndexError(
                    f"the mask has {len(found)} entries, but there are {len(self)} rows"
                )
            found = np.flatnonzero(found)
        return check_rows(found if found.size else found.astype(np.int64), len(self))

    def stats(self) -> dict[str, Any]:
        """Returns what was read and held; see `Array.stats`."""
        return self._core.stats()

    def close(self) -> None:
        """Closes the matrix; its arrays stay open, and running loaders can finish."""
        self._core.close()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refuses: NumPy would read row by row into an array of objects."""
        raise TypeError(
            "a sparse matrix on disk does not become an ndarray: use c[i:j].toarray(), or "
            "lowtide.Loader(c, batch_size, dense=True)"
        )

    def _instead(self) -> str:
        return "its rows are on disk. Index it first, as in c[i:j]"

    def __reduce__(self) -> tuple[Any, ...]:
        return Csr, (*self._arrays, self._shape)

    def __repr__(self) -> str:
        rows, columns = self._shape
        return f"<lowtide.Csr {rows} x {columns} {self.dtype} nnz={self.nnz}>"


def scipy_sparse() -> Any:
    """Returns the module `scipy.sparse`. Raises ImportError with install instructions."""
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError(
            "rows of a sparse matrix are scipy.sparse arrays: pip install scipy"
        ) from None
    return scipy.sparse
