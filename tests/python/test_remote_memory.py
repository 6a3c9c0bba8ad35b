"""What is held stays within the budget, however many requests are in flight."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core
from range_server import RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)

MIB = 1 << 20
BUDGET = 32 * MIB
JOB = """
import sys
import numpy as np
import lowtide as lt
rows = 0
print("ready", flush=True)
sys.stdin.readline()
with lt.open(sys.argv[1], memory=int(sys.argv[2]), requests=128) as a:
    for epoch in range(2):
        for idx, part in a.batches(256, seed=0, epoch=epoch):
            assert (part[:, 0] == idx).all()
            rows += len(idx)
print(rows, flush=True)
sys.stdin.readline()
"""


def anonymous(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def test_two_epochs_stay_within_the_budget_with_128_requests_in_flight(tmp_path):
    rows = 16_384
    data = np.zeros((rows, 2048), "<i4")  # 128 MiB
    data[:, 0] = np.arange(rows)
    np.save(tmp_path / "m.npy", data)
    del data
    with RangeServer(tmp_path) as server:
        command = [sys.executable, "-c", JOB, server.url("late=5/m.npy"), str(BUDGET)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as job:
            assert job.stdout.readline() == "ready\n"
            before = anonymous(job.pid)
            job.stdin.write("go\n")
            job.stdin.flush()
            peak = 0
            done: list[str] = []
            reader = threading.Thread(target=lambda: done.append(job.stdout.readline()))
            reader.start()
            while reader.is_alive():
                peak = max(peak, anonymous(job.pid))
                time.sleep(0.005)
            job.stdin.write("end\n")
            job.stdin.flush()
    assert done == [f"{2 * rows}\n"] and job.returncode == 0
    assert peak - before <= BUDGET + 16 * MIB, f"{(peak - before) / MIB:.1f} MiB"


def test_requests_that_end_leave_nothing_behind(tmp_path):
    np.save(tmp_path / "m.npy", np.arange(100_000).reshape(-1, 10))
    pid = os.getpid()
    with (
        RangeServer(tmp_path) as server,
        lt.open(server.url("m.npy"), memory="128KiB", gap=0, requests=8) as a,
    ):
        rows = np.arange(0, 10_000, 20)
        a.take(rows)
        server.requests.clear()
        before = anonymous(pid)
        for _ in range(4):
            a.take(rows)
        assert len(server.requests) >= 2000
        server.requests.clear()
        assert anonymous(pid) - before < 8 * MIB
