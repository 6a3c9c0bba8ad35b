"""How the arrays that the core lends become a batch in the structure of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowtide._loader.batch import Batch, named_batch
from lowtide._loader.sparse_batch import sparse_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from lowtide._loader.columns import Columns, Lent


def finisher(columns: Columns, wrap: Any) -> Callable[[tuple[Any, ...]], Batch]:
    """Returns the function that makes a batch from the core's arrays, followed by their lease.

    Args:
        columns: The columns of the source.
        wrap: Makes a tensor of an array, if the core lends tensors; else None.
    """
    kind: type[Batch] = named_batch(columns.names) if columns.names else Batch
    if columns.is_sparse:
        kind = sparse_batch(columns.source.shape[1])
    lent = [] if wrap is not None else columns.lent()
    views = [(place, one) for place, one in enumerate(lent) if not one.is_plain]
    is_flat = columns.is_flat
    told = wrap or (lambda offsets: offsets)

    def finish(found: tuple[Any, ...]) -> Batch:
        lease = found[-1]
        flat: Any = found[:-1]
        if views:
            flat = list(flat)
            for place, one in views:
                flat[place] = _viewed(flat[place], one, lease)
        if not is_flat:
            flat = columns.present(flat, lambda table: told(lease.offsets(table)))
        batch = kind(flat)
        batch._lease = lease
        return batch

    return finish


def _viewed(raw: Any, lent: Lent, lease: Any) -> Any:
    """Returns the bytes of a column as rows of its own type."""
    if not raw.size:
        rows = len(lease.index()) if lent.dtype.itemsize * np.prod(lent.row_shape) == 0 else 0
        return np.empty((rows, *lent.row_shape), lent.dtype)
    return raw.view(lent.dtype).reshape(-1, *lent.row_shape)
