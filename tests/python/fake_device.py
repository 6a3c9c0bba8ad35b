"""A device for tests: it copies late, in a thread of its own, and keeps nothing alive."""

from __future__ import annotations

import ctypes
import queue
import random
import threading
import time

import torch


class FakeEvent:
    """Passes when the copies before it have ended."""

    def __init__(self):
        self._done = threading.Event()

    def query(self):
        return self._done.is_set()

    def synchronize(self):
        assert self._done.wait(60)


class FakeCopier:
    """Copies from addresses, as a device does: what is returned too early reads as something else.

    What a batch contains is undefined until it is handed over.
    """

    device = torch.device("cpu")

    def __init__(self, seed=1, most_delay_s=0.0):
        self.sent = []  # the types of each batch
        self.fails = 0  # so many of the next copies
        self._most_delay_s = most_delay_s
        self._random = random.Random(seed)
        self._may_end = threading.Event()
        self._may_end.set()
        self._work = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def hold(self):
        """Until `release` no copy ends."""
        self._may_end.clear()

    def release(self):
        self._may_end.set()

    def copy(self, tensors, dtypes):
        if self.fails:
            self.fails -= 1
            raise RuntimeError("out of memory on the device")
        self.sent.append([tensor.dtype for tensor in tensors])
        places = [(t.data_ptr(), t.numel() * t.element_size(), t.dtype, t.shape) for t in tensors]
        copies = [torch.full(t.shape, 77, dtype=d) for t, d in zip(tensors, dtypes, strict=True)]
        event = FakeEvent()
        self._work.put((places, [copy.data_ptr() for copy in copies], dtypes, event))
        event.copies = copies  # the memory of the device outlives the copy
        return copies, event

    def hand_over(self, tensors, event):
        if self._may_end.is_set():
            event.synchronize()

    def _run(self):
        while True:
            places, targets, dtypes, event = self._work.get()
            time.sleep(self._random.random() * self._most_delay_s)
            self._may_end.wait()
            for (at, size, dtype, shape), target, wide in zip(places, targets, dtypes, strict=True):
                if not size:
                    continue
                raw = bytearray(ctypes.string_at(at, size))
                copy = torch.frombuffer(raw, dtype=dtype).reshape(shape).to(wide).contiguous()
                ctypes.memmove(target, copy.data_ptr(), copy.numel() * copy.element_size())
            event._done.set()
