"""The description of the machine in a result file, without its name and without paths on it."""

from __future__ import annotations

import datetime
import json
import mmap
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

from processes import read_status

_TOUCHES = 64


def _first_line(path: str, start: str) -> str | None:
    try:
        for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(start):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return None


def file_system(path: str) -> str | None:
    """Returns the type of the file system that contains the path."""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[2] == wanted:
            return fields[fields.index("-") + 1]
    return None


def read_ahead_kb(path: str) -> int | None:
    device = os.stat(path).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    for place in (
        f"/sys/class/bdi/{name}/read_ahead_kb",
        f"/sys/dev/block/{name}/queue/read_ahead_kb",
        f"/sys/dev/block/{name}/../queue/read_ahead_kb",
    ):
        try:
            return int(Path(place).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
    return None


def mapped_bytes_per_touch(path: str) -> int | None:
    """Returns how much of a cached file one touched byte maps: 2 MiB with the largest folios.

    Without privileges this is the only way to see folios. It touches a map of the file in 64
    places and reads RssFile before and after.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        before = read_status().get("file")
        step = max(1, len(view) // _TOUCHES)
        touched = sum(1 for place in range(0, len(view), step) if view[place] >= 0)
        after = read_status().get("file")
    return None if before is None or after is None else (after - before) // touched


def commit() -> str | None:
    """Returns the commit of this tree, marked if files differ from it."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + ("-changed" if changed else "")


def versions(python: str, names: Iterable[str]) -> dict[str, str]:
    """Returns the versions of those distributions that an interpreter has."""
    code = (
        "import json, sys, importlib.metadata as m\n"
        "plain = lambda name: name.lower().replace('_', '-')\n"
        "found = {plain(d.metadata['Name']): d.version for d in m.distributions()}\n"
        "print(json.dumps({n: found[plain(n)] for n in sys.argv[1:] if plain(n) in found}))\n"
    )
    argv = [python, "-c", code, *names]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {}


def describe(path: str) -> dict[str, object]:
    return {
        "architecture": platform.machine(),
        "cpu": _first_line("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "ram_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "file_system": file_system(path),
        "read_ahead_kb": read_ahead_kb(path),
        "commit": commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
