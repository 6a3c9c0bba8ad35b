"""Refuses operators on data on disk: `a == 3` must not be False, nor silently load everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

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
    """Refuses comparison and arithmetic with a TypeError that says what to write instead.

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
        kind = f"lowtide.{type(self).__name__}"
        raise TypeError(f"a {kind} has no operator {sign}: {self._instead()}")

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
        kind = f"lowtide.{type(self).__name__}"
        if sign in ("==", "!=") and others[0] is None:
            raise TypeError(f"a {kind} has no operator {sign}: to compare it with None, use `is`")
        self._refuse(sign)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _refuse_all() -> None:
    signs = {f"__{name}__": sign for name, sign in (_COMPARISONS | _ARITHMETIC | _UNARY).items()}
    signs |= {f"__r{name}__": sign for name, sign in _ARITHMETIC.items()}
    for name, sign in signs.items():
        setattr(NoOperators, name, _refusal(name, sign))


_refuse_all()
