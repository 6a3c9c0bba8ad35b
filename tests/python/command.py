"""The installed command `lowtide`, run as a user runs it."""

from __future__ import annotations

import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl

import pytest


def command_path() -> str:
    """Returns its path: next to this Python, where pip puts it, or else on PATH."""
    beside = pathlib.Path(sys.executable).with_name("lowtide")
    found = str(beside) if beside.exists() else shutil.which("lowtide")
    if found is None:
        pytest.skip("the command lowtide is not installed: built with LOWTIDE_COMMAND=OFF")
    return found


def copy_command(prefix: pathlib.Path, *packages: str) -> pathlib.Path:
    """Copies it to prefix/bin, and the module that contains it into these folders of packages."""
    import lowtide._core

    module = pathlib.Path(lowtide._core.__file__)
    for folder in packages:
        (prefix / folder / "lowtide").mkdir(parents=True)
        shutil.copy(module, prefix / folder / "lowtide")
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    return pathlib.Path(shutil.copy(command_path(), prefix / "bin"))


def environment(**variables: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL", "LC_CTYPE")}
    return {**kept, "LANG": "C.UTF-8", **variables}


def lowtide(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs it without a terminal. Output is UTF-8; invalid bytes stay visible."""
    return subprocess.run(
        [command_path(), *(w if isinstance(w, bytes) else str(w) for w in words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=120,
        env=environment(**variables),
    )


def hear_signals() -> None:
    """A test in the background of a shell inherits an ignored SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_terminal(
    *words: object, columns: int = 80, interrupt_at: str = "", **variables: str
) -> tuple[int, str]:
    """Runs it on a terminal of its own; returns its exit code and what the terminal got.

    It gets a SIGINT when it has shown `interrupt_at`.
    """
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal can be had: {error}")
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [command_path(), *map(str, words)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(**{"TERM": "xterm", **variables}),
        preexec_fn=hear_signals,
    )
    os.close(slave)
    seen = b""
    awaited = interrupt_at.encode()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            piece = os.read(master, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        seen += piece
        if awaited and awaited in seen:
            process.send_signal(signal.SIGINT)
            awaited = b""
    os.close(master)
    return process.wait(60), seen.decode("utf-8").replace("\r\n", "\n")
