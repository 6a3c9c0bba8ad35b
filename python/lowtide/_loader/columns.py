"""What a loader reads: the structure of its source, and that of the batches it delivers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowtide._data.array import Array
from lowtide._data.csr import Csr
from lowtide._data.documents import Documents
from lowtide._data.ragged import Ragged
from lowtide._data.tokens import Tokens

if TYPE_CHECKING:
    from lowtide._loader.dense import Dense

Column = Array | Ragged | Documents | Csr


class Lent(NamedTuple):
    """One array of a batch."""

    name: str
    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the core can lend arrays of this type; others are lent as bytes."""
        kind, size = self.dtype.kind, self.dtype.itemsize
        return self.dtype.isnative and kind in "biufc" and size <= (16 if kind == "c" else 8)


class Columns:
    """The columns of one source of a loader, and how a batch presents them."""

    __slots__ = ("columns", "dense", "names", "source")

    def __init__(self, source: Any) -> None:
        self.source = source
        self.dense: Dense | None = None  # how sparse rows are delivered; None: as stored
        self.names: tuple[str, ...] | None = None
        if isinstance(source, dict):
            for name in source:
                if not isinstance(name, str):
                    raise TypeError(f"the names of columns must be strings, not {name!r}")
            self.names = tuple(source)
            columns = list(source.values())
        else:
            columns = list(source) if isinstance(source, tuple) else [source]
        if not columns:
            kind = type(source).__name__
            raise ValueError(f"source is an empty {kind}: give at least one array")
        self.columns: list[Column] = [
            checked_column(column, self._name(place)) for place, column in enumerate(columns)
        ]
        lengths = [len(column) for column in self.columns]
        if len(set(lengths)) > 1:
            told = ", ".join(f"{self._name(i)} has {n}" for i, n in enumerate(lengths))
            raise ValueError(f"columns must have the same length, but {told} rows")

    def _name(self, place: int) -> str:
        if self.names:
            return repr(self.names[place])
        return f"column {place}" if isinstance(self.source, tuple) else "source"

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def memory(self) -> int:
        """Budget of the first column."""
        return int(self.arrays_of(self.columns[0])[0].memory)

    @staticmethod
    def arrays_of(column: Column) -> list[Any]:
        """Lists the arrays, or the tokens, of one column."""
        if isinstance(column, Documents):
            return [column._tokens]
        if isinstance(column, Csr):
            return [column.data, column.indices]
        return column._columns if isinstance(column, Ragged) else [column]

    def cores(self) -> list[Any]:
        """Returns the columns as the core takes them."""
        return [_core_of(column) for column in self.columns]

    def lent(self) -> list[Lent]:
        """Lists the arrays of a batch, in the order of the core."""
        lent = []
        for place, column in enumerate(self.columns):
            name = self._name(place)
            if self.dense is not None and isinstance(column, Csr):
                lent.append(Lent(name, self.dense.dtype, (self.dense.width(column),)))
                continue
            lent.extend(
                Lent(name, array.dtype, array.shape[1:]) for array in self.arrays_of(column)
            )
        return lent

    def structure(self) -> Any:
        """Returns what must be equal in all sources of a mixture."""
        return self.names, [_structure_of(column) for column in self.columns]

    def present(self, flat: list[Any], offsets: Any) -> tuple[Any, ...]:
        """Puts the arrays of a batch into the structure of the source.

        Args:
            flat: The arrays, as `lent` lists them.
            offsets: Returns table i of the offsets of samples.
        """
        entries: list[Any] = []
        table = 0
        arrays = iter(flat)
        for column in self.columns:
            if isinstance(column, Array):
                entries.append(next(arrays))
                continue
            starts = offsets(table)
            table += 1
            if isinstance(column, Csr):
                entries.append((next(arrays), next(arrays), starts))
                continue
            values: Any = None
            if isinstance(column, Documents) or isinstance(column.values, Array):
                values = _sized(next(arrays), starts)
            elif isinstance(column.values, tuple):
                values = tuple(_sized(next(arrays), starts) for _ in column.values)
            else:
                values = {name: _sized(next(arrays), starts) for name in column.values}
            entries.append((values, starts))
        if self.is_one_ragged:
            return tuple(entries[0])
        return tuple(entries)

    @property
    def is_one_ragged(self) -> bool:
        """Whether a batch is `values, offsets`, or `data, indices, indptr`."""
        return isinstance(self.source, (Ragged, Documents, Csr))

    @property
    def is_sparse(self) -> bool:
        """Whether a batch is `data, indices, indptr`."""
        return isinstance(self.source, Csr) and self.dense is None

    @property
    def is_flat(self) -> bool:
        """Whether a batch has its arrays in the order of the core, one per column."""
        return self.dense is not None or all(isinstance(column, Array) for column in self.columns)


