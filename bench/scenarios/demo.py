#!/usr/bin/env python3
"""./dev demo: `lowtide demo` with a larger matrix, a page and, where it is allowed, a memory limit.

Options that are not listed here go to `lowtide demo`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from cgroup import MemoryGroup, Unavailable

LIMIT_BYTES = 256 << 20  # a quarter of the matrix


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
        child = subprocess.Popen([command, "demo", *words])
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(child.pid, number))
        code = child.wait()
    if code == 0:
        print(f"\nThe pictures: {options.out}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
