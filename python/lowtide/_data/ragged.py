"""Samples of different lengths: ranges of the rows of one or several arrays."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core
from lowtide._core import FormatError
from lowtide._data.array import Array
from lowtide._operators import NoOperators

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    Values = Array | tuple[Array, ...] | Mapping[str, Array]

_OFFSETS_SHARE = 4  # offsets may take up to 1/4 of the budget of the values


def ragged(values: Values, offsets: Array | npt.ArrayLike) -> Ragged:
    """Combines arrays and offsets into samples of different lengths.

    Sample i is `values[offsets[i]:offsets[i + 1]]`, as in a jagged tensor or an Arrow list.

    Args:
        values: An `Array`, or a tuple or dict of arrays of the same length, all cut by the same
            offsets.
        offsets: One more integer than there are samples, as an `Array` or in memory: from 0, never
            decreasing, at most len(values). They are checked and held in memory, 8 bytes each.

    Returns:
        A sequence of samples, and a source for `Loader`.

    Raises:
        FormatError: The offsets decrease, do not start at 0 or exceed the values; the message
            names the entry.
        ValueError: The arrays have different lengths, or the offsets do not fit into a quarter of
            `memory`.
        TypeError: An argument has the wrong type.
    """
    return Ragged(values, offsets)


class Ragged(NoOperators):
    """Samples of different lengths as a sequence; `lowtide.ragged` creates it.

    `r[i]` reads one sample, in the structure of the values; `r[i:j]` reads several as a list.
    Results own their memory. A pickle holds the arrays by reference, and the offsets.
    """

    __slots__ = ("_columns", "_given", "_offsets", "_values")

    def __init__(self, values: Values, offsets: Array | npt.ArrayLike) -> None:
        self._values = values
        self._given = offsets if isinstance(offsets, Array) else None
        self._columns = _columns_of(values)
        lengths = {len(array) for array in self._columns}
        if len(lengths) > 1:
            told = ", ".join(str(len(array)) for array in self._columns)
            raise ValueError(f"the arrays of values must have the same length, not {told}")
        self._offsets = _checked_offsets(offsets, lengths.pop(), self._columns[0].memory)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self._offsets) - 1

    @property
    def values(self) -> Values:
        """The arrays that samples are ranges of, as given."""
        return self._values

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Start of each sample, and the end of the last; read-only."""
        return self._offsets

    def __getitem__(self, index: int | slice) -> Any:
        """Reads one sample, or a list of samples for a slice.

        Raises:
            IndexError: There is no such sample.
            TypeError: `index` is neither an integer nor a slice.
        """
        if isinstance(index, slice):
            return [self._read(place) for place in range(*index.indices(len(self)))]
        try:
            found = operator.index(index)
        except TypeError:
            kind = type(index).__name__
            raise TypeError(f"a sample index must be an integer or a slice, not {kind}") from None
        place = found + len(self) if found < 0 else found
        if not 0 <= place < len(self):
            raise IndexError(f"sample {found} is out of range: there are {len(self)}")
        return self._read(place)

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the samples in order."""
        return map(self._read, range(len(self)))

    def _read(self, place: int) -> Any:
        first, last = self._offsets[place : place + 2].tolist()
        if isinstance(self._values, Array):
            return self._values[first:last]
        if isinstance(self._values, tuple):
            return tuple(array[first:last] for array in self._values)
        return {name: array[first:last] for name, array in self._values.items()}

    def _instead(self) -> str:
        return "its samples are on disk. Index it first, as in r[i]"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ragged, (self._values, self._offsets if self._given is None else self._given)

    def __repr__(self) -> str:
        return f"<lowtide.Ragged {len(self)} samples of {self._values!r}>"


def _columns_of(values: Any) -> list[Array]:
    columns = values
    if isinstance(values, Array):
        columns = [values]
    elif isinstance(values, dict):
        for name in values:
            if not isinstance(name, str):
                raise TypeError(f"the names of values must be strings, not {name!r}")
        columns = list(values.values())
    elif not isinstance(values, tuple):
        columns = []
    if not columns:
        raise TypeError("values must be a lowtide.Array, or a tuple or dict of them")
    for array in columns:
        if not isinstance(array, Array):
            kind = type(array).__name__
            raise TypeError(
                f"values must be lowtide.Array (open them with lowtide.open), not {kind}"
            )
        if not array.ndim:
            raise TypeError("values must have at least one axis, not 0-d")
    return list(columns)


def _checked_offsets(offsets: Any, length: int, memory: int) -> npt.NDArray[np.int64]:
    found = offsets if isinstance(offsets, Array) else np.asarray(offsets)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise TypeError(
            f"offsets must be integers with one axis, not {found.dtype} of shape {found.shape}"
        )
    if found.size * 8 > memory // _OFFSETS_SHARE:
        raise ValueError(
            f"{found.size} offsets need {_core.format_bytes(found.size * 8)}, but a quarter of "
            f"memory is {_core.format_bytes(memory // _OFFSETS_SHARE)}; open the values with more "
            "memory"
        )
    if found.dtype == np.uint64 and found.size and found[-1] > np.iinfo(np.int64).max:
        raise FormatError(  # as an int64 it would wrap
            f"offsets: entry {found.size - 1} is {found[-1]}, but there are only {length} values"
        )
    held = np.array(found[:], np.int64)
    held.flags.writeable = False
    _core.check_offsets(held, length)
    return held
