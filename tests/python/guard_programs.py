"""Programs that map a big file, for test_guard.py: python guard_programs.py NAME PATH.

Each reads all of the file and prints a sum of it, so that a page that was lost shows.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

CHUNK = 1 << 20
PAUSE_S = float(sys.argv[3]) if len(sys.argv) > 3 else 0.003  # after each chunk


def total(view: np.ndarray) -> int:
    """Reads slowly, so that the trimmer keeps up even on a busy machine."""
    found = 0
    for at in range(0, len(view), CHUNK):
        found += int(view[at : at + CHUNK].sum(dtype=np.uint64))
        if PAUSE_S > 0:
            time.sleep(PAUSE_S)
    return found


def scan(path: str) -> int:
    return total(np.memmap(path, dtype=np.uint8, mode="r"))


def shuffle(path: str) -> int:
    rows = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, 4096)
    order = np.random.default_rng(0).permutation(len(rows))
    return sum(
        int(rows[order[at : at + 256]].sum(dtype=np.uint64)) for at in range(0, len(order), 256)
    )


def shuffle_long(path: str) -> int:
    return sum(shuffle(path) for _ in range(4))


def arrow(path: str) -> int:
    import pyarrow

    with pyarrow.memory_map(path) as source:
        return total(np.frombuffer(source.read_buffer(), dtype=np.uint8))


def torch_load(path: str) -> int:
    import torch

    return total(torch.load(path, mmap=True)["x"].numpy())


def safetensors_torch(path: str) -> int:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return total(file.get_tensor("x").numpy())


def private_writes(path: str) -> int:
    """Writes the first bytes of every MiB of a private map; they must stay."""
    view = np.memmap(path, dtype=np.uint8, mode="c")
    marks = range(0, len(view), 1 << 20)
    for at in marks:
        view[at] = at >> 20 & 0xFF
    found = total(view)
    if any(view[at] != (at >> 20 & 0xFF) for at in marks):
        raise SystemExit("a write into a private map was lost")
    return found


def shared_writes(path: str) -> int:
    view = np.memmap(path, dtype=np.uint8, mode="r+")
    for at in range(0, len(view), CHUNK):
        view[at : at + CHUNK] += 1
    return total(view)


def sqlite(path: str) -> int:
    import sqlite3

    base = sqlite3.connect(path)
    base.execute(f"pragma mmap_size={1 << 32}")
    found, since = 0, 0
    for (body,) in base.execute("select body from rows"):
        found += len(body)
        since += len(body)
        if since >= CHUNK and PAUSE_S > 0:
            since = 0
            time.sleep(PAUSE_S)
    return found


def workers(path: str) -> int:
    """Maps before the fork, as with DataLoader workers."""
    view = np.memmap(path, dtype=np.uint8, mode="r")
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            os._exit(0 if total(view) == total(view) else 1)
        children.append(child)
    for child in children:
        if os.waitpid(child, 0)[1] != 0:
            raise SystemExit("a worker failed")
    return total(view)


def file_pages() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssFile"))


def measured(name: str, path: str) -> None:
    """For bench/scenarios/ceiling.py: what is mapped before the file is, the time, the sum."""
    for package in {"arrow": ["pyarrow"], "torch_load": ["torch"]}.get(name, []):
        __import__(package)
    if name.startswith("safetensors"):
        __import__("torch")
        __import__("safetensors")
    before, start = file_pages(), time.monotonic()
    found = globals()[name](path)
    print(before, time.monotonic() - start, found)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        measured(sys.argv[1], sys.argv[2])
    else:
        print(globals()[sys.argv[1]](sys.argv[2]))
