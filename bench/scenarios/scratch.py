"""Puts the data of a benchmark on a disk and removes it afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from machine import file_system


def scratch_folder() -> str:
    """Returns a folder on a disk: a file in memory can be neither evicted nor read directly."""
    for folder in (tempfile.gettempdir(), "/var/tmp", os.getcwd()):
        if os.path.isdir(folder) and file_system(folder) not in ("tmpfs", "ramfs"):
            return folder
    return tempfile.gettempdir()


@contextmanager
def kept_or_removed(
    folder: str | None, name: str, size_bytes: int, write: Callable[[str], None], keep: bool
) -> Iterator[str]:
    """Provides the path of a data file, which `write` creates if it does not exist.

    Removes what this run wrote, unless `keep` is set, and does so after SIGTERM too.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    made = ""
    if folder is None and keep:
        folder = os.path.join(scratch_folder(), "lowtide-bench")
    if folder is None:
        folder = made = tempfile.mkdtemp(prefix="lowtide-bench-", dir=scratch_folder())
    os.makedirs(folder, exist_ok=True)
    path = Path(folder) / name
    ours = not path.exists() or path.stat().st_size != size_bytes
    try:
        if ours:
            free = shutil.disk_usage(folder).free
            if free < size_bytes * 1.05:
                raise SystemExit(
                    f"bench: {folder} needs {size_bytes >> 20} MiB, but only {free >> 20} MiB are "
                    "free: name another folder with --data"
                )
            unfinished = path.with_suffix(".part")
            write(str(unfinished))
            unfinished.rename(path)
        yield str(path)
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)
        elif ours and not keep:
            path.unlink(missing_ok=True)
            path.with_suffix(".part").unlink(missing_ok=True)
