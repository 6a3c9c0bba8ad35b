"""Operators and ufuncs over arrays on disk, block by block, into an ndarray in memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide import _core
from lowtide._compute import reduce
from lowtide._compute.blocks import READ_ONLY, blocks, is_array, load
from lowtide._compute.sums import wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._compute.blocks import Index
    from lowtide._data.array import Array

    AnyArray = npt.NDArray[Any]

# Blocks may be reduced on their own only if the order does not matter.
_COMMUTATIVE = {
    np.add, np.multiply, np.minimum, np.maximum, np.fmin, np.fmax, np.logical_and, np.logical_or,
    np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm, np.logaddexp,
    np.logaddexp2, np.hypot,
}  # fmt: skip


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Implements `__array_ufunc__`: NumPy calls it if an input or an output is an Array."""
    if any(_is_foreign(one) for one in inputs):
        return NotImplemented
    outs = tuple(options.get("out") or ())
    if any(is_array(one) for one in outs):
        raise TypeError(READ_ONLY)
    if method == "at":
        raise TypeError(f"{READ_ONLY}: np.{ufunc.__name__}.at would change it")
    if any(isinstance(one, np.ndarray) and not _is_plain(one) for one in (*inputs, *outs)):
        return _whole(ufunc, method, inputs, options)  # a masked array has rules of its own
    if method == "reduce" and ufunc in _COMMUTATIVE and is_array(inputs[0]):
        return _reduced(ufunc, inputs, options)
    if method != "__call__":
        return _whole(ufunc, method, inputs, options)
    # The value of an array without axes may decide about types, as that of a number does.
    inputs = tuple(one[()] if _is_scalar_array(one) else one for one in inputs)
    if ufunc is np.matmul and not set(options) - {"out"}:
        return matmul(*inputs, *outs)
    if ufunc.signature is not None:
        return _whole(ufunc, method, inputs, options)
    return _elementwise(ufunc, inputs, outs, options)


def _is_foreign(one: Any) -> bool:
    """Whether another library decides what an operation on `one` means."""
    known = isinstance(one, (np.ndarray, np.generic)) or is_array(one)
    return not known and getattr(type(one), "__array_ufunc__", None) is not None


def _is_plain(one: AnyArray) -> bool:
    return type(one) is np.ndarray or isinstance(one, np.memmap)


def _is_scalar_array(one: Any) -> bool:
    return is_array(one) and one.ndim == 0


