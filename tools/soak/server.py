"""The tests' server of objects, as a process of its own: it prints its address and serves."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))

from range_server import RangeServer


class Count:
    """In the place of the list of requests, which would grow: it only counts."""

    def __init__(self) -> None:
        self.length = 0

    def append(self, _: object) -> None:
        self.length += 1

    def __len__(self) -> int:
        return self.length


def serve(root: Path) -> None:
    with RangeServer(root) as server:
        server.requests = Count()  # type: ignore[assignment]
        print(f"http://127.0.0.1:{server.port}", flush=True)
        sys.stdin.read()  # until the supervisor ends
