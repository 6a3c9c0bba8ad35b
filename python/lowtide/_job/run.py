"""Jobs that are planned and run here, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._job.plan import Progress
    from lowtide._job.source import Path, Source


def shuffle(
    src: Source,
    dst: Path,
    unit: str = "row",
    seed: int = 0,
    memory: int | str | None = None,
    shards: int = 1,
    overwrite: bool = False,
    block_size: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Writes the samples of `src` to `dst` in shuffled order: `lowtide.jobs.shuffle(...).run()`.

    Args:
        src: What to read, as for `lowtide.jobs.shuffle`; so are the other arguments.
        dst: The new file; a folder if there are several shards.
        unit: "row", "document" or "window".
        seed: Seed of the order.
        memory: Most memory to hold, in bytes or as text such as "64MiB".
        shards: Number of files.
        overwrite: Replaces `dst` if it exists.
        block_size: Tokens of a window.
        progress: As for `lowtide.jobs.Plan.run`.

    Raises:
        OSError, FormatError, ValueError, TypeError: As `lowtide.jobs.shuffle` and
            `lowtide.jobs.Plan.run`.
    """
    from lowtide import jobs

    plan = jobs.shuffle(src, dst, unit, seed, memory, shards, overwrite, block_size)
    plan.run(progress=progress)


def convert(
    src: Source,
    dst: Path,
    format: str,
    memory: int | str | None = None,
    overwrite: bool = False,
    dtype: npt.DTypeLike | None = None,
    progress: Progress | None = None,
) -> None:
    """Writes the data of `src` to `dst` in another format: `lowtide.jobs.convert(...).run()`.

    Args:
        src: What to read, as for `lowtide.jobs.convert`; so are the other arguments.
        dst: The new file.
        format: Format of the new file.
        memory: Most memory to hold, in bytes or as text such as "64MiB".
        overwrite: Replaces `dst` if it exists.
        dtype: Integer type of the result.
        progress: As for `lowtide.jobs.Plan.run`.

    Raises:
        OSError, FormatError, ValueError, TypeError: As `lowtide.jobs.convert` and
            `lowtide.jobs.Plan.run`.
    """
    from lowtide import jobs

    jobs.convert(src, dst, format, memory, overwrite, dtype).run(progress=progress)


def merge(
    sources: Sequence[Source],
    dst: Path,
    memory: int | str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Writes several data sets into one file: `lowtide.jobs.merge(...).run()`.

    Args:
        sources: What to read, in this order, as for `lowtide.jobs.merge`; so are the other
            arguments.
        dst: The new file.
        memory: Most memory to hold, in bytes or as text such as "64MiB".
        overwrite: Replaces `dst` if it exists.
        progress: As for `lowtide.jobs.Plan.run`.

    Raises:
        OSError, FormatError, ValueError, TypeError: As `lowtide.jobs.merge` and
            `lowtide.jobs.Plan.run`.
    """
    from lowtide import jobs

    jobs.merge(sources, dst, memory, overwrite).run(progress=progress)
