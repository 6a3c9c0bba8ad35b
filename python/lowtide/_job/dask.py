"""Runs the tasks of a job as Dask futures, stage after stage."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lowtide._job.plan import Task


def _run(task: Task) -> None:
    task.run()


_PATIENCE_S = 60  # for tasks to end after an error


def run_stage(
    tasks: Sequence[Task], client: Any, finished: Callable[[Task], None], stop: Callable[[], None]
) -> None:
    """Runs tasks that are independent of each other, and waits for all.

    Dask runs a task again if its worker dies. The first error is raised with its own type, after
    the other tasks have ended. Dask cannot stop a task that has begun, so no more are submitted at
    a time than there are threads.
    """
    from distributed import wait

    waiting = list(reversed(tasks))
    running: dict[Any, Task] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max(1, sum(client.nthreads().values())):
                task = waiting.pop()
                key = f"lowtide-{task.verb}-{task.stage}-{task.number}-{uuid.uuid4().hex}"
                running[client.submit(_run, task, key=key, pure=False)] = task
            for future in wait(list(running), return_when="FIRST_COMPLETED").done:
                future.result()
                finished(running.pop(future))
    finally:
        if running:
            stop()  # a task that still runs fails as soon as it misses its files
            wait(list(running), timeout=_PATIENCE_S)
