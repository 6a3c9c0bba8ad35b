"""Measures how much of a file is in the page cache, and fills or empties it.

cachestat(2) answers without touching the file. It needs Linux 6.5 and a file that the caller owns
or may write. Otherwise the answer is None, which means unknown.
"""

from __future__ import annotations

import ctypes
import os
import time

CACHESTAT = 451  # the same number on every architecture that has unified system call numbers
HOT_FRACTION = 0.995
COLD_FRACTION = 0.005

_libc = ctypes.CDLL(None, use_errno=True)
_page_bytes = os.sysconf("SC_PAGE_SIZE")


class _Range(ctypes.Structure):
    _fields_ = [("offset_bytes", ctypes.c_uint64), ("size_bytes", ctypes.c_uint64)]


class _Stat(ctypes.Structure):
    _fields_ = [
        ("cached", ctypes.c_uint64),
        ("dirty", ctypes.c_uint64),
        ("writeback", ctypes.c_uint64),
        ("evicted", ctypes.c_uint64),
        ("recently_evicted", ctypes.c_uint64),
    ]


def cached_bytes(path: str, offset_bytes: int = 0, size_bytes: int = 0) -> int | None:
    """Returns the cached bytes of the file in whole pages; a size of 0 means to the end."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        stat = _Stat()
        window = _Range(offset_bytes, size_bytes)
        failed = _libc.syscall(CACHESTAT, fd, ctypes.byref(window), ctypes.byref(stat), 0)
        return None if failed else int(stat.cached) * _page_bytes
    finally:
        os.close(fd)


def cached_fraction(path: str) -> float | None:
    cached = cached_bytes(path)
    size = os.path.getsize(path)
    if cached is None or size == 0:
        return None
    return min(1.0, cached / size)


def evict(path: str, patience_s: float = 5.0) -> float | None:
    """Writes dirty pages back and empties the cache of the file; returns what remains."""
    until = time.monotonic() + patience_s
    while True:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            left = cached_fraction(path)
            if left is None or left >= COLD_FRACTION:  # fsync of a clean file would wait for a disk
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                left = cached_fraction(path)
        finally:
            os.close(fd)
        if left is None or left < COLD_FRACTION or time.monotonic() > until:
            return left
        time.sleep(0.05)


def read_through(path: str, size_bytes: int | None = None) -> None:
    """Reads the file (or its beginning) in order, which leaves it in large folios."""
    buffer = bytearray(8 << 20)
    left = os.path.getsize(path) if size_bytes is None else size_bytes
    with open(path, "rb", buffering=0) as file:
        while left > 0:
            got = file.readinto(memoryview(buffer)[: min(left, len(buffer))])
            if not got:
                return
            left -= got


def warm(path: str, attempts: int = 3) -> float | None:
    """Makes the whole file resident and returns the resident fraction.

    It first evicts what is already cached. Writes and random reads leave pages in small folios,
    which are up to twice as slow to read and map as those of a sequential read.
    """
    for _ in range(attempts):
        evict(path)
        read_through(path)
        fraction = cached_fraction(path)
        if fraction is None or fraction >= HOT_FRACTION:
            break
    return fraction
