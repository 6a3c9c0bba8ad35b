"""An actor that reads through a loader, while its own copies of the files are cut and replaced."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import truth
from actor import Actor, Order, Wrong

CHILD_S = 300.0  # after which a child counts as hung; a busy disk can stand still for minutes
ENGINES = ("auto", "auto", "pread", "uring")


class CycleOver(Exception):
    """The files were changed: this cycle ends here."""


class Reader(Actor):
    """Subclasses say which files they read, open a loader and check a batch."""

    names: tuple[str, ...] = ()
    read: Callable[[], Any] | None = None  # a read without a loader, while one is open

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():  # what a killed life left in mid-change
            if path.suffix in (".copy", ".other"):
                path.unlink()
        for name in self.names:
            truth.copy(self.place.truth / name, self.folder / name)
        self.engines = [word for word in ENGINES if word != "uring" or has_uring(self.folder)]
        self.load()

    def load(self) -> None:
        """Loads what batches are compared with."""

    def open(self, stack: contextlib.ExitStack, rng: np.random.Generator) -> Any:
        """Returns an open loader; the stack closes everything."""
        raise NotImplementedError

    def check(self, batch: Any) -> None:
        raise NotImplementedError

    def options(self, rng: np.random.Generator) -> dict[str, Any]:
        """How a file is opened in this cycle."""
        return {"memory": self.budget_bytes, "engine": str(rng.choice(self.engines))}

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def cycle(self, rng: np.random.Generator) -> None:
        with contextlib.ExitStack() as stack, contextlib.suppress(CycleOver):
            self.stack = stack
            loader = self.open(stack, rng)
            for step in range(int(rng.integers(100, 600))):
                self.take(loader)
                if step % 8 == 0:
                    self.watch_memory()
                    self.calm()
                    for order in self.orders():
                        self.obey(order, loader)
            if rng.integers(4) == 0:
                self.resume(loader, stack)

    def take(self, loader: Any) -> None:
        """One batch, checked. A wait that SIGINT ends is begun again."""
        while True:
            try:
                self.waiting = True
                batch = loader.next()
                self.waiting = False
                break
            except KeyboardInterrupt:
                continue
            finally:
                self.waiting = False
        self.check(batch)
        self.counts["batches"] += 1

    def resume(self, loader: Any, stack: contextlib.ExitStack) -> None:
        """Another loader goes on where this one is: both deliver the same."""
        state = loader.state_dict()
        again = stack.enter_context(pickle.loads(pickle.dumps(loader)))
        again.load_state_dict(state)
        for _ in range(3):
            ours, theirs = loader.next(), again.next()
            self.same(theirs.index, ours.index, "the rows of a resumed loader")
            self.check(theirs)

    def obey(self, order: Order, loader: Any) -> None:
        self.faults[order.kind] += 1
        if order.kind == "fork":
            self.fork(loader, failing=False)
        elif order.kind == "exit":
            self.exit(order.value, loader)
        elif order.kind == "truncate":
            self.truncate(order.value, loader)
        elif order.kind == "replace":
            self.replace(order.value, loader)

    def fork(self, loader: Any, failing: bool) -> None:
        """A child goes on with the loader beside its parent. `failing`: it may get an error."""
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for _ in range(5):
                    self.take(loader)
                code = 0
            except (lt.FormatError, OSError) as error:
                code = 0 if failing and self.named(error) else 1
                if code:
                    os.write(2, f"in a child: {error!r}\n".encode())
            except BaseException as error:
                os.write(2, f"in a child: {error!r}\n".encode())
            finally:
                os._exit(code)
        if not failing:
            for _ in range(5):
                self.take(loader)
        self.expect(wait_for(child) == 0, "a forked child that went on with a loader failed")

    def exit(self, value: int, loader: Any) -> None:
        """Ends the interpreter while batches are read ahead, often with everything still open."""
        if value % 4:
            self.kept = self.stack.pop_all()
        if value % 4 > 1:  # threads that are in the middle of a read then
            for read in (loader.next, self.read or loader.next):
                threading.Thread(target=_read_on, args=(read,), daemon=True).start()
        time.sleep(value % 50 / 1000)
        self.leave()

    def named(self, error: BaseException) -> bool:
        """Whether the error names one of our files."""
        return any(name in str(error) for name in self.names)

    def truncate(self, value: int, loader: Any) -> None:
        """Cuts a file while it is read: right bytes until an error that names it, and it comes."""
        name = self.names[value % len(self.names)]
        path = self.folder / name
        size = path.stat().st_size
        keep = size * (value // 8 % 50) // 100
        late = threading.Timer(value // 512 % 20 / 1000, os.truncate, (path, keep))
        late.start()
        try:
            for _ in range(3 * len(loader)):
                self.take(loader)
        except (lt.FormatError, OSError) as error:
            if not self.named(error):
                raise
        else:
            self.expect(
                size <= self.budget_bytes // 4,  # such a file may be held
                f"{name} was cut to {keep} bytes, and three epochs did not notice",
            )
        finally:
            late.join()
            truth.copy(self.place.truth / name, path)
        raise CycleOver

    def replace(self, value: int, loader: Any) -> None:
        """Another file comes under the name of ours: the old bytes or an error, never the new."""
        name = self.names[value % len(self.names)]
        path = self.folder / name
        truth.altered(self.place.truth / name, path)
        try:
            if value // 8 % 2:
                self.fork(loader, failing=True)
            for _ in range(len(loader)):
                self.take(loader)
        except (lt.FormatError, OSError) as error:
            if not self.named(error):
                raise
        finally:
            truth.copy(self.place.truth / name, path)
        raise CycleOver


def _read_on(read: Callable[[], Any]) -> None:
    while True:
        read()


def wait_for(child: int) -> int:
    """The exit code of a child, which is killed if it hangs."""
    due = time.monotonic() + CHILD_S
    while time.monotonic() < due:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGUSR2)  # its stack goes to the standard error
    time.sleep(0.5)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise Wrong(f"a forked child hung for {CHILD_S:.0f} s")


def has_uring(folder: Path) -> bool:
    probe = folder / "probe.copy"
    np.array([1], "u2").tofile(probe)
    try:
        lt.tokens(probe, engine="uring").close()
    except OSError:
        return False
    finally:
        probe.unlink()
    return True
