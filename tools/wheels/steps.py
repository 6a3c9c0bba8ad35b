"""Where things lie, and one line of output for each thing that is done."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STATE = ROOT / ".dev" / "wheels"  # tools and caches
BUILD = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
LOGS = ROOT / ".dev" / "logs"
VENV = STATE / "venv"


def run(
    log: Path, command: list[str | Path], *, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> None:
    """Runs a command with its output in `log`; a failure shows the end of it and stops."""
    with log.open("a") as out:
        out.write(f"$ {' '.join(map(str, command))}\n")
        out.flush()
        done = subprocess.run(
            command, cwd=cwd, env={**os.environ, **(env or {})}, stdout=out, stderr=out
        )
    if done.returncode:
        tail = "\n  ".join(log.read_text(errors="replace").splitlines()[-15:])
        raise SystemExit(f"failed\n  {tail}\n  log: {log}")


class Step:
    """with Step("wheel cp310") as step: one line, with its seconds when it went well."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.note = ""
        self.log = LOGS / (name.replace(" ", "-").replace("/", "-") + ".log")

    def __enter__(self) -> "Step":
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        print(f"{self.name:<58}", end="", flush=True)
        self.start = time.monotonic()
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is None:
            print(f"{time.monotonic() - self.start:.0f} s  {self.note}".rstrip(), flush=True)

    def run(
        self,
        *command: str | Path,
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
    ) -> None:
        run(self.log, list(command), cwd=cwd, env=env)


def make_venv(python: str | Path, folder: Path, requirements: list[str], step: Step) -> Path:
    """A virtual environment with these packages, without a pip of its own; its python."""
    step.run(python, "-m", "venv", "--clear", "--without-pip", folder)
    step.run(VENV / "bin" / "pip", "--python", folder / "bin" / "python", "install", *requirements)
    return folder / "bin" / "python"


def setup_tools() -> None:
    """The tools of requirements.txt in a virtual environment; the rest of the verb runs in it."""
    wanted = (Path(__file__).parent / "requirements.txt").read_text() + sys.version
    stamp = VENV / "requirements"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    with Step("tools for wheels") as step:
        step.run(sys.executable, "-m", "venv", "--clear", VENV)
        pip = [VENV / "bin" / "python", "-m", "pip", "install", "--upgrade"]
        step.run(*pip, "pip")
        step.run(*pip, "-r", Path(__file__).parent / "requirements.txt")
    stamp.write_text(wanted)
