"""Rows of arrays, or windows of token files, as a map-style dataset."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.utils.data

from lowtide._arguments import MAX, integer
from lowtide._data.array import Array
from lowtide._data.csr import Csr
from lowtide._data.ragged import Ragged
from lowtide._data.tokens import Tokens
from lowtide._loader.columns import Columns
from lowtide._torch.rows import RowList
from lowtide._torch.tensors import tensor_of, tensor_word, windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_TARGETS = ("shifted", "none", "hf")


class Dataset(torch.utils.data.Dataset[Any]):
    """Rows of arrays, or windows of token files, as a map-style dataset for a DataLoader.

    Item i of arrays is row i of each: a tuple, or a dict if the source is one. Item k of tokens is
    the window that starts at token k * block_size; there are (len(tokens) - 1) // block_size. A
    DataLoader requests a whole batch at once (`__getitems__`), which is one call of the engine per
    array. DataLoader workers divide the memory budget among themselves. A pickle holds paths and
    arguments, not the data.

    If nothing requires a map-style dataset, prefer `Loader`: it needs no workers and resumes
    exactly.
    """

    def __init__(
        self,
        source: Any,
        block_size: int | None = None,
        targets: str = "shifted",
        dtype: torch.dtype | npt.DTypeLike = torch.int64,
    ) -> None:
        """Opens the files if `source` is a path.

        Args:
            source: An `Array`, a tuple or a dict of arrays, ragged data, `Tokens`, or a path: with
                block_size, whatever `lowtide.tokens` opens, and without, whatever `lowtide.open`
                opens.
            block_size: Tokens of `x` per window. For tokens only, and required there.
            targets: For tokens only: "shifted" returns `(x, y)` per window, "none" returns `x`,
                and "hf" returns `{"input_ids": x, "labels": x}` for models that shift the labels
                themselves.
            dtype: Integer type of the tensors of tokens: a torch or NumPy type, or its name.
                Arrays are delivered as stored.

        Raises:
            ValueError: `targets` is unknown, there are fewer than block_size + 1 tokens, or arrays
                differ in length.
            TypeError: An argument has the wrong type, or torch has no tensors of the dtype of an
                array.
            OSError: A file cannot be opened.
            FormatError: The bytes of a file contradict its format.
        """
        if targets not in _TARGETS:
            raise ValueError(f"targets must be one of {', '.join(_TARGETS)}, not {targets!r}")
        if block_size is not None:
            block_size = integer(block_size, "block_size", 1, MAX)
        source = _opened(source, block_size)
        self._items: _Windows | _Rows
        if isinstance(source, Tokens):
            if block_size is None:
                raise TypeError(
                    "block_size must be an integer, not NoneType: tokens are delivered in windows, "
                    "so it is required"
                )
            self._items = _Windows(source, block_size, targets, dtype)
        else:
            self._items = _Rows(source)
            if block_size is not None:
                raise ValueError("block_size is for tokens only; the items of arrays are rows")
        self._count = len(self._items)
        self._share: _Windows | _Rows | None = None  # of one worker

    def __len__(self) -> int:
        """Number of items."""
        return self._count

    def __getitem__(self, index: int) -> Any:
        """Reads one item.

        Args:
            index: Number of the row or window. A negative one counts from the end.

        Returns:
            The item, in the structure of the source or as `targets` selects.

        Raises:
            IndexError: There is no such item.
        """
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """Reads several items in the given order, with one call of the engine per array.

        Args:
            indices: Numbers of the items. Negative ones count from the end.

        Returns:
            One entry per item. All of them share one buffer per array.

        Raises:
            IndexError: There is no such item.
        """
        places = self._places(indices)
        return self._source().read(places) if places.size else []

    def _places(self, indices: Sequence[int]) -> npt.NDArray[np.int64]:
        try:
            places = np.fromiter(map(operator.index, indices), np.int64, len(indices))
        except OverflowError as error:
            raise IndexError(f"{self._items.name}: {error}; there are {self._count}") from None
        wrong = places[(places < -self._count) | (places >= self._count)]
        if wrong.size:
            name = self._items.name
            raise IndexError(f"{name} {wrong[0]} is out of range: there are {self._count}")
        return np.where(places < 0, places + self._count, places)

    def _source(self) -> _Windows | _Rows:
        """Returns what to read from: each of several workers opens its own share."""
        worker = torch.utils.data.get_worker_info()
        if worker is None or worker.num_workers == 1:
            return self._items
        if self._share is None:
            self._share = self._items.divided(worker.num_workers)
        return self._share

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_share": None}

    def __repr__(self) -> str:
        return f"<lowtide.torch.Dataset of {self._items!r}>"


class _Windows:
    """The windows of tokens."""

    name = "window"

    def __init__(self, tokens: Tokens, block_size: int, targets: str, dtype: Any) -> None:
        if len(tokens) <= block_size:
            raise ValueError(
                f"block_size={block_size} needs at least {block_size + 1} tokens, but there are "
                f"{len(tokens)}"
            )
        self._tokens = tokens
        self._block_size = block_size
        self._targets = targets
        self._dtype = dtype

    def __len__(self) -> int:
        return (len(self._tokens) - 1) // self._block_size

    @property
    def memory(self) -> int:
        return self._tokens.memory

    def read(self, places: npt.NDArray[np.int64]) -> list[Any]:
        x, y = windows(self._tokens, places * self._block_size, self._block_size, self._dtype)
        if self._targets == "shifted":
            return list(zip(x, y))
        if self._targets == "none":
            return list(x)
        return [{"input_ids": row, "labels": row} for row in x]

    def divided(self, among: int) -> _Windows:
        tokens = self._tokens.reopen(memory=self.memory // among)
        return _Windows(tokens, self._block_size, self._targets, self._dtype)

    def __repr__(self) -> str:
        return (
            f"{len(self)} windows of {self._block_size}, targets={self._targets!r}, over "
            f"{self._tokens!r}"
        )


class _Rows:
    """The rows of arrays that are delivered together."""

    name = "row"

    def __init__(self, source: Any) -> None:
        columns = Columns(source)
        if any(isinstance(column, Csr) for column in columns.columns):
            raise TypeError(
                "a Dataset delivers single samples, but sparse rows are delivered in batches: use "
                "lowtide.torch.Loader"
            )
        for lent in columns.lent():
            tensor_word(lent.dtype, lent.name)  # raises
        self._given = source
        self._names = columns.names
        self._columns = columns.columns
        self._count = len(columns)

    def __len__(self) -> int:
        return self._count

    @property
    def memory(self) -> int:
        return sum(array.memory for array in self._arrays())

    def _arrays(self) -> list[Any]:
        return [array for column in self._columns for array in Columns.arrays_of(column)]

    def read(self, places: npt.NDArray[np.int64]) -> Sequence[Any]:
        columns = [_read_column(column, places) for column in self._columns]
        return RowList(len(places), columns, self._names)

    def divided(self, among: int) -> _Rows:
        return _Rows(_reopened(self._given, among))

    def __repr__(self) -> str:
        return f"{self._count} rows of {self._given!r}"


def _read_column(column: Any, places: npt.NDArray[np.int64]) -> torch.Tensor | list[Any]:
    """Reads rows of an array as one tensor, and ragged samples as a list."""
    if isinstance(column, Array):
        return tensor_of(column.take(places))
    return [_as_tensors(column[place]) for place in places.tolist()]


def _as_tensors(sample: Any) -> Any:
    if isinstance(sample, tuple):
        return tuple(tensor_of(part) for part in sample)
    if isinstance(sample, dict):
        return {name: tensor_of(part) for name, part in sample.items()}
    return tensor_of(sample)


def _reopened(source: Any, among: int) -> Any:
    """Returns the same source with its budgets divided."""
    if isinstance(source, tuple):
        return tuple(_reopened(part, among) for part in source)
    if isinstance(source, dict):
        return {name: _reopened(part, among) for name, part in source.items()}
    if isinstance(source, Ragged):
        return Ragged(_reopened(source.values, among), source.offsets)
    if isinstance(source, Array):
        return source.reopen(memory=source.memory // among)
    return source._tokens.reopen(memory=source._tokens.memory // among).documents


def _opened(source: Any, block_size: int | None) -> Any:
    """Opens a path, or a list of paths."""
    is_paths = isinstance(source, (list, tuple)) and source and all(map(_is_path, source))
    if not (_is_path(source) or is_paths):
        if isinstance(source, list):
            raise TypeError(
                "source must be Tokens, an Array, a tuple or a dict of arrays or a path, not a list"
            )
        return source
    return Array(source) if block_size is None else Tokens(source)


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, bytes, os.PathLike))
