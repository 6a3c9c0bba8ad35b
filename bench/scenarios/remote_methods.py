"""The methods of the benchmark `remote`. Each checks the first value of every row it fetched.

What a constructor does is preparation and is not timed: imports, opening and drawing the ranges.
Packages are imported there, because the peers have an interpreter of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from remote_worker import Task

HEADER_BYTES = 128
RANGE_BYTES = 64 * 1024
CALLERS = 16
PER_CALL = 32  # ranges in a call of get_ranges
CURL_RANGE_BYTES = 16 << 20  # with four at a time, the fastest of what was tried
CURL_PARALLEL = 4


class Reader:
    def __init__(self, task: Task) -> None:
        self.task = task

    def read(self, until_s: float) -> dict[str, Any]:
        raise NotImplementedError

    def close(self) -> dict[str, Any]:
        """Returns what is known about the work besides its time."""
        return {}


def _same(rows: Any, index: Any) -> None:
    if not np.array_equal(rows, index):
        raise ValueError("a row differs from what was written")


def _ranges(task: Task) -> Any:
    return np.random.default_rng(1).integers(0, task.rows, task.ranges)


def _by_callers(task: Task, fetch: Any) -> dict[str, Any]:
    index = _ranges(task)
    parts = [index[first : first + PER_CALL] for first in range(0, len(index), PER_CALL)]
    with ThreadPoolExecutor(CALLERS) as pool:
        for _ in pool.map(fetch, parts):
            pass
    return {"rows": len(index), "bytes": len(index) * RANGE_BYTES}


class Lowtide(Reader):
    def __init__(self, task: Task) -> None:
        import lowtide

        super().__init__(task)
        self.lt = lowtide
        self.array = lowtide.open(
            task.url, memory=task.memory, requests=task.requests, gap=task.gap
        )

    def close(self) -> dict[str, Any]:
        stats = self.array.stats()
        self.array.close()
        return {"requests": stats["reads"], "fetched_bytes": stats["bytes_read"]}


class LowtideTake(Lowtide):
    """As many callers as of get_ranges, with as many ranges each."""

    def fetch(self, part: Any) -> None:
        _same(self.array.take(part)[:, 0], part)

    def read(self, until_s: float) -> dict[str, Any]:
        return _by_callers(self.task, self.fetch)


class LowtideShuffled(Lowtide):
    """Rows in a shuffled order, read ahead; with max_rows or an end of time, a part of them."""

    order = "shuffle"

    def read(self, until_s: float) -> dict[str, Any]:
        task, rows, row_bytes = self.task, 0, 0
        seen = np.zeros(task.rows, np.uint8)
        for idx, part in self.array.batches(task.batch, order=self.order, seed=1):
            _same(part[:, 0], idx)
            seen[idx] += 1
            rows += len(idx)
            row_bytes = part[0].nbytes
            if (task.max_rows and rows >= task.max_rows) or time.perf_counter() > until_s:
                break
        if np.count_nonzero(seen) != rows or (rows == task.rows and not (seen == 1).all()):
            raise ValueError("some row came twice or not at all")
        return {"rows": rows, "bytes": rows * row_bytes, "whole": rows == task.rows}


class LowtideScan(LowtideShuffled):
    order = "sequential"


class LowtideTokens(Reader):
    """A trainer that is busy for a while after each batch, and how long it waits for the next."""

    def __init__(self, task: Task) -> None:
        import lowtide

        super().__init__(task)
        self.tokens = lowtide.tokens(
            task.url, dtype="uint16", memory=task.memory, requests=task.requests
        )
        self.loader = lowtide.Loader(
            self.tokens, batch_size=task.batch, block_size=1024, seed=1337, epochs=None
        )

    def read(self, until_s: float) -> dict[str, Any]:
        waits_ns, now_ns = array("Q"), time.perf_counter_ns
        busy_ns, until_ns = self.task.busy_us * 1000, int(until_s * 1e9)
        started_ns = now_ns()
        self.loader.next()
        first_ns = got_ns = now_ns()
        while got_ns < until_ns:
            asked_ns = now_ns()
            self.loader.next()
            got_ns = now_ns()
            waits_ns.append(got_ns - asked_ns)
            while now_ns() - got_ns < busy_ns:
                pass
        steps = len(waits_ns) + 1
        parts = statistics.quantiles(waits_ns, n=100)
        return {
            "steps": steps,
            "bytes": steps * self.task.batch * 1025 * 2,
            "first_batch_s": (first_ns - started_ns) * 1e-9,
            "wait_s": parts[49] * 1e-9,
            "wait_p90_s": parts[89] * 1e-9,
            "wait_p99_s": parts[98] * 1e-9,
            "waited_share": sum(waits_ns) / (got_ns - first_ns),
        }

    def close(self) -> dict[str, Any]:
        stats = self.tokens.stats()
        self.tokens.close()
        return {"requests": stats["reads"], "fetched_bytes": stats["bytes_read"]}


class ObstoreRanges(Reader):
    """get_ranges by several threads, which fetches ranges less than 1 MiB apart together."""

    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, task: Task) -> None:
        import obstore
        from obstore.store import S3Store

        super().__init__(task)
        bucket, _, self.key = task.key.partition("/")
        self.get_ranges = obstore.get_ranges
        self.store = S3Store(
            bucket,
            endpoint=task.endpoint,
            region="us-east-1",
            skip_signature=True,
            client_options={"allow_http": True},
        )

    def fetch(self, part: Any) -> None:
        starts = (HEADER_BYTES + part * RANGE_BYTES).tolist()
        ends = [start + RANGE_BYTES for start in starts]
        found = self.get_ranges(self.store, self.key, starts=starts, ends=ends, **self.options)
        _same([np.frombuffer(one, "<f4", 1)[0] for one in found], part)

    def read(self, until_s: float) -> dict[str, Any]:
        return _by_callers(self.task, self.fetch)


class ObstoreSingle(ObstoreRanges):
    options: ClassVar[dict[str, Any]] = {"coalesce": 0}


class TensorstoreRanges(Reader):
    """Inner chunks of one shard of zarr 3: each is a range of 64 KiB of one object."""

    def __init__(self, task: Task) -> None:
        import tensorstore

        super().__init__(task)
        bucket, _, key = task.key.partition("/")
        self.array = tensorstore.open(
            {
                "driver": "zarr3",
                "kvstore": {
                    "driver": "s3",
                    "bucket": bucket,
                    "path": key,
                    "endpoint": task.endpoint,
                    "aws_region": "us-east-1",
                    "aws_credentials": {"type": "anonymous"},
                    "s3_request_concurrency": {"limit": task.requests},
                },
                "recheck_cached_metadata": "open",
                "recheck_cached_data": "open",
                # For the index of the shard, which is read once; a chunk does not fit.
                "context": {"cache_pool": {"total_bytes_limit": 1_000_000}},
            }
        ).result()
        self.array[0].read().result()

    def read(self, until_s: float) -> dict[str, Any]:
        index, size = _ranges(self.task), CALLERS * PER_CALL
        for first in range(0, len(index), size):
            part = index[first : first + size]
            found = [self.array[row].read() for row in part.tolist()]
            _same([one.result()[0] for one in found], part)
        return {"rows": len(index), "bytes": len(index) * RANGE_BYTES}


class CurlScan(Reader):
    """curl -Z: ranges of one object, several at a time, written to nowhere."""

    def read(self, until_s: float) -> dict[str, Any]:
        size = self.task.size_bytes
        with tempfile.NamedTemporaryFile("w", suffix=".curl") as config:
            for first in range(0, size, CURL_RANGE_BYTES):
                last = min(size, first + CURL_RANGE_BYTES) - 1
                config.write(
                    f'{"next" if first else ""}\nurl = "{self.task.url}"\n'
                    f'range = "{first}-{last}"\noutput = "{os.devnull}"\nsilent\nfail\n'
                )
            config.flush()
            command = ["curl", "-sS", "-Z", "--parallel-max", str(CURL_PARALLEL), "-K", config.name]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return {"rows": self.task.rows, "bytes": size}


READERS: dict[str, type[Reader]] = {
    "lowtide-take": LowtideTake,
    "lowtide-shuffled": LowtideShuffled,
    "lowtide-scan": LowtideScan,
    "lowtide-tokens": LowtideTokens,
    "obstore": ObstoreRanges,
    "obstore-single": ObstoreSingle,
    "tensorstore": TensorstoreRanges,
    "curl": CurlScan,
}
