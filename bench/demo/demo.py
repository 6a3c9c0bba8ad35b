#!/usr/bin/env python3
"""The demo: one matrix, two shuffled epochs, several ways to read it, and where the memory goes.

Makes a matrix of about 1 GiB in a temporary folder, reads it by each method in a process of its
own under lowtide.profile, prints a table and writes one HTML page with the pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenarios"))

import lowtide as lt
import machine
import matrix
import residency
import worker
from cgroup import MemoryGroup, why_unavailable
from page import Panel, Part, picture, render

MIB = 1 << 20
UNKNOWN = "unknown"
BUDGET = "64MiB"
INTERVAL_S = 0.05
PIECE_ROWS = 64
COLUMNS = [
    "rows/s",
    "peak heap",
    "peak mapped file",
    "page cache growth",
    "read from disk",
    "read per byte delivered",
]
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class Method:
    title: str
    reader: str
    cache: str = "auto"  # for lowtide only

    @property
    def ours(self) -> bool:
        return self.reader == "lowtide"


MAP = Method("np.memmap", "memmap")
OURS = Method(f'lowtide, memory="{BUDGET}"', "lowtide")
PAST_CACHE = Method('lowtide, cache="drop"', "lowtide", "drop")  # with the same budget
AGAIN = Method("np.memmap, re-created (fix 1)", "memmap-again")
DONTNEED = Method("np.memmap, DONTNEED (fix 2)", "memmap-dontneed")
PREADV = Method("plain preadv loop", "preadv")
# Ours follows the problem. When memory is short, the defaults already drop the page cache.
METHODS = [MAP, OURS, PAST_CACHE, AGAIN, DONTNEED, PREADV]
TIGHT_METHODS = [MAP, OURS, AGAIN, DONTNEED, PREADV]
PICTURED = [MAP, OURS, AGAIN, PAST_CACHE]  # in --plot, two in a row


@dataclass(frozen=True)
class Result:
    """The result of one method; None means not measured. Sizes in bytes."""

    method: Method
    rows_per_s: float | None
    heap: int | None
    mapped: int | None
    cache: int | None
    disk_read: int | None
    delivered: int | None = None
    # lowtide's own count of bytes requested from the system per byte delivered
    merging: float | None = None
    profile: lt.Profile | None = None
    reason: str = ""

    def cells(self) -> list[str]:
        rate = UNKNOWN if self.rows_per_s is None else f"{self.rows_per_s:,.0f}"
        sizes = (self.heap, self.mapped, self.cache, self.disk_read)
        read = None
        if self.disk_read is not None and self.delivered:
            read = self.disk_read / self.delivered
        return [rate, *(mib(size) for size in sizes), times(read)]


def mib(size: int | None) -> str:
    return UNKNOWN if size is None else f"{size / MIB:,.0f} MiB"


def times(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio:,.{1 if ratio < 100 else 0}f}"


def of(results: list[Result], method: Method) -> Result:
    return next(r for r in results if r.method == method)


def measure(method: Method, path: str, rows: int, seconds: float, limit: int | None) -> Result:
    """Runs one method over the evicted file, in a cgroup of `limit` bytes if given."""
    residency.evict(path)
    with ExitStack() as stack:
        group = stack.enter_context(MemoryGroup(limit)) if limit else None
        task = worker.Task(
            method.reader,
            path,
            rows,
            matrix.COLUMNS,
            piece=PIECE_ROWS,
            epochs=2,
            memory=BUDGET,
            cache=method.cache,
            seconds=seconds,
        )
        seen: list[lt.Profile] = []

        def watch(pid: int) -> lt.Profile:
            seen.append(lt.profile(pid=pid, interval=INTERVAL_S, watch=[path]))
            return seen[0]

        outcome = worker.run(task, group, INTERVAL_S, watch=watch)
    found = outcome.found
    if not found:
        return Result(method, None, None, None, None, None, reason=outcome.reason)
    grown = _growths(seen[0])
    notes = found["notes"]
    return Result(
        method,
        found["rows"] / found["seconds"],
        grown["anon"],
        grown["file"],
        grown["page_cache"],
        grown["disk_bytes"],
        delivered=found["rows"] * matrix.ROW_BYTES,
        merging=notes["bytes_read"] / notes["bytes_asked"] if notes.get("bytes_asked") else None,
        profile=seen[0],
    )


def _growths(profile: lt.Profile) -> dict[str, int | None]:
    """The peaks above the first reading, which was taken before the work."""
    readings = json.loads(profile.json())["readings"]
    known = {name: [v for v in column if v is not None] for name, column in readings.items()}
    return {name: max(values) - values[0] if values else None for name, values in known.items()}


def sentences(free: list[Result], limited: list[Result], limit: int | None) -> str:
    """Describes the measurements to the reader, one paragraph per line."""
    plain, ours, past = of(free, MAP), of(free, OURS), of(free, PAST_CACHE)
    first = (
        f"Reading the file in shuffled chunks, np.memmap grew to {mib(plain.mapped)} of mapped "
        f"file pages. The well-known fixes left {mib(of(free, AGAIN).cache)} and "
        f"{mib(of(free, DONTNEED).cache)} in the page cache. Lowtide mapped {mib(ours.mapped)} and "
        f"held {mib(ours.heap)} of heap. By default it leaves a file that is small compared with "
        f'memory in the page cache ({mib(ours.cache)}); with cache="drop" it leaves '
        f"{mib(past.cache)}."
    )
    if limited and limit:
        slow, fast = of(limited, MAP).cells()[0], of(limited, OURS).cells()[0]
        second = (
            f"A map is fast only while the whole file fits into memory: with {mib(limit)} for "
            f"everything, np.memmap read {slow} rows per second and Lowtide {fast}."
        )
    else:
        second = (
            "A map is fast only while the whole file fits into memory. Here nothing was limited, "
            "so its rate above is that of a cached file."
        )
    within = f" ({times(of(limited, OURS).merging)} with that limit)" if limited else ""
    third = (
        "Lowtide reads rows that are close on disk with one request, including the unused bytes "
        f"between them: it requested {times(past.merging)} bytes per byte delivered{within}. "
        "gap= limits that, at the price of more requests."
    )
    return "\n".join((first, second, third))


def text_table(results: list[Result]) -> str:
    lines = [["method", *COLUMNS], *([r.method.title, *r.cells()] for r in results)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    out = []
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        out.append("  ".join([line[0].ljust(widths[0]), *cells[1:]]))
    out.insert(1, "  ".join("-" * width for width in widths))
    out += [f"  {r.method.title} was not measured: {r.reason}" for r in results if r.reason]
    return "\n".join(out)


@contextmanager
def scratch() -> Iterator[str]:
    """A folder that is removed afterwards, even after Ctrl-C or a SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="lowtide-demo-", dir=matrix.scratch_folder())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse_size(text: str) -> int:
    for unit, size in UNITS.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * size)
    return int(text)


