"""A cgroup with a memory limit around one process: version 1 or 2, whichever the machine has.

If possible, the group is created below the caller's group, so that the caller's limits still apply.
It is removed afterwards.
"""

from __future__ import annotations

import os
import time
from pathlib import Path


class Unavailable(Exception):
    """No cgroup with a memory limit can be created here; the message says why."""


def _mounted(kind: str, option: str | None) -> Path | None:
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, where, found, options, *_ = line.split()
        if found == kind and (option is None or option in options.split(",")):
            return Path(where)
    return None


def _own_path(controller: str) -> str:
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return path.lstrip("/")
    return ""


def _version_1(root: Path) -> Path:
    own = root / _own_path("memory")
    return own if own.is_dir() else root  # inside a container, the path is that of the host


def _version_2(root: Path) -> Path:
    """Returns the nearest ancestor that gives the memory controller to its children."""
    here = root / _own_path("")
    if not here.is_dir():
        here = root
    for group in [here, *here.parents]:
        control = group / "cgroup.subtree_control"
        if control.is_file() and "memory" in control.read_text(encoding="utf-8").split():
            return group
        if group == root:
            break
    raise Unavailable("no cgroup above this process gives the memory controller to its children")


def _enter(group: str, argv: list[str]) -> list[str]:
    enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    return ["/bin/sh", "-c", enter, group, *argv]


def _remove(group: Path | None) -> None:
    if group is None:
        return
    for _attempt in range(50):  # a process leaves the group shortly after it has ended
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


class MemoryGroup:
    """Context manager: a fresh cgroup limited to limit_bytes. Raises Unavailable."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._path: Path | None = None
        self.version = 0

    def __enter__(self) -> MemoryGroup:
        if os.geteuid() != 0:
            raise Unavailable("creating a cgroup needs root")
        root = _mounted("cgroup", "memory")
        self.version = 1 if root else 2
        root = root or _mounted("cgroup2", None)
        if root is None:
            raise Unavailable("no cgroup file system is mounted")
        try:
            parent = _version_1(root) if self.version == 1 else _version_2(root)
            path = parent / f"lowtide-{os.getpid()}-{time.monotonic_ns()}"
            path.mkdir()
            self._path = path
            limit = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
            (path / limit).write_text(str(self._limit_bytes), encoding="ascii")
        except OSError as error:
            self.__exit__()
            raise Unavailable(f"the cgroup cannot be created: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        _remove(self._path)

    def command(self, argv: list[str]) -> list[str]:
        """Returns the command that enters the group and then becomes argv."""
        return _enter(self.folder, argv)

    @property
    def folder(self) -> str:
        if self._path is None:
            raise Unavailable("the cgroup has not been created")
        return str(self._path)

    def oom_kills(self) -> int | None:
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        for line in self._read(name).splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return None

    def peak_bytes(self) -> int | None:
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        text = self._read(name).strip()
        return int(text) if text else None

    def usage(self) -> dict[str, int]:
        """Returns the bytes of anonymous memory and of page cache that belong to the group."""
        names = {"anon": "anon", "rss": "anon", "file": "cache", "cache": "cache"}
        lines = [line.split() for line in self._read("memory.stat").splitlines()]
        return {names[name]: int(value) for name, value in lines if name in names}

    def processes(self) -> list[int]:
        return [int(pid) for pid in self._read("cgroup.procs").split()]

    def _read(self, name: str) -> str:
        try:
            return Path(self.folder, name).read_text(encoding="ascii")
        except OSError:
            return ""


def why_unavailable() -> str | None:
    """Returns why no memory cgroup can be created here, or None if one can."""
    try:
        with MemoryGroup(256 << 20):
            return None
    except Unavailable as error:
        return str(error)


class SlowDisk:
    """Context manager: a cgroup that limits reads from one device, in bytes per second."""

    def __init__(self, path: str, bytes_per_s: int) -> None:
        device = os.stat(path).st_dev
        self._rule = f"{os.major(device)}:{os.minor(device)} {bytes_per_s}"
        self._path: Path | None = None

    def __enter__(self) -> SlowDisk:
        if os.geteuid() != 0:
            raise Unavailable("creating a cgroup needs root")
        root = _mounted("cgroup", "blkio")
        if root is None:
            raise Unavailable("no blkio controller is mounted")
        path = root / f"lowtide-{os.getpid()}-{time.monotonic_ns()}"
        try:
            path.mkdir()
            self._path = path
            rule = path / "blkio.throttle.read_bps_device"
            rule.write_text(self._rule, encoding="ascii")
        except OSError as error:
            self.__exit__()
            raise Unavailable(f"the disk cannot be slowed down: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        _remove(self._path)

    def command(self, argv: list[str]) -> list[str]:
        """Returns the command that enters the group and then becomes argv."""
        return _enter(str(self._path), argv)