def _whole(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return getattr(ufunc, method)(*map(load, inputs), **load(options))


def _reduced(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
    told = dict(zip(names, inputs)) | {k: v for k, v in options.items() if v is not np._NoValue}
    array = told.pop("array")
    if told.get("initial") is not None or told.get("where", True) is not True:
        return _whole(ufunc, "reduce", inputs, options)
    out = told.get("out")
    return reduce.reduce_ufunc(
        array,
        ufunc,
        told.get("axis", 0),
        told.get("dtype"),
        out[0] if isinstance(out, tuple) else out,
        bool(told.get("keepdims", False)),
    )


def _elementwise(
    ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    told = {key: value for key, value in options.items() if key not in ("out", "where")}
    where = options.get("where", True)
    operands = [_operand(one) for one in inputs]
    shape = np.broadcast_shapes(*(np.shape(one) for one in (*operands, where)))
    leads = [one for one in operands if is_array(one) and one.shape == shape]
    if not leads or any(one is not None and one.shape != shape for one in outs):
        return _whole(ufunc, "__call__", inputs, options)
    for one in leads:
        one._check_open()
    lead = max(leads, key=lambda one: int(one.nbytes))
    results = _results(ufunc, operands, told, shape, outs, lead)
    operands = [_prepared(one, shape, results) for one in operands]
    if lead.size:
        for index, block in blocks(lead):
            parts = [block if one is lead else _part(one, index) for one in operands]
            into = tuple(one[index] for one in results)
            ufunc(*parts, out=into, where=_part(where, index), **told)
    return results[0] if len(results) == 1 else results


def _operand(one: Any) -> Any:
    """Returns `one` as NumPy sees it; a number stays one, because its type is weak."""
    if is_array(one) or isinstance(one, (np.ndarray, np.generic, int, float, complex)):
        return one
    return np.asarray(one)


def _results(
    ufunc: np.ufunc,
    operands: Sequence[Any],
    told: dict[str, Any],
    shape: tuple[int, ...],
    outs: tuple[Any, ...],
    lead: Array,
) -> tuple[AnyArray, ...]:
    """Returns the arrays to fill. NumPy finds their types, on arrays without elements."""
    samples = [np.empty((0,) * one.ndim, one.dtype) if np.ndim(one) else one for one in operands]
    found = ufunc(*samples, **told)
    types = [one.dtype for one in (found if isinstance(found, tuple) else (found,))]
    if any(one.hasobject for one in types) or any(np.asarray(s).dtype.hasobject for s in samples):
        hint = "; to compare it with None, use `is`" if None in map(_scalar, operands) else ""
        raise TypeError(
            f"np.{ufunc.__name__} of these operands would work on Python objects, which a "
            f"lowtide.Array does not support{hint}"
        )
    outs = outs or (None,) * len(types)
    size = math.prod(shape) * sum(t.itemsize for t, one in zip(types, outs) if one is None)
    check_result(lead, f"np.{ufunc.__name__}", size)
    return tuple(np.empty(shape, t) if one is None else one for t, one in zip(types, outs))


def _scalar(one: Any) -> Any:
    return one[()] if isinstance(one, np.ndarray) and one.dtype.hasobject and not one.ndim else 0


def check_result(array: Array, name: str, size_bytes: int) -> None:
    """Raises ValueError if a result of this many bytes exceeds the budget of `array`."""
    if size_bytes > array.memory:
        raise ValueError(
            f"the result of {name} would take {_core.format_bytes(size_bytes)}, more than this "
            f"array's memory of {_core.format_bytes(array.memory)}: apply it to a[i:j] or to the "
            "chunks of a.iter_chunks(rows), pass out=, or open the array with more memory"
        )


def _prepared(one: Any, shape: tuple[int, ...], results: Sequence[AnyArray]) -> Any:
    """Returns an operand that does not change while the results are written."""
    if is_array(one):
        return one if one.shape == shape else np.asarray(one)
    if isinstance(one, np.ndarray):
        for result in results:
            same = one.shape == result.shape and one.strides == result.strides
            same = same and one.__array_interface__["data"] == result.__array_interface__["data"]
            if not same and np.may_share_memory(one, result):
                return one.copy()
    return one


def _part(one: Any, index: Index) -> Any:
    """Returns what an operand contributes to the block at `index`."""
    ndim = np.ndim(one)
    if not ndim:
        return one
    here = index[len(index) - ndim :]
    return one[tuple(slice(None) if n == 1 else s for n, s in zip(one.shape, here))]


def matmul(left: Any, right: Any, out: AnyArray | None = None) -> Any:
    """Returns `left @ right`; one is an Array of one or two axes, the other fits into memory."""
    if is_array(left) and is_array(right):
        if left.nbytes < right.nbytes:
            left = np.asarray(left)
        else:
            right = np.asarray(right)
    on_left = is_array(left)
    array, other = (left, np.asarray(right)) if on_left else (right, np.asarray(left))
    left, right = (array, other) if on_left else (other, array)
    if max(left.ndim, right.ndim) > 2 or not other.ndim or not array.size:
        outs: dict[str, Any] = {} if out is None else {"out": out}
        return np.matmul(np.asarray(left), np.asarray(right), **outs)
    if left.shape[-1] != right.shape[0]:
        raise ValueError(f"matmul: the shapes {left.shape} and {right.shape} do not fit together")
    one = (np.zeros((1,) * side.ndim, side.dtype) for side in (left, right))
    dtype = np.matmul(*one).dtype
    shape = left.shape[:-1] + right.shape[1:]
    if out is None:
        check_result(array, "np.matmul", math.prod(shape) * dtype.itemsize)
    # Many blocks add up to each element of the result, unless a row of the left side is a block.
    total = np.zeros(shape, dtype if on_left and left.ndim == 2 else wide(dtype))
    for index, block in blocks(array, (array.ndim - 1,) if on_left else (0,)):
        if on_left:
            total[index[:-1]] += block @ other[index[-1]]
        else:
            columns: Any = (..., *index[1:])
            total[columns] += other[..., index[0]] @ block
    if out is not None:
        np.copyto(out, total, casting="same_kind")
        return out
    total = total.astype(dtype, copy=False)
    return total if shape else total[()]
