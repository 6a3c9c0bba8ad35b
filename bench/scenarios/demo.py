#!/usr/bin/env python3
"""./dev demo: `lowtide demo` with a larger matrix, a page and, where it is allowed, a memory limit.

Then it draws what happens while a file outgrows that limit: the picture of the README, on a smaller
scale. Options that are not listed here go to `lowtide demo`.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import rounds
import scale
from cgroup import MemoryGroup, Unavailable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "report"))

import pictures  # noqa: E402
from values import Result  # noqa: E402

LIMIT_BYTES = 256 << 20  # a quarter of the matrix
LIMIT_MIB = LIMIT_BYTES >> 20
SIZES_MIB = (128, 256, 512, 1024)
SCALE_S = 1.0  # per measurement
PATIENCE_S = 50.0  # for all of them


def run(command: list[str]) -> int:
    """Runs a command, which gets the signals that this process gets; returns its exit code."""
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came before there was a child

    def pass_on(number: int, _: object) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, pass_on) for number in numbers]
    child = subprocess.Popen(command)
    for number in early:
        child.send_signal(number)
    code = child.wait()
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)
    return code


def draw(out: str, folder: str | None, sizes_mib: tuple[int, ...] = SIZES_MIB) -> None:
    """Measures how methods behave as a file outgrows the limit, and draws it."""
    readers = ("memmap", "again", "h5py", "lowtide")
    if importlib.util.find_spec("h5py") is None:
        readers = ("memmap", "again", "lowtide")
    plan = scale.Plan(sizes_mib, (), memory_mib=32, limit_mib=LIMIT_MIB, readers=readers)
    with scale.data(folder, False, plan.rows) as path:
        bench = scale.Bench(path, plan, SCALE_S)
        methods = scale.methods(plan)
        until_s = time.monotonic() + PATIENCE_S
        for method in methods:
            if time.monotonic() > until_s:
                rounds.say("a minute is over: the larger files are left out")
                break
            bench.measure(method)
            last = bench.found[method.key][-1]
            rounds.say(f"{method.key}: {last.get('error') or bench.rate(last)}")
    labels = {method.key: method.label for method in methods}
    result = Result({"facts": plan.facts(), "labels": labels, "rounds": bench.found})
    Path(out).write_text(pictures.scale(result), encoding="utf-8")
    print(scale.table(labels, bench.found))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--out", default=str(ROOT / ".dev" / "lowtide-demo.html"))
    parser.add_argument("--plot", help="also write four of the pictures as one SVG file")
    parser.add_argument("--scale", default=str(ROOT / ".dev" / "lowtide-scale.svg"))
    parser.add_argument(
        "--no-scale", action="store_true", help="skip the file that outgrows memory"
    )
    parser.add_argument("--size", default="1GiB", help="of the matrix (default: 1GiB)")
    parser.add_argument("--seconds", default="5", help="at most this many per method (default: 5)")
    parser.add_argument("--folder", help="for the data (default: a temporary one)")
    options, words = parser.parse_known_args(argv)
    words += ["--size", options.size, "--seconds", options.seconds, "-o", options.out]
    words += ["-o", options.plot] if options.plot else []
    words += ["--folder", options.folder] if options.folder else []
    limited = True
    with ExitStack() as stack:
        try:
            group = stack.enter_context(MemoryGroup(LIMIT_BYTES))
            words += ["--group", group.folder]
        except Unavailable as error:
            limited = False
            print(f"Nothing is measured under a memory limit: {error}.", file=sys.stderr)
        command = Path(sys.executable).with_name("lowtide")
        code = run([str(command), "demo", *words])
    if code == 0 and limited and not options.no_scale:
        print(f"\nNow a file that outgrows {LIMIT_MIB} MiB of memory, within a minute.", flush=True)
        try:
            draw(options.scale, options.folder)
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        print(f"\nThe picture of the README, from this machine: {options.scale}")
    if code == 0:
        print(f"\nThe pictures: {options.out}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
