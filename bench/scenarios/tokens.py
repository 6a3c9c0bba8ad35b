#!/usr/bin/env python3
"""The benchmark `tokens`: batches of 12 x 1024 tokens from 4 GB of uint16, by every method.

Every measurement is a separate process. The methods alternate, round by round, so that compared
figures were measured within the same minutes. The residency of the file is checked before and after
each measurement. If pages of a hot file are missing, it is read again in order; a cold file is
evicted. Before the first round, every method must deliver the batches that a map of the file has.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import Any

import fio
import floor
import numpy as np
import report
import rounds
import scratch
import token_report
import token_worker
from cgroup import MemoryGroup
from processes import peak
from report import MIB
from rounds import Method, say

BATCH, BLOCK = 12, 1024
CGROUP_BYTES = 800 * MIB
BUSY_US = 200
CHECK_STEPS = 32
RESUME_STEPS = 256
# Sparse files of 1e9 windows and of 1e12 tokens: only their size is real.
SPARSE_TOKENS = {"resume-1e9": 10**9 * BLOCK + 1, "resume-1e12": 10**12}
TOLD_ALIKE = {"memory", "engine", "cache", "forbid_io_uring"}  # differing methods are checked apart
_WRITTEN_TOKENS = 1 << 22


def _plain(work: str, seconds: float, keys: str, **options: Any) -> list[Method]:
    """Returns the methods without lowtide whose keys are named."""
    known = {
        "getbatch": ("get-batch", "nanoGPT's get_batch (new np.memmap each batch)"),
        "memmap": ("memmap", "np.memmap, kept"),
        "preadv": ("preadv", "plain preadv loop"),
        "willneed": ("willneed", "plain WILLNEED + preadv"),
        "dataloader": ("dataloader", "DataLoader, 2 workers, memmap dataset"),
    }
    told = {"seconds": seconds, **options}
    temperature = "cold" if work == "cold" else "hot"
    return [
        Method(f"{work}-{key}", known[key][1], temperature, known[key][0], told)
        for key in keys.split()
    ]


def _ours(key: str, label: str, reader: str, **options: Any) -> Method:
    work = key.partition("-")[0]
    kind = {"cold": "cold", "resume": "first"}.get(work, "hot")
    return Method(key, f"lowtide {label}", kind, f"lowtide-{reader}", options)


def methods(seconds: float) -> list[Method]:
    """Returns all methods. Loaders run two epochs, for at most ten times `seconds`."""
    slow_s = min(4.0, seconds)
    limit: dict[str, Any] = {"seconds": seconds}
    two: dict[str, Any] = {"epochs": 2, "seconds": seconds * 10}
    busy: dict[str, Any] = {"busy_us": BUSY_US, **limit}
    small: dict[str, Any] = {"memory": "64MiB"}
    drop: dict[str, Any] = {"cache": "drop"}
    no_ring: dict[str, Any] = {"forbid_io_uring": True, "engine": "pread"}
    resume: dict[str, Any] = {"max_steps": RESUME_STEPS}
    return [
        *_plain("hot", seconds, "getbatch memmap preadv willneed dataloader"),
        _ours("hot-windows", "windows(t, ix, T)", "windows", **limit),
        _ours("hot-windows-64", "windows(t, ix, T), 64MiB", "windows", **small, **limit),
        _ours("hot-loader", "Loader, shuffle", "loader", **two),
        _ours("hot-loader-64", "Loader, shuffle, 64MiB", "loader", **small, **two),
        _ours("hot-pool", "Loader, io_uring forbidden", "loader", **no_ring, **limit),
        Method("hot-floor", "the floor: pread and widen, 1 thread", "hot", "floor"),
        *_plain("busy", seconds, "getbatch preadv dataloader", busy_us=BUSY_US),
        _ours("busy-windows", "windows(t, ix, T)", "windows", **busy),
        _ours("busy-loader", "Loader, shuffle", "loader", **busy),
        _ours("busy-loader-64", "Loader, shuffle, 64MiB", "loader", **small, **busy),
        _ours("resume-1e9", "Loader, half through 1e9 windows", "resume", **resume),
        _ours("resume-1e12", "Loader, half through 1e12 tokens", "resume", **resume),
        *_plain("cold", slow_s, "getbatch memmap preadv dataloader"),
        *_plain("cold", seconds, "willneed"),
        Method("cold-fio", "fio randread 2k direct QD 128", "cold", "fio-windows"),
        _ours("cold-windows", "windows(t, ix, T), drop", "windows", **drop, **limit),
        _ours("cold-loader", "Loader, shuffle, drop", "loader", **drop, **two),
        _ours("cold-loader-64", "Loader, shuffle, drop, 64MiB", "loader", **small, **drop, **two),
        _ours("cold-pool", "Loader, drop, no io_uring", "loader", **no_ring, **drop, **limit),
    ]


def write_tokens(path: str, count: int) -> None:
    """Writes noise below 2**15. No two blocks are equal, so that a wrong offset shows."""
    noise = np.random.default_rng(0).integers(0, 1 << 15, _WRITTEN_TOKENS, dtype=np.uint16)
    with open(path, "wb") as file:
        for number, first in enumerate(range(0, count, _WRITTEN_TOKENS)):
            part = noise[: min(_WRITTEN_TOKENS, count - first)]
            file.write((part ^ np.uint16(number)).data.cast("B"))
        file.flush()
        os.fsync(file.fileno())


class Bench(rounds.Bench):
    """Reads the tokens by every method; `sparse` maps a resume key to the path of its file."""

    def __init__(self, path: str, tokens: int, seconds: float, sparse: dict[str, str]) -> None:
        super().__init__(path, CGROUP_BYTES)
        self._tokens = tokens
        self._seconds = seconds
        self._sparse = sparse
        self._states: dict[str, dict[str, Any]] = {}

    def check(self, chosen: list[Method]) -> None:
        """Compares every method with a map of the real tokens. Exits if a batch is wrong."""
        done = []
        for method in chosen:
            told = {name: method.options[name] for name in TOLD_ALIKE & method.options.keys()}
            if method.reader.startswith(("fio-", "floor")) or (method.reader, told) in done:
                continue
            done.append((method.reader, told))
            if method.work == "first":
                told["state"] = self._half(self.path, self._tokens)
            outcome = token_worker.run(
                token_worker.Task(
                    method.reader, self.path, self._tokens, check_steps=CHECK_STEPS, **told
                )
            )
            if outcome.reason:
                sys.exit(f"tokens: {method.key}: {outcome.reason.replace(self.path, 'FILE')}")
        say(f"every method delivers the batches of a map ({CHECK_STEPS} of each were compared)")

    def run(self, method: Method, group: MemoryGroup | None) -> dict[str, Any]:
        if method.reader == "fio-windows":
            found = fio.run(self.path, "windows", self._seconds, group)
            if "error" not in found:
                found["steps"] = found["reads"] / BATCH  # one 2k read per window
                _per_window(found)
            return found
        if method.reader == "floor":
            found = floor.run("windows", self.path, BLOCK, seconds=self._seconds)
            return found if "error" in found else _per_window(found | {"steps": found["done"]})
        path, tokens, state = self.path, self._tokens, None
        if method.work == "first":
            path, tokens = self._sparse[method.key], SPARSE_TOKENS[method.key]
            state = self._half(path, tokens)
        task = token_worker.Task(method.reader, path, tokens, state=state, **method.options)
        return _found(task, token_worker.run(task, group))

    def rate(self, found: dict[str, Any]) -> str:
        if "wait_s" in found:
            return f"waits {found['wait_s'] * 1e6:,.1f} us per step"
        if "resume_s" in found:
            return f"first batch after {found['resume_s'] * 1e3:,.1f} ms"
        return f"{found['us_a_batch']:,.1f} us per batch, {found['windows_per_s']:,.0f} windows/s"

    def _half(self, path: str, tokens: int) -> dict[str, Any]:
        """Returns the state in the middle of an epoch, which another process took once."""
        if path not in self._states:
            outcome = token_worker.run(token_worker.Task("lowtide-half", path, tokens, max_steps=1))
            if outcome.reason:
                sys.exit(f"tokens: no state: {outcome.reason.replace(path, 'FILE')}")
            self._states[path] = outcome.found["notes"]["state"]
        return self._states[path]


def _found(task: token_worker.Task, outcome: Any) -> dict[str, Any]:
    if outcome.reason:
        return {"error": outcome.reason.replace(task.path, "FILE")}
    found: dict[str, Any] = outcome.found
    found.pop("after")
    found |= {"growth": outcome.growth("anon", "file"), "cached": peak(outcome.readings, "cached")}
    if task.reader == "lowtide-resume":
        found["resume_s"] = found["first_batch_s"]
        found["open_s"] = found["notes"]["open_s"]
    return _per_window(found, compute=bool(task.busy_us))


def _per_window(found: dict[str, Any], compute: bool = False) -> dict[str, Any]:
    found["windows_per_s"] = found["steps"] * BATCH / found["seconds"]
    found["us_a_batch"] = found["seconds"] / found["steps"] * 1e6
    if not compute:  # a busy consumer uses CPU time of its own
        tokens = found["steps"] * BATCH * BLOCK
        found["cpu_s_a_billion"] = (found["user_s"] + found["system_s"]) / tokens * 1e9
    return found


def options(argv: list[str], name: str = "tokens") -> argparse.Namespace:
    parser = rounds.options_parser(name, __doc__)
    parser.add_argument("--tokens", type=int, default=2_000_000_000)
    told = parser.parse_args(argv)
    if told.quick:
        told.rounds, told.tokens, told.seconds = 1, min(told.tokens, 2 * 10**8), 1.0
    if told.rounds < 1 or told.tokens < 2 * (CHECK_STEPS + 1) * BATCH * BLOCK:
        parser.error("--rounds must be at least 1 and --tokens at least a million")
    if importlib.util.find_spec("torch") is None:
        sys.exit("tokens: torch is not installed: pip install torch")
    return told


def choose(told: argparse.Namespace) -> list[Method]:
    return rounds.choose(methods(told.seconds), told.only)


def _make_sparse(folder: str, stack: ExitStack) -> dict[str, str]:
    made = {}
    for key, tokens in SPARSE_TOKENS.items():
        file = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder, suffix=".sparse"))
        file.truncate(tokens * 2)
        made[key] = file.name
    return made


@contextmanager
def data(told: argparse.Namespace) -> Iterator[Callable[[], Bench]]:
    """Yields a function that makes a Bench over the tokens; they exist while the `with` lasts."""
    size_bytes = told.tokens * 2
    say(f"preparing {size_bytes / MIB:,.0f} MiB of tokens ...")
    with ExitStack() as stack:
        path = stack.enter_context(
            scratch.kept_or_removed(
                told.data,
                f"tokens-{told.tokens}.bin",
                size_bytes,
                lambda part: write_tokens(part, told.tokens),
                told.keep,
            )
        )
        sparse = _make_sparse(os.path.dirname(path), stack)
        yield lambda: Bench(path, told.tokens, told.seconds, sparse)


def main(argv: list[str]) -> int:
    told = options(argv)
    chosen = choose(told)
    with data(told) as make_bench:
        bench = make_bench()
        bench.check(chosen)
        facts = rounds.machine_facts(bench.path)
        bench.rounds(chosen, told.rounds)
    facts |= {"command": rounds.command("tokens", argv)}
    facts |= {"torch": version("torch"), "numpy": version("numpy")}
    facts |= {"tokens": told.tokens, "batch_size": BATCH, "block_size": BLOCK}
    facts |= {"cgroup_bytes": None if bench.no_cgroup else CGROUP_BYTES, "busy_us": BUSY_US}
    labels = {method.key: method.label for method in chosen}
    bars = token_report.bars(bench.found, chosen)
    print(token_report.table(labels, bench.found))
    print(report.bars_table(bars))
    rounds.write_result(told.out, facts, bars, labels, bench.found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
