"""Plans and their tasks."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _core
from lowtide._progress import Shown, Standing, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = bool | Callable[[int, int], object]


class Plan:
    """Stages of tasks that write one result. `shuffle`, `convert`, `merge` and `check` make it.

    A plan is immutable, and any thread may use it. It can be pickled.
    """

    __slots__ = ("_core", "_stages", "_text")

    def __init__(self, core: _core.Plan) -> None:
        self._core = core
        self._text = core.text()
        self._stages = core.stages

    @property
    def verb(self) -> str:
        """What it does: "shuffle", "convert", "merge" or "check"."""
        return self._core.verb

    @property
    def destination(self) -> str:
        """Path of the result; empty if the plan writes nothing."""
        return os.fsdecode(self._core.destination)

    @property
    def stages(self) -> list[list[Task]]:
        """The tasks by stage. Those of one stage are independent of each other."""
        return [
            [Task(self._text, stage, number) for number in range(count)]
            for stage, (_, count) in enumerate(self._stages)
        ]

    @property
    def tasks(self) -> list[Task]:
        """All tasks, stage after stage."""
        return [task for stage in self.stages for task in stage]

    def run(self, on: Any = None, progress: Progress | None = None) -> None:
        """Runs all tasks that are not done, and publishes the result.

        An error or Ctrl-C ends the run and leaves nothing behind: neither a result nor files of
        unfinished work. After a crash, the same call resumes.

        Args:
            on: None runs the tasks here, on threads. The module `ray` runs them as Ray tasks, a
                `dask.distributed.Client` as its futures; the workers must see the same files under
                the same paths, and have this version of Lowtide.
            progress: None shows a bar on a terminal if it takes longer than a second. True prints
                one line per task where there is no terminal. A callable gets (done, total) in bytes
                from time to time, in this thread. False shows nothing.

        Raises:
            OSError: A read or write failed, the disk is full, or a source has changed since the
                plan was made (ESTALE).
            FormatError: A source is broken.
            TypeError: `on` is none of these.
        """
        run_stage = _runner(on)
        report = shown(progress, self.verb)
        try:
            if run_stage is None:
                names = [name for name, _ in self._stages]
                self._core.run(
                    lambda done, total, stage, _, tasks_done, tasks: report.show(
                        Standing(done, total, names[stage], tasks_done, tasks)
                    )
                )
            else:
                self._run_elsewhere(run_stage, on, report)
        finally:
            report.close()

    def _run_elsewhere(self, run_stage: Callable[..., None], on: Any, report: Shown) -> None:
        total = sum(task._bytes for task in self.tasks)
        done = 0
        try:
            for stage, (name, _) in zip(self.stages, self._stages):
                left = [task for task in stage if not task.done()]
                done += sum(task._bytes for task in stage) - sum(task._bytes for task in left)
                tasks_done = len(stage) - len(left)
                report.show(Standing(done, total, name, tasks_done, len(stage)))

                def finished(task: Task, name: str = name, tasks: int = len(stage)) -> None:
                    nonlocal done, tasks_done
                    done += task._bytes
                    tasks_done += 1
                    report.show(Standing(done, total, name, tasks_done, tasks))

                run_stage(left, on, finished, self.clean)
        finally:
            self.clean()

    def clean(self) -> None:
        """Removes what unfinished tasks left beside the result. No task may be running.

        `run` does this by itself. Call it if you ran the tasks yourself and do not want to finish.
        """
        self._core.clean()

    def __reduce__(self) -> tuple[Any, ...]:
        return _plan, (self._text,)

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {count}" for name, count in self._stages)
        to = f" to {self.destination!r}" if self.destination else ""
        return f"<lowtide.jobs.Plan {self.verb}{to}, tasks: {told}>"


class Task:
    """One task of a plan: picklable, and safe to run again after any failure.

    A pickle holds the plan, the stage and the number, and no data. The process that runs it must
    see the files of the plan under the same paths.
    """

    __slots__ = ("_text", "number", "stage")

    def __init__(self, text: bytes, stage: int, number: int) -> None:
        self._text = text
        self.stage = stage
        self.number = number

    @property
    def _core(self) -> _core.Plan:
        return _parsed(self._text)

    @property
    def _bytes(self) -> int:
        return self._core.task_bytes(self.stage, self.number)

    @property
    def verb(self) -> str:
        """The verb of its plan."""
        return self._core.verb

    @property
    def name(self) -> str:
        """Name of its stage, number, and how many tasks the stage has: "scatter 3/64"."""
        name, count = self._core.stages[self.stage]
        return f"{name} {self.number}/{count}"

    @property
    def inputs(self) -> list[str]:
        """Paths of the files that it reads."""
        return [os.fsdecode(path) for path in self._core.inputs(self.stage, self.number)]

    @property
    def outputs(self) -> list[str]:
        """Paths of the files that it writes."""
        return [os.fsdecode(path) for path in self._core.outputs(self.stage, self.number)]

    def done(self) -> bool:
        """Whether its outputs are complete."""
        return self._core.done(self.stage, self.number)

    def run(self) -> None:
        """Runs the task in this thread, unless it is done. The last one publishes the result.

        Raises:
            OSError: A read or write failed, the disk is full, or a source has changed since the
                plan was made (ESTALE).
            FormatError: A source is broken.
            FileNotFoundError: A task of an earlier stage is not done, or the disk with its output
                is gone.
            ValueError: Another version of Lowtide made the plan.
        """
        self._core.run_task(self.stage, self.number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Task):
            return NotImplemented
        mine = (self._text, self.stage, self.number)
        return mine == (other._text, other.stage, other.number)

    def __hash__(self) -> int:
        return hash((self._text, self.stage, self.number))

    def __reduce__(self) -> tuple[Any, ...]:
        return Task, (self._text, self.stage, self.number)

    def __repr__(self) -> str:
        try:
            return f"<lowtide.jobs.Task {self.verb} {self.name}>"
        except ValueError:  # the plan is of another version
            return f"<lowtide.jobs.Task {self.number} of stage {self.stage} of an unreadable plan>"


@functools.lru_cache(maxsize=8)
def _parsed(text: bytes) -> _core.Plan:
    """The plan of a task; the tasks of one plan share it."""
    return _core.Plan.from_text(text)


def _plan(text: bytes) -> Plan:
    return Plan(_parsed(text))


def _runner(on: Any) -> Callable[..., None] | None:
    """Returns what runs a stage on `on`, or None for here. Raises TypeError, ValueError."""
    if on is None:
        return None
    if getattr(on, "__name__", None) == "ray" and hasattr(on, "remote"):
        from lowtide._job import ray

        return ray.run_stage
    if type(on).__module__.partition(".")[0] == "distributed" and hasattr(on, "submit"):
        if on.asynchronous:
            raise ValueError("this dask client is asynchronous: use Client(asynchronous=False)")
        from lowtide._job import dask

        return dask.run_stage
    raise TypeError(
        "on must be None (here), the module ray or a dask.distributed.Client, not "
        f"{_arguments.told(on)}"
    )
