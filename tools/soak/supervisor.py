"""Starts the actors, brings the faults of the schedule, and collects what went wrong."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from life import HERE, Life
from schedule import Fault
from summary import Record

HUNG_S = 600.0  # without a report: longer than what an actor itself waits for
END_S = 600.0  # for the last cycles
MOST_FAILURES = 5
USR1_SIGNALS, USR1_EVERY_S = 40, 0.002


class Supervisor:
    """Runs one soak. `wrap` puts the command of an actor into the memory group."""

    def __init__(
        self,
        base: Path,
        seed: int,
        actors: list[str],
        faults: list[Fault],
        record: Record,
        wrap: Callable[[list[str]], list[str]],
    ) -> None:
        self.base, self.seed, self.record, self.wrap = base, seed, record, wrap
        self.numbers = itertools.count()
        self.due: list[tuple[float, int, Callable[[], None]]] = []
        (base / "errors").mkdir()
        self.server = self._start_server() if "remote" in actors else None
        self.begun_s = time.monotonic()
        self.lives = {name: self._born(name, 0) for name in actors}
        for fault in faults:
            self.later(fault.at_s, lambda fault=fault: self.bring(fault))

    def _start_server(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(HERE), "serve", str(self.base)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdout is not None
        os.environ["LOWTIDE_SOAK_URL"] = server.stdout.readline().decode().strip()
        return server

    def _born(self, name: str, number: int) -> Life:
        return Life(name, self.base, self.seed, number, self.wrap)

    def now_s(self) -> float:
        return time.monotonic() - self.begun_s

    def later(self, at_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.due, (at_s, next(self.numbers), action))

    def run(self, seconds: float) -> None:
        next_minute = 60.0
        while len(self.record.failures) < MOST_FAILURES and (
            self.now_s() < seconds or self.record.idle(self.lives)
        ):
            self.step(restart=True)
            if self.now_s() >= next_minute:
                self.record.minute(next_minute / 60, self.lives)
                next_minute += 60
        self.due.clear()
        for life in self.lives.values():
            life.send(signal.SIGCONT)
            life.order("end", 0)
        last_s = self.now_s() + END_S
        while self.lives and self.now_s() < last_s:
            self.step(restart=False)
        for life in self.lives.values():
            self.failed(life, self.hung(life, END_S))

    def step(self, restart: bool) -> None:
        """Brings what is due, hears the actors, and looks after those that ended."""
        while self.due and self.due[0][0] <= self.now_s():
            heapq.heappop(self.due)[2]()
        wait_s = min(0.2, max(0.0, self.due[0][0] - self.now_s())) if self.due else 0.05
        select.select([life.process.stdout for life in self.lives.values()], [], [], wait_s)
        for life in list(self.lives.values()):
            if life.process.poll() is not None:
                self.ended(life, restart)
                continue
            life.read()
            if time.monotonic() - life.heard_s > HUNG_S:
                self.failed(life, self.hung(life, HUNG_S))
                self.ended(life, restart)

    def ended(self, life: Life, restart: bool) -> None:
        wrong = life.wrong_end()
        if wrong is not None:
            self.failed(life, wrong)
        self.record.add(life)
        if restart:
            self.lives[life.name] = self._born(life.name, life.number + 1)
        else:
            del self.lives[life.name]

    def hung(self, life: Life, seconds: float) -> str:
        """Ends it, and says where it was."""
        life.send(signal.SIGCONT)
        life.send(signal.SIGUSR2)  # its stack goes to the standard error
        time.sleep(1)
        life.send(signal.SIGKILL)
        life.process.wait()
        said = life.errors.read_text(errors="replace")
        return f"{life.name}: no report for {seconds:.0f} s\n{said}"

    def failed(self, life: Life, text: str) -> None:
        self.record.note(self.now_s(), f"{life.name} failed")
        self.record.failure(life.name, text)

    def bring(self, fault: Fault) -> None:
        """Lets a fault happen; later, if the actor is just being born or about to end."""
        life = self.lives[fault.actor]
        if not life.can_take:
            self.later(self.now_s() + 0.1, lambda: self.bring(fault))
            return
        self.record.note(self.now_s(), f"{fault.actor} {fault.kind} {fault.value}")
        action = getattr(self, f"_{fault.kind}", None)
        if action is not None:
            action(life, fault.value)
        else:
            life.order(fault.kind, fault.value)

    def _evict(self, life: Life, _: int) -> None:
        self.record.count(life.name, "evict")
        for path in (self.base / life.name).rglob("*"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def _usr1(self, life: Life, _: int) -> None:
        self.record.count(life.name, "usr1")
        for number in range(USR1_SIGNALS):
            at_s = self.now_s() + number * USR1_EVERY_S
            self.later(at_s, lambda: life.can_take and life.send(signal.SIGUSR1))

    def _int(self, life: Life, _: int) -> None:
        life.send(signal.SIGINT)  # counted by the actor, if it ended a wait

    def _stop(self, life: Life, value: int) -> None:
        self.record.count(life.name, "stop")
        life.send(signal.SIGSTOP)
        self.later(self.now_s() + value % 700 / 1000, lambda: life.send(signal.SIGCONT))

    def _kill(self, life: Life, _: int) -> None:
        self.record.count(life.name, "kill")
        life.send(signal.SIGKILL)

    def _outage(self, life: Life, value: int) -> None:
        self.record.count(life.name, "outage")
        server = self.server
        assert server is not None
        server.send_signal(signal.SIGSTOP)
        self.later(self.now_s() + value % 3000 / 1000, lambda: server.send_signal(signal.SIGCONT))

    def close(self) -> None:
        for life in self.lives.values():
            life.send(signal.SIGKILL)
            life.process.wait()
        if self.server is not None:
            self.server.kill()
            self.server.wait()
