"""One life of an actor: its process, the orders to it, and what it reported."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
QUIET = ["-W", "ignore::DeprecationWarning"]  # of forks in a process with threads


class Life:
    """Started at once. `wrap` turns a command into one that enters the memory group."""

    def __init__(self, name: str, base: Path, seed: int, number: int, wrap: Any) -> None:
        self.name, self.number = name, number
        words = [str(HERE), "actor", name, str(base), str(seed), str(number)]
        self.errors = base / "errors" / f"{name}-{number}"
        self._stderr = self.errors.open("wb")
        self.process = subprocess.Popen(
            wrap([sys.executable, *QUIET, *words]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._stderr.close()
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.heard_s = time.monotonic()
        self.ready = False  # it has its handlers of signals
        self.leaving = self.killed = False
        self.failure: dict[str, Any] | None = None
        self.report: dict[str, Any] = {"counts": {}, "faults": {}, "peak_bytes": 0}
        self._text = b""

    @property
    def can_take(self) -> bool:
        """Whether it can be disturbed now."""
        return self.ready and not self.leaving and not self.killed

    def read(self) -> None:
        """Takes the reports that have arrived."""
        assert self.process.stdout is not None
        while chunk := self.process.stdout.read1(1 << 16):
            self._text += chunk
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            found = json.loads(line)
            self.heard_s, self.ready = time.monotonic(), True
            if "failure" in found:
                self.failure = found
            else:
                self.report = found

    def order(self, kind: str, value: int) -> None:
        assert self.process.stdin is not None
        self.leaving = self.leaving or kind in ("exit", "end")
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{kind} {value}\n".encode())
            self.process.stdin.flush()

    def send(self, number: int) -> None:
        self.killed = self.killed or number == signal.SIGKILL
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def wrong_end(self) -> str | None:
        """After its end: what was wrong with it, if anything."""
        self.read()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        said = self.errors.read_text(errors="replace").strip()
        if self.failure is not None:
            return f"{self.failure['failure']}\n{self.failure['trace']}{said}"
        if self.killed and code == -signal.SIGKILL:
            return None
        if code != 0:
            return f"{self.name}: ended with {code}\n{said}"
        if not self.leaving:
            return f"{self.name}: ended without an order\n{said}"
        if said:
            return f"{self.name}: wrote to its standard error while it ended\n{said}"
        return None
