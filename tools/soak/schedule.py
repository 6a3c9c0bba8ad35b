"""Which fault comes when, and to whom: a pure function of the seed.

Each actor has a stream of its own, so a run with --only has the same faults for those actors.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

FIRST_S = 1.0  # an actor works undisturbed before its first fault
MEAN_S = 2.0  # between two faults of one actor

SIGNALS = ("usr1", "alarm", "int", "stop")
READERS = (*SIGNALS, "evict", "fork", "exit", "kill", "truncate", "replace")
WRITERS = (*SIGNALS, "fork", "exit", "kill", "kill")

# evict: its files leave the page cache.  usr1, alarm: many signals in a short time.  int: SIGINT,
# which ends a wait.  stop: SIGSTOP, and SIGCONT later.  fork: a child goes on with the same object.
# exit: sys.exit in mid-work.  kill: SIGKILL.  truncate, replace: its own copy of a file, while it
# is read.  outage: the server stands still.  term: SIGTERM for the guarded program.
FAULTS: dict[str, tuple[str, ...]] = {
    "tokens": READERS,
    "columns": READERS,
    "ragged": READERS,
    "sparse": READERS,
    "remote": (*READERS, "outage"),
    "create": WRITERS,
    "token_writer": WRITERS,
    "shuffle": (*SIGNALS, "exit", "kill", "kill", "evict"),
    "maps": ("usr1", "alarm", "stop", "evict", "fork", "exit", "kill"),
    "guard": ("usr1", "evict", "term", "stop"),
}


@dataclass(frozen=True, order=True)
class Fault:
    """At `at_s` of the run, `kind` happens to `actor`; `value` decides the details."""

    at_s: float
    actor: str
    kind: str
    value: int


def schedule(seed: int, seconds: float, actors: list[str]) -> list[Fault]:
    """All faults of a run, by time."""
    faults = []
    for actor in actors:
        draw = random.Random(f"{seed}/{actor}")
        at_s = FIRST_S + draw.expovariate(1 / MEAN_S)
        while at_s < seconds:
            kind = draw.choice(FAULTS[actor])
            faults.append(Fault(round(at_s, 3), actor, kind, draw.getrandbits(31)))
            at_s += draw.expovariate(1 / MEAN_S)
    return sorted(faults)
