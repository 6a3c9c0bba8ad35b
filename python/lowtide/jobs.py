"""Shuffles, converts and merges data bigger than memory: here, or as tasks on a cluster.

```python
plan = lt.jobs.shuffle("m.npy", "shuffled.npy", seed=1, memory="1GiB")
plan.run()        # here, on threads
plan.run(ray)     # as Ray tasks
plan.run(client)  # as futures of a dask.distributed.Client
```

A plan consists of stages of tasks. The tasks of a stage are independent of each other, and a stage
may begin when the one before it is done. A task can be run again after any failure; one that is
done is recognised and skipped. `lowtide.shuffle`, `convert` and `merge` plan and run in one call.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _core
from lowtide._documents import Documents
from lowtide._job_source import job_source
from lowtide._progress import Shown, Standing, shown
from lowtide._ragged import Ragged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from lowtide._job_source import Path, Source

    Progress = bool | Callable[[int, int], object]

__all__ = ["Plan", "Task", "check", "convert", "merge", "shuffle"]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)


def shuffle(
    src: Source,
    dst: Path,
    unit: str = "row",
    seed: int = 0,
    memory: int | str | None = None,
    shards: int = 1,
    overwrite: bool = False,
    block_size: int | None = None,
) -> Plan:
    """Plans to write the samples of `src` to `dst` in shuffled order.

    The order is that of `a.batches(..., order="shuffle", seed=seed, epoch=0)`: it depends only on
    the number of samples and on `seed`, not on `memory`, `shards` or where the tasks run. The data
    is read twice and written twice.

    Args:
        src: A path, a list of paths, a glob or a folder, or what `lowtide.open`, `lowtide.tokens`
            or `lowtide.ragged` returned, or `t.documents`. Open objects keep their dtype, shape and
            format.
        dst: The new file; with `shards` above 1, a new folder with files such as
            `part-00000-of-00064.npy`, which are one array together. For ragged data, a new folder
            with `values.npy` and `offsets.npy`; with shards, `values` and `offsets` are folders.
        unit: What is shuffled: "row" (of an array, or a sample of ragged data), "document" (of
            token files that store them) or "window" (of tokens, which become rows of
            block_size + 1).
        seed: Seed of the order, 0 to 2**64 - 1.
        memory: Most memory of all that runs at the same time here, or of each task elsewhere.
            Default: 256 MiB, or an eighth of the memory that this process may use if that is less.
        shards: Number of files.
        overwrite: Replaces `dst` if it exists, when the new one is complete.
        block_size: Tokens of a window, as for `lowtide.Loader`. Only for unit="window".

    Returns:
        The plan; `plan.run()` carries it out.

    Raises:
        FileExistsError: `dst` exists, and `overwrite` is False.
        OSError: A file of `src` cannot be opened, or `dst` cannot be written.
        FormatError: The bytes of `src` contradict their header.
        ValueError: An argument is invalid, `memory` is too small, there are more shards than
            samples, or `src` has no such unit.
        TypeError: An argument has the wrong type.
    """
    unit = _arguments.word(unit, "unit")
    if isinstance(src, Documents) and unit == "row":
        unit = "document"  # the samples of documents
    if isinstance(src, (Documents, Ragged)) and unit == "window":
        raise ValueError("unit='window' is for tokens: pass what lowtide.tokens returned")
    if block_size is not None:
        block_size = _arguments.integer(block_size, "block_size", 1, _arguments.MAX)
    return Plan(
        _core.plan_shuffle(
            job_source(src),
            _destination(dst),
            unit=unit,
            block_size=block_size or 0,
            seed=_arguments.integer(seed, "seed", 0, 2**64 - 1),
            shards=_arguments.integer(shards, "shards", 1, _arguments.MAX),
            memory_bytes=_arguments.memory_bytes(memory),
            overwrite=_arguments.flag(overwrite, "overwrite"),
        )
    )


def convert(
    src: Source,
    dst: Path,
    format: str,
    memory: int | str | None = None,
    overwrite: bool = False,
    dtype: npt.DTypeLike | None = None,
) -> Plan:
    """Plans to write the data of `src` to `dst` in another format.

    Args:
        src: As for `shuffle`.
        dst: The new file. An index is written beside it if the format has one.
        format: "npy" or "raw", and for tokens and arrays of integers with one axis also "nanogpt",
            "llmc", "megatron", "olmo" or "datatrove". Documents are kept if the new format stores
            them, and `src` does or has an `eot`. No token is added.
        memory: As for `shuffle`.
        overwrite: As for `shuffle`.
        dtype: Integer type of the result. Default: as in `src`. An id that does not fit is a
            ValueError when the plan runs.

    Returns:
        The plan; `plan.run()` carries it out.

    Raises:
        FileExistsError: `dst` exists, and `overwrite` is False.
        OSError: A file of `src` cannot be opened, or `dst` cannot be written.
        FormatError: The bytes of `src` contradict their header.
        ValueError: An argument is invalid, or `format` cannot store this data.
        TypeError: An argument has the wrong type.
    """
    return Plan(
        _core.plan_convert(
            job_source(src),
            _destination(dst),
            format=_arguments.word(format, "format"),
            dtype=_arguments.descr(dtype)[0],
            memory_bytes=_arguments.memory_bytes(memory),
            overwrite=_arguments.flag(overwrite, "overwrite"),
        )
    )


def merge(
    sources: Sequence[Source], dst: Path, memory: int | str | None = None, overwrite: bool = False
) -> Plan:
    """Plans to write several data sets into one file, one after the other, in the same format.

    Args:
        sources: A list of sources, each as for `shuffle`. They must have the same format, dtype and
            row shape.
        dst: The new file. An index is written beside it if the format has one.
        memory: As for `shuffle`. It does not depend on how many documents there are.
        overwrite: As for `shuffle`.

    Returns:
        The plan; `plan.run()` carries it out.

    Raises:
        FileExistsError: `dst` exists, and `overwrite` is False.
        OSError: A file of a source cannot be opened, or `dst` cannot be written.
        FormatError: The sources differ in format, dtype or row shape, or their bytes contradict
            their header.
        ValueError: An argument is invalid.
        TypeError: An argument has the wrong type.
    """
    if not isinstance(sources, (list, tuple)):
        raise TypeError(f"sources must be a list of sources, not {_arguments.told(sources)}")
    if not sources:
        raise ValueError("sources is an empty list: give at least one")
    return Plan(
        _core.plan_merge(
            [job_source(source) for source in sources],
            _destination(dst),
            memory_bytes=_arguments.memory_bytes(memory),
            overwrite=_arguments.flag(overwrite, "overwrite"),
        )
    )


def check(src: Source) -> Plan:
    """Plans to read everything in `src` that can be wrong; `plan.run()` raises at the first fault.

    Args:
        src: As for `shuffle`.

    Returns:
        The plan. It writes nothing.

    Raises:
        OSError: A file cannot be opened.
        FormatError: The bytes contradict their header.
        TypeError: An argument has the wrong type.
    """
    return Plan(_core.plan_check(job_source(src)))


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

        An error ends the run and leaves nothing: neither a result nor files of unfinished work.
        Ctrl-C does the same. After a crash, the same call resumes.

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
        """Removes what unfinished tasks left beside the result. Nobody may be running one.

        `run` does this by itself. Call it if you gave out the tasks yourself and gave up.
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
        from lowtide import _jobs_ray

        return _jobs_ray.run_stage
    if type(on).__module__.partition(".")[0] == "distributed" and hasattr(on, "submit"):
        if on.asynchronous:
            raise ValueError("this dask client is asynchronous: use Client(asynchronous=False)")
        from lowtide import _jobs_dask

        return _jobs_dask.run_stage
    raise TypeError(
        "on must be None (here), the module ray or a dask.distributed.Client, not "
        f"{_arguments.told(on)}"
    )


def _destination(dst: Any) -> bytes:
    if not isinstance(dst, (str, bytes, os.PathLike)):
        raise TypeError(f"dst must be a str or an os.PathLike, not {_arguments.told(dst)}")
    (name,), _ = _arguments.path_list(dst)
    return os.path.abspath(name)
