"""lowtide guard around a program that maps a file and compares every page with a read."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import truth
from actor import Actor

HUNG_S = 300.0  # a busy disk can stand still for minutes
PROGRAM = Path(__file__).with_name("mapped_program.py")


class GuardActor(Actor):
    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        truth.copy(self.place.truth / "x.npy", self.folder / "x.npy")
        command = shutil.which("lowtide", path=str(Path(sys.executable).parent))
        if command is None:
            raise FileNotFoundError("the command lowtide is not installed")
        self.command = [command, "guard", "--limit", "4MiB", "--", sys.executable, str(PROGRAM)]

    def cycle(self, rng: np.random.Generator) -> None:
        words = [str(self.folder / "x.npy"), str(rng.integers(1 << 31))]
        program = subprocess.Popen(
            [*self.command, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        asked = self.wait(program)
        self.expect(not running(words), "the guarded program outlived guard")
        told, complaint = program.communicate()
        if asked and program.returncode != 0:
            # Negative: before there was a program, or after its end.
            self.expect(
                program.returncode in (128 + signal.SIGTERM, -signal.SIGTERM),
                f"guard ended with {program.returncode} after SIGTERM: {complaint}",
            )
            return
        self.expect(program.returncode == 0, f"the guarded program failed: {complaint}")
        checked, wrong = map(int, told.split())
        self.expect(wrong == 0, f"{wrong} of {checked} bytes of a guarded map are wrong")
        self.counts["bytes"] += checked
        self.counts["batches"] += 1

    def wait(self, program: subprocess.Popen[str]) -> bool:
        """Waits for its end; True if it was asked to end."""
        asked, due = False, time.monotonic() + HUNG_S
        while program.poll() is None:
            for order in self.orders():
                if order.kind == "term":
                    self.faults["term"] += 1
                    program.terminate()
                    asked = True
            if time.monotonic() > due:
                program.kill()
            time.sleep(0.02)
        return asked

    def leave(self) -> None:
        self.report(leaving=True)
        sys.exit(0)


def running(words: list[str]) -> bool:
    """Whether a process has these words at the end of its command line."""
    ending = "".join(f"{word}\0" for word in words).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().endswith(ending):
                return True
    return False
