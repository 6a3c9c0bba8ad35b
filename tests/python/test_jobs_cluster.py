"""Jobs on Ray and Dask: the bytes of `plan.run()`, also if a worker is killed in mid-task.

Ray and Dask are not among the test requirements: `./dev test --cluster` installs them beside.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest
from job_files import entries, matrix_file, permutation

pytestmark = pytest.mark.slow
MANY_TASKS = "1MiB"
COLUMNS = 162


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20
    )
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=["ray", "client"])
def on(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("shards", [1, 4])
def test_the_bytes_are_those_of_a_run_here(tmp_path: Path, on: Any, shards: int) -> None:
    data = matrix_file(tmp_path / "m.npy", rows=40_000)
    suffix = ".npy" if shards == 1 else ""
    here, there = tmp_path / f"here{suffix}", tmp_path / f"there{suffix}"
    lt.shuffle(tmp_path / "m.npy", here, seed=6, memory=MANY_TASKS, shards=shards)
    plan = lt.jobs.shuffle(tmp_path / "m.npy", there, seed=6, memory=MANY_TASKS, shards=shards)
    assert len(plan.stages[0]) > 2 and len(plan.stages[1]) == shards
    seen: list[tuple[int, int]] = []
    plan.run(on, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2 * data.nbytes, 2 * data.nbytes) and sorted(seen) == seen
    parts = [""] if shards == 1 else sorted(os.listdir(here))
    assert shards == 1 or parts == sorted(os.listdir(there))
    for part in parts:
        assert (here / part).read_bytes() == (there / part).read_bytes()
    with lt.open(there) as a:
        np.testing.assert_array_equal(a[...], data[permutation(tmp_path, len(data), 6)])
    assert [name for name in entries(tmp_path) if name.startswith(".")] == []


def test_convert_and_merge_run_there_too(tmp_path: Path, on: Any) -> None:
    data = matrix_file(tmp_path / "m.npy")
    lt.jobs.merge([tmp_path / "m.npy"] * 2, tmp_path / "all.npy").run(on)
    np.testing.assert_array_equal(np.load(tmp_path / "all.npy"), np.concatenate([data, data]))
    lt.jobs.convert(tmp_path / "all.npy", tmp_path / "all.i4", "raw").run(on)
    assert (tmp_path / "all.i4").read_bytes() == data.tobytes() * 2
    lt.jobs.check([tmp_path / "m.npy", tmp_path / "all.npy"]).run(on)
    assert entries(tmp_path) == ["all.i4", "all.npy", "m.npy"]


def test_errors_keep_their_type_and_leave_nothing(tmp_path: Path, on: Any) -> None:
    matrix_file(tmp_path / "m.npy", rows=40_000)
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", memory=MANY_TASKS)
    os.unlink(tmp_path / "m.npy")
    with pytest.raises(OSError) as found:
        plan.run(on)
    assert type(found.value).__module__ == "builtins"
    assert entries(tmp_path) == []
    np.asarray([1, 2, 300], "<u2").tofile(tmp_path / "t.bin")
    plan = lt.jobs.convert(tmp_path / "t.bin", tmp_path / "o.bin", "megatron", dtype="uint8")
    with pytest.raises(ValueError, match="300") as wrong:
        plan.run(on)
    assert type(wrong.value) is ValueError
    assert entries(tmp_path) == ["t.bin"]


def test_an_interrupt_leaves_nothing(tmp_path: Path, on: Any) -> None:
    data = matrix_file(tmp_path / "m.npy", rows=100_000)

    def stop(done: int, total: int) -> None:
        if done >= data.nbytes // 2:
            raise KeyboardInterrupt

    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out.npy", memory=MANY_TASKS)
    assert len(plan.stages[0]) > 4
    with pytest.raises(KeyboardInterrupt):
        plan.run(on, progress=stop)
    assert entries(tmp_path) == ["m.npy"]
    plan.run(on)  # the cluster is as good as before
    order = permutation(tmp_path, len(data), 0)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), data[order])


def ray_worker() -> int | None:
    """A worker that is running one of our tasks: Ray names the process after it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::lowtide shuffle"):
                return int(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return None


def dask_worker(client: Any, pids: dict[str, int]) -> int | None:
    for worker, keys in client.processing().items():
        if any(str(key).startswith("lowtide-shuffle") for key in keys):
            return pids[worker]
    return None


class Killer(threading.Thread):
    """Ends the first process that `find` finds."""

    def __init__(self, find: Callable[[], int | None]) -> None:
        super().__init__()
        self._find = find
        self._stop_it = threading.Event()
        self.killed: int | None = None

    def run(self) -> None:
        while self.killed is None and not self._stop_it.wait(0.002):
            found = self._find()
            if found is not None:
                os.kill(found, signal.SIGKILL)
                self.killed = found

    def stop(self) -> None:
        self._stop_it.set()
        self.join()


def test_a_killed_worker_changes_nothing_but_time(tmp_path: Path, on: Any) -> None:
    rows = 400_000  # 250 MiB
    data = np.lib.format.open_memmap(tmp_path / "m.npy", "w+", dtype="<f4", shape=(rows, COLUMNS))
    data[:] = np.arange(rows, dtype="<f4")[:, None]
    data.flush()
    del data
    lt.shuffle(tmp_path / "m.npy", tmp_path / "here.npy", seed=2, memory="16MiB")
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "there.npy", seed=2, memory="16MiB")
    if getattr(on, "__name__", "") == "ray":
        killer = Killer(ray_worker)
    else:
        killer = Killer(functools.partial(dask_worker, on, on.run(os.getpid)))
    killer.start()
    try:
        plan.run(on)
    finally:
        killer.stop()
    assert killer.killed, "no worker was seen in mid-task"
    found, expected = lt.open(tmp_path / "there.npy"), lt.open(tmp_path / "here.npy")
    for one, other in zip(found.iter_chunks(50_000), expected.iter_chunks(50_000)):
        np.testing.assert_array_equal(one, other)
    order = permutation(tmp_path, rows, 2)
    np.testing.assert_array_equal(found[:, 0], order.astype("<f4"))
    assert entries(tmp_path) == ["here.npy", "m.npy", "there.npy"]


def test_an_asynchronous_client_is_refused(tmp_path: Path, client: Any) -> None:
    import asyncio

    import distributed

    matrix_file(tmp_path / "m.npy")
    plan = lt.jobs.shuffle(tmp_path / "m.npy", tmp_path / "out.npy")

    async def main() -> None:
        async with distributed.Client(client.scheduler.address, asynchronous=True) as other:
            with pytest.raises(ValueError, match="asynchronous"):
                plan.run(other)

    asyncio.run(main())
