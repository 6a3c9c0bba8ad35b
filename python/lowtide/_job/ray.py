"""Runs the tasks of a job as Ray tasks, stage after stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lowtide._job.plan import Task

_WAIT_S = 0.5  # between two looks at Ctrl-C
_PATIENCE_S = 60  # for tasks to end after an error


def _run(task: Task) -> None:
    task.run()


def run_stage(
    tasks: Sequence[Task], ray: Any, finished: Callable[[Task], None], stop: Callable[[], None]
) -> None:
    """Runs tasks that are independent of each other, one per CPU, and waits for all.

    Ray starts a task again if its worker dies. The first error is raised with its own type, after
    the other tasks have ended. They are not cancelled: ray.cancel of a task that is just ending
    aborts the driver (ray 2.60). So only one task more than there are CPUs is submitted at a time;
    the extra one lets an autoscaler see that there is work.
    """
    if not ray.is_initialized():
        ray.init()
    run = ray.remote(_run)
    waiting = list(reversed(tasks))
    running: dict[Any, Task] = {}
    try:
        while waiting or running:
            while waiting and len(running) <= int(ray.cluster_resources().get("CPU", 0)):
                task = waiting.pop()
                named = run.options(name=f"lowtide {task.verb} {task.name}", max_retries=3)
                running[named.remote(task)] = task
            for reference in ray.wait(list(running), num_returns=1, timeout=_WAIT_S)[0]:
                ray.get(reference)
                finished(running.pop(reference))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    finally:
        if running:
            stop()  # a task that still runs fails as soon as it misses its files
            ray.wait(list(running), num_returns=len(running), timeout=_PATIENCE_S)
