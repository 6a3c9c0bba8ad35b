"""./dev soak --minutes N: everything at once, under faults, for as long as you like.

Every actor is a process that reads or writes through Lowtide and compares every byte with NumPy.
The seed decides which faults come when. Exit 1 if anything was wrong; the first failure is named.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "scenarios"))

from cgroup import MemoryGroup, Unavailable
from schedule import FAULTS, schedule
from summary import Record
from supervisor import Supervisor
from truth import write_truth

GROUP_BYTES = 64 << 20  # of the memory group, per actor: less than all of them and their files


def play(words: list[str]) -> None:
    """The process of one actor."""
    from actor import Place, act
    from cast import kind_of

    name, base, seed, life = words
    act(kind_of(name), Place(name, Path(base), int(seed), int(life)))


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: 10)")
    parser.add_argument("--seed", type=int, help="of data, choices and faults (default: a new one)")
    parser.add_argument("--only", help=f"some of {','.join(FAULTS)}")
    parser.add_argument("--log", type=Path, help="a file for every fault and failure")
    parser.add_argument("--dir", help="where to make the data: a folder on a disk")
    parser.add_argument("--schedule", action="store_true", help="print the faults, and run nothing")
    options = parser.parse_args(words)
    options.actors = list(FAULTS) if options.only is None else options.only.split(",")
    if unknown := [name for name in options.actors if name not in FAULTS]:
        parser.error(f"--only: {unknown[0]!r} is not one of {', '.join(FAULTS)}")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1_000_000)
    return options


@contextlib.contextmanager
def memory_group(record: Record, actors: int) -> Iterator[Callable[[list[str]], list[str]]]:
    """Yields how to enter the group; without one, how not to, and the reason is said."""
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(MemoryGroup(GROUP_BYTES * actors))
        except Unavailable as reason:
            record.say(f"without a memory limit: {reason}")
            yield lambda command: command
            return
        record.say(f"all actors in a memory group of {GROUP_BYTES * actors >> 20} MiB")
        yield group.command
        if kills := group.oom_kills():
            record.failure(None, f"the memory group ran out of memory {kills} times")


def soak(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the actors and removes the data
    seconds = options.minutes * 60
    faults = schedule(options.seed, seconds, options.actors)
    repeat = f"./dev soak --minutes {options.minutes:g} --seed {options.seed}"
    record = Record(options.actors, options.log, repeat)
    record.say(f"{repeat}: {len(options.actors)} actors, {len(faults)} faults")
    with tempfile.TemporaryDirectory(prefix="lowtide-soak-", dir=options.dir) as folder:
        base = Path(folder)
        write_truth(base / "truth", options.seed)
        with memory_group(record, len(options.actors)) as wrap:
            supervisor = Supervisor(base, options.seed, options.actors, faults, record, wrap)
            try:
                supervisor.run(seconds)
            finally:
                supervisor.close()
    record.table()
    return record.verdict()


def main(words: list[str]) -> int:
    if words[:1] == ["actor"]:
        play(words[1:])
        return 0
    if words[:1] == ["serve"]:
        from server import serve

        serve(Path(words[1]))
        return 0
    options = parse(words)
    if options.schedule:
        for fault in schedule(options.seed, options.minutes * 60, options.actors):
            print(json.dumps(dataclasses.asdict(fault)))
        return 0
    return soak(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
