"""Windows and batches as tensors that share the buffers of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.utils.dlpack

from lowtide import _core
from lowtide._arguments import MAX, integer, token_word
from lowtide._data.tokens import Tokens, checked_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

# Makes a tensor from a capsule. torch.utils.dlpack.from_dlpack calls it after further checks.
from_dlpack: Callable[[object], torch.Tensor] = getattr(
    torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack
)
INTEGERS: dict[Any, Any] = {
    getattr(torch, name): name
    for name in _core.token_types()
    if hasattr(torch, name)  # torch 2.3 added the wide unsigned types
}

_TENSOR_KINDS = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}


def tensor_word(dtype: np.dtype[Any], name: str) -> str:
    """Returns the core's word for tensors of a NumPy type. Raises TypeError if torch has none."""
    if dtype.name == "bfloat16":
        return "bfloat16"
    known = dtype.itemsize in _TENSOR_KINDS.get(dtype.kind, ())
    if not (known and dtype.isnative and hasattr(torch, dtype.name)):
        raise TypeError(
            f"{name} has dtype {dtype}, and torch has no tensors of that type; use lowtide.Loader, "
            "which delivers arrays"
        )
    return dtype.str


def numpy_type(dtype: Any) -> Any:
    """Returns the name of a torch type, and anything else as it is."""
    return str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype


def as_array(values: Any) -> Any:
    """Returns a tensor as an array, and anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values


def tensor_of(array: Any) -> torch.Tensor:
    """Returns an array as a tensor that shares its memory."""
    if array.dtype.name != "bfloat16":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view("uint16")).view(torch.bfloat16)


def sparse_csr(batch: Any) -> torch.Tensor:
    """Returns a batch of sparse rows as a sparse CSR tensor, which borrows its values."""
    data, indices, indptr = batch
    if indices.dtype == torch.int32 and len(data) <= torch.iinfo(torch.int32).max:
        indptr = indptr.to(torch.int32)  # both must have the same type
    else:
        indices = indices.to(torch.int64)
    # The core has checked that all indices exist; whether they are sorted, the file decides.
    return torch.sparse_csr_tensor(indptr, indices, data, size=batch.shape, check_invariants=False)


def nested(entry: Any) -> torch.Tensor:
    """Returns `values, offsets` as a jagged nested tensor. Raises TypeError for anything else."""
    if not (
        isinstance(entry, tuple)
        and len(entry) == 2
        and all(isinstance(part, torch.Tensor) for part in entry)
    ):
        raise TypeError(
            "nested() is for ragged columns, which are (values, offsets); name the column if there "
            "are several"
        )
    values, offsets = entry
    # With the length of its longest sample, to_padded_tensor pads to that, not to all values.
    least, most = (int(length) for length in offsets.diff().aminmax())
    return torch.nested.nested_tensor_from_jagged(
        values, offsets, min_seqlen=least, max_seqlen=most
    )


def windows(
    tokens: Tokens,
    ix: torch.Tensor | npt.ArrayLike,
    block_size: int,
    dtype: torch.dtype | npt.DTypeLike = torch.int64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Reads the windows that start at the given tokens, as tensors.

    Args:
        tokens: The open token files.
        ix: First token of each window: a tensor, an array or a list of integers with one axis.
            Messages call it `starts`, as in `Tokens.windows`.
        block_size: Tokens of `x` per window. Each window reads block_size + 1 tokens.
        dtype: Integer type of `x` and `y`: a torch or NumPy type, or its name.

    Returns:
        `(x, y)`, two tensors of shape (len(ix), block_size); `y` is `x` one token later. They
        borrow one buffer without a copy and stay valid and unchanged while either of them lives.

    Raises:
        IndexError: A window reaches outside the stream.
        ValueError: A token does not fit `dtype`, `ix` is empty or has several axes, or `tokens` is
            closed.
        TypeError: An argument has the wrong type.
    """
    if not isinstance(tokens, Tokens):
        kind = type(tokens).__name__
        raise TypeError(
            f"tokens must be a lowtide.Tokens (open it with lowtide.tokens), not {kind}"
        )
    word = INTEGERS.get(dtype) or token_word(dtype)
    block_size = integer(block_size, "block_size", 1, MAX)
    starts: Any = ix.tolist() if isinstance(ix, torch.Tensor) else ix
    try:  # a list of ints, as a training loop has it, needs no conversion
        return tokens._core.window_tensors(starts, block_size, word, from_dlpack)
    except TypeError:
        pass
    starts = checked_starts(ix.cpu().numpy() if isinstance(ix, torch.Tensor) else ix)
    return tokens._core.window_tensors(starts, block_size, word, from_dlpack)
