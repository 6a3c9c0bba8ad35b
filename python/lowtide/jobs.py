"""Shuffles, converts and merges data bigger than memory: here, or as tasks on a cluster.

```python
plan = lt.jobs.shuffle("m.npy", "shuffled.npy", seed=1, memory="1GiB")
plan.run()        # here, on threads
plan.run(ray)     # as Ray tasks
plan.run(client)  # as futures of a dask.distributed.Client
```

A plan consists of stages of tasks. The tasks of a stage are independent of each other, and a stage
may begin when the one before it is done. A task can be run again after any failure; a finished task
is recognised and skipped. `lowtide.shuffle`, `convert` and `merge` plan and run in one call.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lowtide import _arguments, _core
from lowtide._data.documents import Documents
from lowtide._data.ragged import Ragged
from lowtide._job.plan import Plan, Task
from lowtide._job.source import job_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._job.source import Path, Source

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
            `part-00000-of-00064.npy`, which together form one array. For ragged data, a new folder
            with `values.npy` and `offsets.npy`; with shards, `values` and `offsets` are folders.
        unit: What is shuffled: "row" (of an array, or a sample of ragged data), "document" (of
            token files that store them) or "window" (of tokens, which become rows of
            block_size + 1).
        seed: Seed of the order, 0 to 2**64 - 1.
        memory: Most memory for all tasks that run here together, or for each task elsewhere.
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
        FormatError: The bytes of a source contradict their header.
        ValueError: The sources differ in format, dtype or row shape, or an argument is invalid.
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
    """Plans to read `src` and to check all of it; `plan.run()` raises at the first fault.

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


def _destination(dst: Any) -> bytes:
    if not isinstance(dst, (str, bytes, os.PathLike)):
        raise TypeError(f"dst must be a str or an os.PathLike, not {_arguments.told(dst)}")
    (name,), _ = _arguments.path_list(dst)
    if not name:
        raise ValueError("dst is empty: name the result")
    return name if _core.is_address(name) else os.path.abspath(name)
