"""Batches for a device: what pins their memory, and what copies them."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from lowtide import _core
from lowtide._torch.tensors import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


class Event(Protocol):
    """Passes when the copies before it have ended."""

    def query(self) -> bool:
        """Returns whether it has passed."""

    def synchronize(self) -> None:
        """Waits until it has passed."""


class Copier(Protocol):
    """A device, and a way to copy to it that does not wait."""

    device: torch.device

    def copy(
        self, tensors: Sequence[torch.Tensor], dtypes: Sequence[torch.dtype]
    ) -> tuple[list[torch.Tensor], Event]:
        """Starts to copy tensors and to convert the copies; returns them and an event after both.

        The caller keeps the tensors unchanged until the event has passed.
        """

    def hand_over(self, tensors: Sequence[torch.Tensor], event: Event) -> None:
        """Makes the caller's next work on the device wait for the copies."""


class CudaCopier:
    """Copies on a CUDA stream of its own."""

    def __init__(self, device: torch.device) -> None:
        index = torch.cuda.current_device() if device.index is None else device.index
        self.device = torch.device("cuda", index)
        self._stream = torch.cuda.Stream(self.device)

    def copy(
        self, tensors: Sequence[torch.Tensor], dtypes: Sequence[torch.dtype]
    ) -> tuple[list[torch.Tensor], Event]:
        """As in `Copier`. From memory that is not pinned, torch copies through its own."""
        with torch.cuda.stream(self._stream):
            copies = []
            for tensor, dtype in zip(tensors, dtypes, strict=True):
                source = tensor if tensor.is_pinned() else tensor.pin_memory()
                copies.append(source.to(self.device, non_blocking=True).to(dtype))
            event = torch.cuda.Event()
            event.record(self._stream)
        return copies, event

    def hand_over(self, tensors: Sequence[torch.Tensor], event: Any) -> None:
        """As in `Copier`: the current stream waits; the caller does not."""
        stream = torch.cuda.current_stream(self.device)
        stream.wait_event(event)
        for tensor in tensors:
            tensor.record_stream(stream)  # else its memory could be reused while it is in use


def open_copier(device: torch.device | str | int | None) -> Copier | None:
    """Returns a copier for `device`; None for the CPU. Raises ValueError, TypeError."""
    if device is None:
        return None
    try:
        asked = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device: {str(error).splitlines()[0]}") from None
    if asked.type == "cpu":
        return None
    if asked.type != "cuda":
        raise ValueError(
            f"device: batches can be copied to CUDA devices, not to {str(asked)!r}; leave device "
            "out and copy them with Tensor.to"
        )
    if not torch.cuda.is_available():
        raise ValueError(
            f"device: there is no {str(asked)!r}, because torch finds no CUDA here; use device=None"
        )
    count = torch.cuda.device_count()
    if asked.index is not None and asked.index >= count:
        raise ValueError(f"device: there is no {str(asked)!r}; CUDA devices found: {count}")
    return CudaCopier(asked)


def current(copier: Copier | None) -> contextlib.AbstractContextManager[Any]:
    """Makes the device of `copier` the current one of this thread for a while."""
    if copier is None or copier.device.type != "cuda":
        return contextlib.nullcontext()
    device: contextlib.AbstractContextManager[Any] = torch.cuda.device(copier.device)
    return device


def pinning(wanted: bool, copier: Copier | None) -> str:
    """Returns what pins the memory of batches: "core", "torch" or "" (nothing)."""
    if copier is not None:
        return "" if _core.why_no_pinning() else "core"
    if not wanted:
        return ""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if found is None or found.type == "mps":  # torch cannot pin memory for that one
        warnings.warn(
            "pin_memory=True has no effect: there is no accelerator that uses pinned memory, so "
            "tensors will be in plain memory",
            stacklevel=3,
        )
        return ""
    return "core" if found.type == "cuda" and not _core.why_no_pinning() else "torch"


def pinned(array: npt.NDArray[Any]) -> torch.Tensor:
    """Returns an array as a tensor in pinned memory of torch."""
    return torch.from_numpy(array).pin_memory()


def narrow_type(wide: str, sources: list[tuple[Any, float]]) -> str | None:
    """Returns the type in which all sources store their tokens, if it is narrower than `wide`.

    None also if torch has no such type, or if `wide` cannot hold all of its values.
    """
    kinds = {tokens.dtype.newbyteorder("=") for tokens, _ in sources}
    stored = kinds.pop()
    if kinds or stored.itemsize >= np.dtype(wide).itemsize or not np.can_cast(stored, wide):
        return None
    return stored.name if stored.name in INTEGERS.values() else None
