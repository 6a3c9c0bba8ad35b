"""What every actor is: a process that works in cycles, checks what it gets, and reports.

The supervisor sends orders ("fork 17") as lines to its standard input. A report is a line of JSON
on its standard output with counts since the process began. The last line of an actor that found
something wrong has a "failure".
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import itertools
import json
import os
import select
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lowtide as lt
import numpy as np

MIB = 1 << 20
MARGIN_BYTES = 32 * MIB  # anonymous memory beside the budget: what is compared, allocator, threads
ALARM_S, ALARM_EVERY_S = 0.3, 0.001
SETTLE_S = 5.0


class Wrong(Exception):
    """Something that Lowtide promises was not so."""


class Place(NamedTuple):
    """Where an actor works, and what makes its choices."""

    name: str
    base: Path
    seed: int
    life: int  # how often it was started before

    @property
    def truth(self) -> Path:
        return self.base / "truth"

    @property
    def folder(self) -> Path:
        return self.base / self.name


class Order(NamedTuple):
    kind: str
    value: int


class Actor:
    """Subclasses have `cycle`, which opens, works, calls `orders` often, and closes."""

    budget_bytes = 4 * MIB
    ignored: tuple[str, ...] = ()  # of its folder: what may stay between cycles

    def __init__(self, place: Place) -> None:
        self.place = place
        self.folder = place.folder
        self.counts: collections.Counter[str] = collections.Counter()
        self.faults: collections.Counter[str] = collections.Counter()
        self.peak_bytes = 0
        self.waiting = False  # inside a call that SIGINT must end
        self.interrupted = False
        self._text = b""
        name, _, at = os.environ.get("LOWTIDE_SOAK_LIE", "").partition(":")
        self.lie_at = int(at) if name == place.name else None
        signal.signal(signal.SIGINT, self._on_interrupt)
        signal.signal(signal.SIGUSR1, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_signal)
        faulthandler.register(signal.SIGUSR2)
        self.prepare()

    def prepare(self) -> None:
        """Makes what is there between cycles."""

    def cycle(self, rng: np.random.Generator) -> None:
        raise NotImplementedError

    # Signals and orders.

    def _on_signal(self, number: int, _: Any) -> None:
        self.counts["signals"] += 1

    def _on_interrupt(self, *_: Any) -> None:
        self.counts["signals"] += 1
        if self.waiting:
            self.waiting = False
            self.interrupted = True
            self.faults["int"] += 1
            raise KeyboardInterrupt

    def orders(self) -> Iterator[Order]:
        """What the supervisor wants done now by this kind of actor. The rest waits for a call."""
        self._text += _read_now(0)
        while b"\n" in self._text:
            line, _, self._text = self._text.partition(b"\n")
            if (order := self._taken(line.decode())) is not None:
                yield order

    def _taken(self, line: str) -> Order | None:
        kind, _, value = line.partition(" ")
        if kind == "end":
            self.leave()
        if kind == "alarm":
            self.faults[kind] += 1
            signal.setitimer(signal.ITIMER_REAL, ALARM_EVERY_S, ALARM_EVERY_S)
            self._alarm_until = time.monotonic() + ALARM_S
            return None
        return Order(kind, int(value))

    _alarm_until = 0.0

    def calm(self) -> None:
        """Ends a storm of alarms that is over. Call it now and then."""
        if self._alarm_until and time.monotonic() > self._alarm_until:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._alarm_until = 0.0

    def leave(self) -> None:
        """Ends the interpreter in mid-work; the supervisor expects it."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.report(leaving=True)
        sys.exit(0)

    # Checks.

    def same(self, found: Any, expected: Any, what: str) -> None:
        """Compares bit by bit, and counts."""
        found, expected = np.asarray(found), np.ascontiguousarray(expected)
        if found.dtype != expected.dtype or found.shape != expected.shape:
            raise Wrong(
                f"{what}: expected {expected.dtype} {expected.shape}, "
                f"found {found.dtype} {found.shape}"
            )
        found = np.ascontiguousarray(found)
        self.counts["checks"] += 1
        if self.lie_at == self.counts["checks"] and found.size:
            found = found.copy()
            found.reshape(-1).view(np.uint8)[found.nbytes // 2] ^= 1
        self.counts["bytes"] += found.nbytes
        if found.tobytes() != expected.tobytes():
            self._name_difference(found, expected, what)

    @staticmethod
    def _name_difference(found: np.ndarray, expected: np.ndarray, what: str) -> None:
        ours, theirs = (a.reshape(-1).view(np.uint8) for a in (found, expected))
        places = np.flatnonzero(ours != theirs)
        at = int(places[0])
        raise Wrong(
            f"{what}: {len(places)} of {len(ours)} bytes are wrong; the first is byte {at} of "
            f"{found.dtype} {found.shape}: expected {theirs[at]}, found {ours[at]}"
        )

    def expect(self, condition: bool, text: str) -> None:
        if not condition:
            raise Wrong(text)

    def watch_memory(self) -> None:
        now = anonymous_bytes()
        self.peak_bytes = max(self.peak_bytes, now)
        most = self._base_bytes + self.budget_bytes + MARGIN_BYTES
        self.expect(
            now <= most,
            f"{now / MIB:.1f} MiB of anonymous memory; at most {most / MIB:.1f} MiB are allowed: "
            f"{self._base_bytes / MIB:.1f} before the first cycle, a budget of "
            f"{self.budget_bytes / MIB:.0f} and a margin of {MARGIN_BYTES / MIB:.0f}",
        )

    def _check_left(self, before: collections.Counter[str]) -> None:
        gc.collect()
        due = time.monotonic() + SETTLE_S
        while (left := self._held() - before) and time.monotonic() < due:
            time.sleep(0.02)
        self.expect(not left, f"left after a cycle: {', '.join(sorted(left.elements()))}")

    def _held(self) -> collections.Counter[str]:
        """What a cycle must give back."""
        held = collections.Counter({"a thread": len(os.listdir("/proc/self/task"))})
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # that of the listing itself
                held[f"a descriptor of {os.readlink(f'/proc/self/fd/{name}')}"] += 1
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            if not name.startswith(self.ignored):
                held[f"the file {name}"] += 1
        return held

    # The loop.

    def run(self) -> None:
        self._base_bytes = self.peak_bytes = anonymous_bytes()
        before = self._held()
        words = [self.place.seed, zlib.crc32(self.place.name.encode()), self.place.life]
        self.report()
        for number in itertools.count():
            self.cycle(np.random.default_rng([*words, number]))
            self.calm()
            self._check_left(before)
            self.counts["cycles"] += 1
            self.watch_memory()
            self.report()

    def report(self, **more: Any) -> None:
        line = {"counts": self.counts, "faults": self.faults, "peak_bytes": self.peak_bytes, **more}
        os.write(1, json.dumps(line).encode() + b"\n")


def anonymous_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


def _read_now(descriptor: int) -> bytes:
    """What is there to read, without waiting. Ends the actor if the supervisor is gone."""
    if not select.select([descriptor], [], [], 0)[0]:
        return b""
    text = os.read(descriptor, 4096)
    if not text:
        os._exit(3)
    return text


def act(kind: type[Actor], place: Place) -> None:
    """Runs an actor until it is told to end. A failure is its last report."""
    actor = None
    try:
        actor = kind(place)
        actor.run()
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        found = isinstance(error, Wrong)
        text = str(error) if found else f"unexpected {type(error).__name__}: {error}"
        line = {"failure": f"{place.name}: {text}", "trace": trace, "version": lt.__version__}
        os.write(1, json.dumps(line).encode() + b"\n")
        os._exit(1)
