"""Memory and I/O of a process from /proc, and a thread that samples them from outside.

Every number is in bytes. A figure that /proc does not report is None: the process belongs to
another user or has ended, or the kernel lacks the field.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from residency import cached_bytes

if TYPE_CHECKING:
    from cgroup import MemoryGroup

_STATUS_FIELDS = {
    "VmSize": "virtual",
    "VmPeak": "virtual_peak",
    "VmRSS": "resident",
    "VmHWM": "resident_peak",
    "RssAnon": "anon",
    "RssFile": "file",
    "RssShmem": "shmem",
    "VmPTE": "page_tables",
}


@dataclass(frozen=True)
class Reading:
    """One sample: memory of the process, and how much of the file is cached."""

    at_s: float
    anon: int | None = None
    file: int | None = None
    page_tables: int | None = None
    virtual: int | None = None
    cached: int | None = None
    group_anon: int | None = None  # of the whole group, if the process runs in one
    group_cache: int | None = None
    group_file: int | None = None  # RssFile, summed over the processes of the group


def read_status(pid: int | str = "self") -> dict[str, int]:
    """Returns the memory fields of /proc/PID/status, without those that it lacks."""
    found: dict[str, int] = {}
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                name, _, value = line.partition(":")
                if name in _STATUS_FIELDS:
                    found[_STATUS_FIELDS[name]] = int(value.split()[0]) * 1024
    except (OSError, ValueError):
        return {}
    return found


def read_io(pid: int | str = "self") -> dict[str, int]:
    """Returns /proc/PID/io: rchar and syscr count calls, read_bytes counts device reads."""
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as lines:
            return {name: int(value) for name, value in (line.split(":") for line in lines)}
    except (OSError, ValueError):
        return {}


def reset_resident_peak() -> bool:
    """Resets VmHWM of this process to its current resident memory."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")
    except OSError:
        return False
    return True


def peak(readings: list[Reading], field: str) -> int | None:
    """Returns the largest known value of a field, or None if no sample has it."""
    known = [value for value in (getattr(r, field) for r in readings) if value is not None]
    return max(known) if known else None


class Sampler:
    """Samples a process (and the cache of one file) until it is stopped or the process ends."""

    def __init__(
        self, pid: int, path: str | None, interval_s: float, group: MemoryGroup | None = None
    ) -> None:
        self.readings: list[Reading] = []
        self._pid = pid
        self._path = path
        self._interval_s = interval_s
        self._group = group
        self._started_s = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._started_s = time.monotonic()
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s) and self._sample():
            pass

    def _sample(self) -> bool:
        status = read_status(self._pid)
        if "anon" not in status:
            return False  # it has ended, or it is a zombie without memory
        self.readings.append(
            Reading(
                at_s=time.monotonic() - self._started_s,
                anon=status.get("anon"),
                file=status.get("file"),
                page_tables=status.get("page_tables"),
                virtual=status.get("virtual"),
                cached=cached_bytes(self._path) if self._path else None,
                **self._of_group(),
            )
        )
        return True

    def _of_group(self) -> dict[str, int | None]:
        if self._group is None:
            return {}
        usage = self._group.usage()
        files = [read_status(pid).get("file", 0) for pid in self._group.processes()]
        return {
            "group_anon": usage.get("anon"),
            "group_cache": usage.get("cache"),
            "group_file": sum(files),
        }
