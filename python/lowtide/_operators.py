"""Operators on data on disk: those of an Array are ufuncs, the others are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "divmod": "divmod()", "and": "&", "or": "|", "xor": "^", "lshift": "<<",
    "rshift": ">>",
}  # fmt: skip
_UNARY = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs()"}


class NoOperators:
    """Refuses comparison and arithmetic with a TypeError that shows what to write instead.

    An ndarray's own operators defer to these (`__array_priority__`), so `np.arange(3) + a` is
    refused just as `a + 1` is. NumPy functions such as `np.sum(a)` and `np.add(a, 1)` load the
    whole array through `__array__`, which refuses more than `memory`. Objects hash by identity.
    """

    __slots__ = ()

    __array_priority__: ClassVar[float] = 1e6

    def __hash__(self) -> int:
        return object.__hash__(self)

    def _refuse(self, sign: str) -> NoReturn:
        """Raises the TypeError of an operator."""
        raise TypeError(f"a {self._kind()} has no operator {sign}: {self._instead()}")

    def _kind(self) -> str:
        """Returns the public name of the class."""
        return f"lowtide.{type(self).__name__}"

    def _instead(self) -> str:
        """Returns the end of the message: why there are no operators, and what to write instead."""
        raise NotImplementedError


class NoTruth:
    """Refuses `if a:`, which NumPy refuses for arrays of more than one element."""

    __slots__ = ()

    def __bool__(self) -> bool:
        kind = f"lowtide.{type(self).__name__}"
        raise TypeError(f"a {kind} is neither true nor false: use len() or `is not None`")


def _refusal(name: str, sign: str) -> Callable[..., Any]:
    def refuse(self: NoOperators, *others: object) -> Any:
        if sign in ("==", "!=") and others[0] is None:
            raise TypeError(
                f"a {self._kind()} has no operator {sign}: to compare it with None, use `is`"
            )
        self._refuse(sign)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _refuse_all() -> None:
    signs = {f"__{name}__": sign for name, sign in (_COMPARISONS | _ARITHMETIC | _UNARY).items()}
    signs |= {f"__r{name}__": sign for name, sign in _ARITHMETIC.items()}
    for name, sign in signs.items():
        setattr(NoOperators, name, _refusal(name, sign))


_refuse_all()


if TYPE_CHECKING:
    UfuncOperators = np.lib.mixins.NDArrayOperatorsMixin
else:
    # Before NumPy 1.25, its class of this kind has no __slots__.
    class UfuncOperators:
        """Every operator is a ufunc, which calls `__array_ufunc__`, as that of an ndarray is."""

        __slots__ = ()


_UFUNCS: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "truediv": np.true_divide, "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
    "matmul": np.matmul, "divmod": np.divmod, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift, "neg": np.negative,
    "pos": np.positive, "invert": np.invert, "abs": np.absolute,
}  # fmt: skip


def _operator(prefix: str, name: str) -> Callable[..., Any]:
    ufunc = _UFUNCS[name]

    def operate(self: Any, *others: Any) -> Any:
        if any(getattr(type(one), "__array_ufunc__", self) is None for one in others):
            return NotImplemented
        if prefix == "i":
            return ufunc(self, *others, out=(self,))
        return ufunc(*others, self) if prefix == "r" else ufunc(self, *others)

    operate.__name__ = operate.__qualname__ = f"__{prefix}{name}__"
    return operate


def _define_all() -> None:
    for name in _UFUNCS:
        prefixes = ("", "r", "i") if name in _ARITHMETIC and name != "divmod" else ("",)
        for prefix in (*prefixes, "r") if name == "divmod" else prefixes:
            setattr(UfuncOperators, f"__{prefix}{name}__", _operator(prefix, name))


_define_all()