def _options(argv: list[str]) -> argparse.Namespace:
    default = Path(__file__).resolve().parents[2] / ".dev" / "lowtide-demo.html"
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--out", default=str(default), help="the page to write (default: .dev/)")
    parser.add_argument("--plot", help="also write some of the pictures as one SVG file")
    parser.add_argument("--size", type=parse_size, default=1 << 30, help="matrix size: 1GiB")
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit per method")
    options = parser.parse_args(argv)
    if options.size < 8 * MIB or options.seconds <= 0:
        parser.error("--size must be at least 8MiB and --seconds above 0")
    return options


def _highest(peak: dict[str, int | None]) -> int:
    """The top of a picture: the page cache is drawn on top of what only the process can release."""
    held = sum(peak[kind] or 0 for kind in ("anon", "shmem", "page_tables"))
    return held + max(peak["file"] or 0, peak["page_cache"] or 0)


def _part(title: str, note: str, results: list[Result], limit: int | None) -> Part:
    """The pictures of one part share their axes, so that they can be compared."""
    profiles = [r.profile for r in results if r.profile]
    seconds = max((p.seconds for p in profiles), default=0.0)
    memory = max([*(_highest(p.peak) for p in profiles), limit or 0])
    panels = []
    for r in results:
        rate = UNKNOWN if r.rows_per_s is None else f"{r.rows_per_s:,.0f} rows/s"
        drawn = r.profile.plot(memory=memory, seconds=seconds, small=True) if r.profile else ""
        panels.append(Panel(r.method.title, r.method.ours, rate, r.cells(), drawn, r.reason))
    return Part(title, note, panels)


def _measure_all(
    path: str, size: int, seconds: float
) -> tuple[list[Result], list[Result], int | None, str]:
    """All measurements: without a limit, and in a cgroup of a quarter of the file."""
    rows = size // matrix.ROW_BYTES
    why_not = why_unavailable()
    limit = None if why_not else max(size // 4, 128 * MIB)
    runs: list[list[Result]] = [[], []]
    steps = [(0, None, m) for m in METHODS] + [(1, limit, m) for m in TIGHT_METHODS if limit]
    for number, (which, bound, method) in enumerate(steps, start=1):
        where = f" within {mib(bound)}" if bound else ""
        say(f"[{number}/{len(steps)}] {method.title}{where} ...")
        runs[which].append(measure(method, path, rows, seconds, bound))
    return runs[0], runs[1], limit, why_not or ""


def main(argv: list[str]) -> int:
    options = _options(argv)
    with scratch() as folder:
        size = min(options.size, shutil.disk_usage(folder).free // 4)
        path = os.path.join(folder, "matrix.f32")
        say(f"writing a matrix of {mib(size)} ...")
        matrix.write(path, size // matrix.ROW_BYTES)
        free, limited, limit, why_not = _measure_all(path, size, options.seconds)
        facts = machine.describe(path)
    lead = sentences(free, limited, limit)
    plenty = f"The file ({mib(size)}) fits into memory"
    tight = f"Everything limited to {mib(limit)}" if limit else "A file larger than memory"
    print(f"\n{plenty}\n{text_table(free)}\n\n{tight}")
    print(text_table(limited) if limited else f"  not measured: {why_not}")
    print(f"\n{lead}")
    chunks = "Two epochs in shuffled chunks of 4096 rows, starting with an evicted file, at most "
    note = (
        f"{chunks}{options.seconds:g} seconds per method. The table shows growth since before the "
        "work; the pictures, all on one scale, show the whole process."
    )
    tight_note = f"The same work in a cgroup of {mib(limit)}: the file is larger than memory."
    tight_note = tight_note if limited else f"Not measured here: {why_not}."
    parts = [_part(plenty, note, free, None), _part(tight, tight_note, limited, limit)]
    foot = (
        f"Measured on Linux {facts['kernel']}, {facts['cores']} cores, file system "
        f"{facts['file_system'] or UNKNOWN}, read-ahead {facts['read_ahead_kb'] or UNKNOWN} KiB, "
        f"{facts['date']}, by lowtide.profile every {INTERVAL_S * 1000:g} ms."
    )
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    title = "Where the memory goes when a matrix is read in shuffled order"
    out.write_text(render(title, lead, parts, COLUMNS, foot), encoding="utf-8")
    if options.plot:
        Path(options.plot).write_text(
            picture(parts[0], [m.title for m in PICTURED]), encoding="utf-8"
        )
    print(f"\nThe pictures: {out}")
    return 1 if any(r.reason for r in free + limited) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
