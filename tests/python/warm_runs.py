"""Runs programs that use torch in copies (forks) of one interpreter that has imported it.

A new interpreter would spend 2 to 5 s of CPU time on that: torch, and torch._dynamo at the first
step of an optimizer.
"""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Started:
    """A program that runs. It writes what it prints, errors too, to the file `said`."""

    def __init__(self, origin: Origin, pid: int, said: pathlib.Path) -> None:
        self._origin = origin
        self.pid = pid
        self.said = said

    def runs(self) -> bool:
        """Whether it has not ended. The interpreter that it is a copy of keeps it until `wait`."""
        stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text()
        return stat.rpartition(") ")[2][0] != "Z"

    def wait(self) -> int:
        """Returns its exit code, or minus the number of the signal that ended it."""
        return self._origin.ask({"wait": self.pid})


class Origin:
    """The interpreter that is copied."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def ask(self, wish: dict[str, Any]) -> int:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(wish) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def start(self, folder: pathlib.Path, said: pathlib.Path, *words: object) -> Started:
        """Starts the program words[0] in `folder`."""
        wish = {"folder": str(folder), "said": str(said), "words": [*map(str, words)]}
        return Started(self, self.ask(wish), said)

    def run(self, folder: pathlib.Path, said: pathlib.Path, *words: object) -> str:
        """Runs the program words[0] in `folder` until it ends, and returns what it printed."""
        code = self.start(folder, said, *words).wait()
        text = said.read_text()
        assert code == 0, text[-3000:]
        return text


@contextmanager
def origin(environment: dict[str, str]) -> Iterator[Origin]:
    """Starts the interpreter that is copied; all copies have its environment."""
    pytest.importorskip("torch")
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        yield Origin(server)


def _become(wish: dict[str, Any]) -> None:
    said = os.open(wish["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for target, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(source, target)
    os.chdir(wish["folder"])
    sys.argv = wish["words"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


def _serve() -> None:
    import torch._dynamo  # noqa: F401

    while line := sys.stdin.readline():
        wish = json.loads(line)
        if "wait" in wish:
            print(os.waitstatus_to_exitcode(os.waitpid(wish["wait"], 0)[1]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            return _become(wish)
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
