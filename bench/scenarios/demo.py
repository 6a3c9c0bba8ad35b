#!/usr/bin/env python3
"""./dev demo: `lowtide demo` with a larger matrix, a page and, where it is allowed, a memory limit.

Options that are not listed here go to `lowtide demo`.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from cgroup import MemoryGroup, Unavailable

LIMIT_BYTES = 256 << 20  # a quarter of the matrix


def run(command: list[str]) -> int:
    """Runs a command, which gets the signals that this process gets; returns its exit code."""
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came before there was a child

    def pass_on(number: int, _: object) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    child = subprocess.Popen(command)
    for number in early:
        child.send_signal(number)
    return child.wait()


def main(argv: list[str]) -> int:
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--out", default=str(root / ".dev" / "lowtide-demo.html"))
    parser.add_argument("--plot", help="also write four of the pictures as one SVG file")
    parser.add_argument("--size", default="1GiB", help="of the matrix (default: 1GiB)")
    parser.add_argument("--seconds", default="5", help="at most this many per method (default: 5)")
    options, words = parser.parse_known_args(argv)
    words += ["--size", options.size, "--seconds", options.seconds, "-o", options.out]
    words += ["-o", options.plot] if options.plot else []
    with ExitStack() as stack:
        try:
            group = stack.enter_context(MemoryGroup(LIMIT_BYTES))
            words += ["--group", group.folder]
        except Unavailable as error:
            print(f"Nothing is measured under a memory limit: {error}.", file=sys.stderr)
        command = Path(sys.executable).with_name("lowtide")
        code = run([str(command), "demo", *words])
    if code == 0:
        print(f"\nThe pictures: {options.out}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
