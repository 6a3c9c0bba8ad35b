"""The options of a loader: which belong to which kind of samples, and how the core takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowtide import _core
from lowtide._arguments import MAX, integer, token_word
from lowtide._data.tokens import Tokens
from lowtide._loader.dense import parse_dense
from lowtide._loader.selection import parse_rows, parse_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from lowtide._loader.columns import Columns, Lent
    from lowtide._loader.dense import Dense

_SHARED = ("batch_size", "order", "seed", "rank", "world_size", "epochs", "drop_last", "prefetch")


def check_kind(told: dict[str, Any], sources: list[tuple[Any, float]]) -> None:
    """Checks the options that only windows or sparse rows have, and fills in their defaults."""
    if told["documents"] not in ("cross", "separate"):
        raise ValueError(f"documents must be 'cross' or 'separate', not {told['documents']!r}")
    first = sources[0][0]
    if isinstance(first, Tokens):
        if told["dense"] or told["columns"] is not None:
            raise ValueError("dense and columns are for sparse rows only, not for tokens")
        if told["block_size"] is None:
            raise TypeError(
                "block_size must be an integer, not NoneType: tokens are delivered in windows, so "
                "it is required"
            )
        told["block_size"] = integer(told["block_size"], "block_size", 1, MAX)
        told["dtype"] = token_word("int64" if told["dtype"] is None else told["dtype"])
        return
    dense = parse_dense(told, first)
    for source, _ in sources:
        source.dense = dense
    for name, default in (("block_size", None), ("dtype", None), ("documents", "cross")):
        if told[name] != default and not (name == "dtype" and dense):
            raise ValueError(
                f"{name} is for windows of tokens only; arrays are delivered as they are stored"
            )


def open_core(
    owner: Any,
    sources: list[tuple[Any, float]],
    is_mixture: bool,
    told: dict[str, Any],
    type_word: Callable[[Lent], str],
) -> _core.Loader:
    """Opens the core of the loader `owner`; the core borrows the caller's rows and weights."""
    first: Tokens | Columns = sources[0][0]
    options = _core_options(told, None if isinstance(first, Tokens) else first.dense)
    owner._tune(options, sources)
    memory = told["memory"] or first.memory
    common: dict[str, Any] = {
        "mixture": is_mixture,
        "options": options,
        "rows": None,
        "weights": None if told["weights"] is None else parse_weights(told["weights"], memory),
    }
    if told["rows"] is not None:
        if is_mixture:
            raise ValueError("rows: a mixture takes no selection of rows; leave rows out")
        is_windows = isinstance(first, Tokens)
        length = (len(first) - 1) // told["block_size"] if is_windows else len(first)
        rows = parse_rows(told["rows"], length, memory)
        options.claim_rows = rows.is_ours
        common["rows"] = rows.rows
        told["rows"] = rows.kept()  # what a pickle holds
        owner._thaw = rows.freeze_for(owner)
    if isinstance(first, Tokens):
        windows = [(tokens._core, weight) for tokens, weight in sources]
        return _core.Loader.open_windows(windows, **common)
    columns = [(source.cores(), weight) for source, weight in sources]
    lent = [(type_word(one), one.row_shape) for one in first.lent()]
    return _core.Loader.open_columns(columns, lent=lent, **common)


def _core_options(told: dict[str, Any], dense: Dense | None) -> _core.LoaderOptions:
    """Returns the options as the core takes them, without rows and weights."""
    options = _core.LoaderOptions()
    for name in _SHARED:
        setattr(options, name, told[name])
    options.memory_bytes = told["memory"] or 0
    if dense is not None:
        options.deliver_dense(
            dense.dtype.name, None if dense.columns is None else dense.columns.tolist()
        )
    if told["block_size"] is not None:
        options.block_size = told["block_size"]
        options.dtype = told["dtype"]
        options.separate_documents = told["documents"] == "separate"
    return options
