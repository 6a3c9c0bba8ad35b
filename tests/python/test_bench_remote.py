"""The server of `./dev bench remote`: its ranges, its latency and its faults."""

from __future__ import annotations

import http.client
import pathlib
import subprocess
import sys
import time

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core

PROGRAM = pathlib.Path(__file__).parents[2] / "bench" / "scenarios" / "remote_server.py"


@pytest.fixture
def served(tmp_path):
    """A matrix, and the port of a server of its folder."""
    data = np.random.default_rng(0).integers(0, 1 << 30, (1500, 250)).astype("<i4")
    data[:, 0] = np.arange(len(data))
    np.save(tmp_path / "m.npy", data)
    command = [sys.executable, str(PROGRAM), str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield data, int(server.stdout.readline())
        server.stdin.close()


def get(connection, path, range_asked):
    connection.request("GET", path, headers={"Range": range_asked} if range_asked else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_serves_ranges_after_the_latency(served, tmp_path):
    whole = (tmp_path / "m.npy").read_bytes()
    connection = http.client.HTTPConnection("127.0.0.1", served[1])
    assert get(connection, "/m.npy", "bytes=100-1099") == (206, whole[100:1100])
    assert get(connection, "/any/m.npy", "bytes=-7") == (206, whole[-7:])
    assert get(connection, "/m.npy", "") == (200, whole)
    assert get(connection, "/absent.npy", "bytes=0-1")[0] == 404
    began_s = time.monotonic()
    assert get(connection, "/late=30/m.npy", "bytes=0-9") == (206, whole[:10])
    assert time.monotonic() - began_s >= 0.03
    connection.close()


def test_as_many_requests_fail_as_asked(served):
    statuses = []
    connection = http.client.HTTPConnection("127.0.0.1", served[1])
    for _ in range(400):
        statuses.append(get(connection, "/fail=0.25/m.npy", "bytes=0-9")[0])
    connection.close()
    assert set(statuses) == {206, 503} and 60 <= statuses.count(503) <= 140


@pytest.mark.skipif(bool(_core.why_no_http()), reason=f"no http: {_core.why_no_http()}")
def test_an_epoch_with_its_faults_is_complete_and_exact(served):
    data, port = served
    url = f"http://127.0.0.1:{port}/late=2/fail=0.02/cut=0.02/stall=0.005/m.npy"
    seen = np.zeros(len(data), int)
    with lt.open(url, memory="1MiB", gap=0) as a:  # a request per row
        for idx, rows in a.batches(100, seed=0):
            np.testing.assert_array_equal(rows, data[idx])
            seen[idx] += 1
    assert (seen == 1).all()