def checked_column(column: Any, name: str) -> Column:
    """Returns `column` if a loader can read it. Raises TypeError that names the alternative."""
    if isinstance(column, Array):
        if not column.ndim:
            raise TypeError(f"{name} is a 0-d array: it has no rows")
        return column
    if isinstance(column, (Ragged, Documents, Csr)):
        return column
    if isinstance(column, Tokens):
        raise TypeError(
            f"{name} is Tokens, whose samples are windows: give it on its own, with block_size, or "
            "give its documents (tokens.documents)"
        )
    if isinstance(column, np.ndarray):
        raise TypeError(
            f"{name} is an ndarray; a loader reads files: save it with np.save and open it with "
            "lowtide.open"
        )
    if isinstance(column, (str, bytes)) or hasattr(column, "__fspath__"):
        raise TypeError(
            f"{name} is a path: open an Array with lowtide.open or Tokens with lowtide.tokens"
        )
    if column is None:
        raise TypeError(
            f"{name} is None: give arrays or Tokens (the documents of tokens are None if their "
            "format does not record them)"
        )
    kind = type(column).__name__
    raise TypeError(
        f"{name} must be a lowtide.Array (open it with lowtide.open), ragged data, or Tokens on "
        f"their own, not {kind}"
    )


def parse_source(source: Any) -> tuple[list[tuple[Tokens | Columns, float]], bool]:
    """Returns the sources with their weights, and whether the caller gave weights."""
    if not _is_mixture(source):
        return [(_one(source), 1.0)], False
    if not source:
        raise ValueError("source is an empty list: give at least one (source, weight)")
    sources = [_weighted(entry, place) for place, entry in enumerate(source)]
    first = sources[0][0]
    for place, (other, _) in enumerate(sources):
        if isinstance(first, Tokens) or isinstance(other, Tokens):
            same = isinstance(first, Tokens) and isinstance(other, Tokens)
        else:
            same = first.structure() == other.structure()
        if not same:
            raise ValueError(
                f"the sources of a mixture must have the same columns, dtypes and row shapes, but "
                f"source {place} has {_describe(other)} and source 0 has {_describe(first)}"
            )
    return sources, True


def _is_mixture(source: Any) -> bool:
    if isinstance(source, list):
        return True
    return (
        isinstance(source, tuple)
        and len(source) > 0
        and all(isinstance(entry, (tuple, list)) and len(entry) == 2 for entry in source)
    )


def _one(source: Any) -> Tokens | Columns:
    return source if isinstance(source, Tokens) else Columns(source)


def _weighted(entry: Any, place: int) -> tuple[Tokens | Columns, float]:
    if not isinstance(entry, (list, tuple)) or len(entry) != 2:
        raise TypeError(
            f"entry {place} of a list of sources must be (source, weight), where source is an "
            f"Array or Tokens, not {entry!r}; columns that come together are a tuple or a dict"
        )
    source, weight = entry
    if isinstance(weight, (bool, np.bool_, str, bytes)) or not hasattr(weight, "__float__"):
        kind = type(weight).__name__
        raise TypeError(f"the weight of entry {place} must be a number, not {kind}")
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"the weight of entry {place} must be finite and above 0, not {weight}")
    return _one(source), float(weight)


def _describe(source: Tokens | Columns) -> str:
    if isinstance(source, Tokens):
        return "windows of tokens"
    told = ", ".join(f"{lent.name} {lent.dtype} {lent.row_shape}" for lent in source.lent())
    return told


def _sized(values: Any, starts: Any) -> Any:
    """Returns as many values as the offsets require, even if they have no bytes."""
    return values.reshape(int(starts[-1]), *values.shape[1:]) if 0 in values.shape[1:] else values


def _core_of(column: Column) -> Any:
    if isinstance(column, Documents):
        return column._tokens._core
    if isinstance(column, Ragged):
        return [array._core for array in column._columns], column.offsets
    return column._core


def _structure_of(column: Column) -> Any:
    kinds = [(array.dtype, array.shape[1:]) for array in Columns.arrays_of(column)]
    if isinstance(column, Csr):
        return "sparse", column.shape[1], kinds
    if isinstance(column, Ragged) and isinstance(column.values, dict):
        return "ragged", tuple(column.values), kinds
    return ("array" if isinstance(column, Array) else "ragged"), None, kinds
