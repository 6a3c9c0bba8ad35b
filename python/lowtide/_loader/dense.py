"""How sparse rows are delivered: the arguments `dense`, `dtype` and `columns` of a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowtide._arguments import flag, numpy_dtype
from lowtide._data.csr import Csr

if TYPE_CHECKING:
    import numpy.typing as npt

    from lowtide._loader.columns import Columns

_TYPES = ("float16", "float32", "float64")


class Dense(NamedTuple):
    """Dense rows: their type, and which columns they have (None: all)."""

    dtype: np.dtype[Any]
    columns: npt.NDArray[np.uint64] | None

    def width(self, matrix: Csr) -> int:
        """Number of elements in a row of this matrix."""
        return matrix.shape[1] if self.columns is None else len(self.columns)


def parse_dense(told: dict[str, Any], source: Columns) -> Dense | None:
    """Checks the options of a loader that are about sparse rows; None: rows stay sparse.

    Raises:
        ValueError: There are no sparse rows, or an option is for dense rows only.
        IndexError: A column does not exist.
        TypeError: `columns` are not integers.
    """
    matrices = [column for column in source.columns if isinstance(column, Csr)]
    if not flag(told["dense"], "dense"):
        if told["columns"] is not None and not matrices:
            raise ValueError("columns is for sparse rows only (lowtide.csr); there are none")
        if told["columns"] is not None:
            raise ValueError("columns needs dense=True: sparse rows are delivered as stored")
        if matrices and len(source.columns) > 1:
            raise ValueError("sparse rows beside other columns need dense=True")
        return None
    if not matrices:
        raise ValueError("dense is for sparse rows (lowtide.csr), but there are none")
    name = "float32" if told["dtype"] is None else numpy_dtype(told["dtype"]).name
    if name not in _TYPES:
        raise ValueError(f"dtype of dense rows must be {', '.join(_TYPES)}, not {name}")
    if told["columns"] is None:
        return Dense(np.dtype(name), None)
    if len(matrices) > 1:
        raise ValueError(
            f"columns: there are {len(matrices)} sparse matrices, so columns is ambiguous"
        )
    told["columns"] = _parse_columns(told["columns"], matrices[0].shape[1])
    return Dense(np.dtype(name), told["columns"])


def _parse_columns(columns: Any, count: int) -> npt.NDArray[np.uint64]:
    found = np.asarray(columns)
    if found.dtype == np.bool_ and found.shape == (count,):
        found = np.flatnonzero(found)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
        raise TypeError(
            "columns must be integers with one axis, at least one, or a bool mask of all columns, "
            f"not {found.dtype} of shape {found.shape}"
        )
    wrong = found[(found >= count) | (found < -count)]
    if wrong.size:
        raise IndexError(f"column {wrong[0]} is out of bounds: there are {count}")
    found = found.astype(np.int64)  # int8 cannot count from the end of 20,000 columns
    return np.where(found < 0, found + count, found).astype(np.uint64)
