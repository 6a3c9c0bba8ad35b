"""What a NumPy user expects of an array: reductions, operators, and NumPy's own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lowtide._compute import elementwise, functions, reduce
from lowtide._compute.blocks import InBlocks
from lowtide._operators import NoOperators, NoTruth, UfuncOperators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from lowtide._compute.reduce import Axis
    from lowtide._data.array import Array, Path

    AnyArray = npt.NDArray[Any]


class ArrayMethods(NoTruth, UfuncOperators, InBlocks):
    """The methods and operators of an Array that read it in blocks, within its budget.

    Every method but `map` returns what the same method of an ndarray returns.
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        for one in inputs:
            if isinstance(one, NoOperators):
                one._refuse(ufunc.__name__)
        return elementwise.call(ufunc, method, inputs, options)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        return functions.call(function, args, kwargs)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def _reduce(self, name: str, axis: Axis, out: AnyArray | None, keepdims: bool, **o: Any) -> Any:
        return reduce.reduce(cast("Array", self), name, axis, out, keepdims, **o)

    def map(
        self,
        fn: Callable[[AnyArray], npt.ArrayLike],
        path: Path,
        rows: int = 4096,
        workers: int = 1,
        progress: bool | Callable[[int, int], object] | None = None,
    ) -> None:
        """Writes `fn(chunk)` of every chunk of rows to a `.npy` file, within `memory`.

        Reads ahead of `fn` and writes behind it. Reading and writing share `memory`: a quarter, up
        to 48 MiB, goes to the writer, and the chunks and results in progress count as well. Memory
        that `fn` itself allocates does not count. The file appears under its name when it is
        complete, as with `lowtide.create`; after an exception, an old file is unchanged.

        Args:
            fn: Takes an ndarray of consecutive rows, which it may change and keep, and returns one
                row per input row. Its first result sets the dtype and the shape of a row.
            path: Name of the file; it ends with `.npy`. It must not be a file of this array.
            rows: Rows per chunk. The last chunk may be shorter.
            workers: Threads that call `fn`. With 1, it is called on your own thread, in row order;
                with more, in any order. The contents of the file do not depend on it.
            progress: None shows a bar on a terminal if it takes longer than a second. True prints a
                line per tenth where there is no terminal. A callable gets (done, total) in rows, on
                your own thread. False shows nothing.

        Raises:
            ValueError: `fn` changed the number of rows, or the shape of a row between chunks; the
                path is a file of this array; `memory` is too small; or the array is closed.
            TypeError: `fn` changed the dtype between chunks, or an argument has the wrong type.
            OSError: A file cannot be read or written. Exceptions from `fn` propagate unchanged.
        """
        from lowtide._writer.map_rows import map_rows  # which needs an Array

        map_rows(cast("Array", self), fn, path, rows, workers, progress)

    def sum(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        keepdims: bool = False,
    ) -> Any:
        """Adds up the elements.

        Floating-point sums are at least as accurate as NumPy's: sums of blocks are added in a
        wider type.

        Args:
            axis: Axis or tuple of axes to sum over; negative ones count from the end. Default:
                all.
            dtype: Type of the result. Default: as NumPy chooses it.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The sums in an ndarray, or a scalar if no axis is left.

        Raises:
            OSError: A read failed.
            FormatError: A file has changed or is shorter than its header promises.
            ValueError: An argument is invalid, or the array is closed.
            TypeError: NumPy cannot add elements of this type.
        """
        return self._reduce("sum", axis, out, keepdims, dtype=dtype)

    def mean(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        keepdims: bool = False,
    ) -> Any:
        """Returns the arithmetic mean, computed in float64 or wider.

        Args:
            axis: Axis or tuple of axes to average over. Default: all.
            dtype: Type of the result. Default: as NumPy chooses it.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The means in an ndarray, or a scalar. The mean of no elements is NaN, with a
            RuntimeWarning. `sum` lists what may be raised.
        """
        return self._reduce("mean", axis, out, keepdims, dtype=dtype)

    def std(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:
        """Returns the standard deviation, computed in float64 or wider, in one pass over the file.

        Args:
            axis: Axis or tuple of axes. Default: all.
            dtype: Type of the result. Default: as NumPy chooses it.
            out: Array for the result, of its shape. Default: a new array.
            ddof: The divisor is the number of elements minus `ddof`.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The standard deviations in an ndarray, or a scalar. `sum` lists what may be raised.
        """
        return self._reduce("std", axis, out, keepdims, dtype=dtype, ddof=ddof)

    def var(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:
        """Returns the variance, computed in float64 or wider, in one pass over the file.

        Args:
            axis: Axis or tuple of axes. Default: all.
            dtype: Type of the result. Default: as NumPy chooses it.
            out: Array for the result, of its shape. Default: a new array.
            ddof: The divisor is the number of elements minus `ddof`.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The variances in an ndarray, or a scalar. `sum` lists what may be raised.
        """
        return self._reduce("var", axis, out, keepdims, dtype=dtype, ddof=ddof)

    def min(self, axis: Axis = None, out: AnyArray | None = None, keepdims: bool = False) -> Any:
        """Returns the smallest element; a NaN wins over everything, as in NumPy.

        Args:
            axis: Axis or tuple of axes. Default: all.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The minima in an ndarray, or a scalar.

        Raises:
            ValueError: There are no elements to compare. `sum` lists what else may be raised.
        """
        return self._reduce("min", axis, out, keepdims)

    def max(self, axis: Axis = None, out: AnyArray | None = None, keepdims: bool = False) -> Any:
        """Returns the largest element; a NaN wins over everything, as in NumPy.

        Args:
            axis: Axis or tuple of axes. Default: all.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The maxima in an ndarray, or a scalar.

        Raises:
            ValueError: There are no elements to compare. `sum` lists what else may be raised.
        """
        return self._reduce("max", axis, out, keepdims)

    def any(self, axis: Axis = None, out: AnyArray | None = None, keepdims: bool = False) -> Any:
        """Returns whether any element is true. Over all axes, it stops reading at the first one.

        Args:
            axis: Axis or tuple of axes. Default: all.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The answers in an ndarray, or a scalar. `sum` lists what may be raised.
        """
        return self._reduce("any", axis, out, keepdims)

    def all(self, axis: Axis = None, out: AnyArray | None = None, keepdims: bool = False) -> Any:
        """Returns whether all elements are true. Over all axes, it stops at the first false one.

        Args:
            axis: Axis or tuple of axes. Default: all.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axes stay in the result with length 1.

        Returns:
            The answers in an ndarray, or a scalar. `sum` lists what may be raised.
        """
        return self._reduce("all", axis, out, keepdims)

    def argmin(
        self, axis: int | None = None, out: AnyArray | None = None, keepdims: bool = False
    ) -> Any:
        """Returns the index of the first smallest element.

        Args:
            axis: Axis along which to search. Default: the whole array, as if it were flat.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axis stays in the result with length 1.

        Returns:
            The indices in an ndarray, or a scalar.

        Raises:
            ValueError: There are no elements to compare. `sum` lists what else may be raised.
        """
        return self._reduce("argmin", axis, out, keepdims)

    def argmax(
        self, axis: int | None = None, out: AnyArray | None = None, keepdims: bool = False
    ) -> Any:
        """Returns the index of the first largest element.

        Args:
            axis: Axis along which to search. Default: the whole array, as if it were flat.
            out: Array for the result, of its shape. Default: a new array.
            keepdims: Whether the axis stays in the result with length 1.

        Returns:
            The indices in an ndarray, or a scalar.

        Raises:
            ValueError: There are no elements to compare. `sum` lists what else may be raised.
        """
        return self._reduce("argmax", axis, out, keepdims)
