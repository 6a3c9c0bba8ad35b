"""The rows of a batch as a DataLoader expects them: separate items, which it joins again.

Making an item per row and stacking the items costs several times as much as reading them. So items
are made only on access, and `default_collate` gets the arrays as they were read.
"""

from __future__ import annotations

import collections.abc
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data._utils import collate

if TYPE_CHECKING:
    from collections.abc import Iterator


class TupleRow(tuple[Any, ...]):
    """One row of several columns."""

    __slots__ = ()


class DictRow(dict[str, Any]):
    """One row of several columns by name."""

    __slots__ = ()


class RowList(collections.abc.Sequence[Any]):
    """Rows that are in memory column by column."""

    def __init__(self, count: int, columns: list[Any], names: tuple[str, ...] | None) -> None:
        self._count = count
        self.columns = columns
        self.names = names

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._row(place) for place in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"row {index} is out of range: there are {self._count}")
        return self._row(index)

    def __iter__(self) -> Iterator[Any]:
        return map(self._row, range(self._count))

    def _row(self, place: int) -> Any:
        row = [column[place] for column in self.columns]
        return TupleRow(row) if self.names is None else DictRow(zip(self.names, row))


def _collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Does what `default_collate` does for tuples and dicts, without stacking what is stacked."""
    if not isinstance(batch, RowList):
        plain = dict if isinstance(batch[0], dict) else tuple
        return collate.collate([plain(row) for row in batch], collate_fn_map=collate_fn_map)
    columns = [
        column
        if isinstance(column, torch.Tensor)
        else collate.collate(column, collate_fn_map=collate_fn_map)
        for column in batch.columns
    ]
    return columns if batch.names is None else dict(zip(batch.names, columns))


collate.default_collate_fn_map.update({TupleRow: _collate, DictRow: _collate})
