"""Records where memory goes (heap, mapped files, page tables, page cache), with a verdict."""

from __future__ import annotations

import functools
import html
import operator
import os
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from lowtide import _core
from lowtide._arguments import path_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from typing_extensions import Self

    Path = str | bytes | os.PathLike[Any]

_Function = TypeVar("_Function", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Verdict:
    """Whether memory leaks, and why. `str(verdict)` is the headline.

    Attributes:
        kind: "flat", "heap-leak", "mapped-files", "page-cache", "page-tables", "shared-twice" or
            "too-short".
        headline: The verdict in one sentence.
        evidence: The numbers behind it.
        unknown: What could not be measured, and why.
        advice: What to do.
    """

    kind: str
    headline: str
    evidence: tuple[str, ...]
    unknown: tuple[str, ...]
    advice: tuple[str, ...]

    def __str__(self) -> str:
        return self.headline


class Profile:
    """Records the memory of a process tree from a separate thread.

    Use it as a context manager, `with lt.profile() as p: ...`, or as a decorator: `@lt.profile`
    records each call of a function, prints a summary to stderr, and keeps the last recording as
    `function.profile`. Sizes are in bytes; None means that a figure could not be measured. In a
    notebook the object displays its plot.
    """

    def __init__(
        self,
        *,
        pid: int | None = None,
        interval: float | None = None,
        children: bool = True,
        trace: Path | None = None,
        watch: Path | Sequence[Path] = (),
    ) -> None:
        """Prepares a recording; `start` or `with` begins it.

        Args:
            pid: Root of the process tree to record. Default: this process.
            interval: Seconds between readings, 0.001 to 3600. Default: adapts itself and stays
                below 1 % of one core.
            children: Whether to include the processes that it starts.
            trace: File to write during the recording. It stays readable if this process is killed.
            watch: One or more files whose page cache is recorded even if no process maps them.

        Raises:
            ValueError: An argument is out of range.
            TypeError: An argument has the wrong type.
        """
        self._options: tuple[Any, ...] = (
            0 if pid is None else _process(pid),
            0.0 if interval is None else _seconds(interval),
            bool(children),
            b"" if trace is None else _name(trace),
            [],
            path_list(watch)[0] if watch else [],
        )
        self._running: _core.Profile | None = None
        self._seen: _core.Recording | None = None

    @classmethod
    def load(cls, path: Path) -> Profile:
        """Loads a finished recording.

        Args:
            path: A `.trace` or `.json` file that Lowtide wrote, or a `.dat` of memory_profiler.

        Returns:
            A stopped profile.

        Raises:
            OSError: The file cannot be read.
            FormatError: The file is not a recording, or a newer Lowtide wrote it.
        """
        loaded = cls()
        loaded._seen = _core.Recording.load(_name(path))
        return loaded

    def start(self) -> Self:
        """Starts recording and returns this profile; a stopped one discards what it recorded.

        Raises:
            RuntimeError: It is already running.
            OSError: The process does not exist, or the trace cannot be written.
        """
        if self._running is not None:
            raise RuntimeError("this profile is already running")
        self._seen = None
        self._running = _core.Profile.start(*self._options)
        return self

    def stop(self) -> None:
        """Stops recording and keeps what was recorded; does nothing if it is not running.

        Raises:
            OSError: The trace could not be written completely. The recording itself is kept.
        """
        running, self._running = self._running, None
        if running is None:
            return
        try:
            running.stop()
        finally:
            self._seen = running.recording()

    def mark(self, text: str) -> None:
        """Marks the current moment on the plot.

        Args:
            text: Label of the mark.

        Raises:
            RuntimeError: The profile is not running.
        """
        running = self._running
        if running is None:
            raise RuntimeError("this profile is not running")
        running.mark(text)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __call__(self, function: _Function) -> _Function:
        """Wraps `function` so that each call is recorded, except calls inside such a call."""
        inside = threading.local()

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "calls", False):
                return function(*args, **kwargs)
            seen = Profile()
            seen._options = self._options
            seen.start()  # outside the try: if this fails, there is no summary to print
            inside.calls = True
            try:
                return function(*args, **kwargs)
            finally:
                inside.calls = False
                watched.profile = seen  # type: ignore[attr-defined]
                try:
                    seen.stop()
                finally:
                    print(f"{function.__qualname__}: {seen.summary()}", file=sys.stderr)

        return watched  # type: ignore[return-value]

    @property
    def peak(self) -> dict[str, int | None]:
        """Highest sum over the process tree of each kind of memory, in bytes.

        Keys: `rss`, `anon`, `file`, `shmem`, `page_tables`, `page_cache` (of the files that were
        mapped or watched) and `group_usage` (of the cgroup).
        """
        return self._recording.peak()

    @property
    def at_start(self) -> dict[str, int | None]:
        """Memory after the start-up, which is the first tenth of the run; keys as in `peak`."""
        return self._recording.start()

    @property
    def at_end(self) -> dict[str, int | None]:
        """Memory before the processes began to end, or in the last reading; keys as in `peak`."""
        return self._recording.end()

    @property
    def growth(self) -> dict[str, int | None]:
        """`at_end` minus `at_start`; keys as in `peak`, without `group_usage`."""
        return self._recording.growth()

    @property
    def verdict(self) -> Verdict:
        """Whether memory leaks, and why."""
        kind, headline, *lists = self._recording.verdict()
        return Verdict(kind, headline, *(tuple(entries) for entries in lists))

    @property
    def seconds(self) -> float:
        """Length of the recording in seconds."""
        return self._recording.seconds

    @property
    def readings(self) -> int:
        """Number of readings kept."""
        return self._recording.readings

    @property
    def cost(self) -> float:
        """Share of one core that the recording took."""
        return self._recording.cost

    def summary(self) -> str:
        """Returns the peak and the verdict in one line."""
        rss = self.peak["rss"]
        peak = "unknown" if rss is None else _core.format_bytes(rss)
        return f"peak {peak} in {self.seconds:.1f} s. {self.verdict}"

    def plot(
        self,
        path: Path | None = None,
        *,
        memory: int = 0,
        seconds: float = 0.0,
        small: bool = False,
    ) -> str:
        """Draws the recording as SVG.

        Args:
            path: File to write as well; its name must end in `.svg`. None: writes nothing.
            memory: Smallest range of the memory axis in bytes, to make plots comparable.
            seconds: Smallest range of the time axis in seconds.
            small: If True, draws memory only, 440 x 260 units, to place beside other plots.

        Returns:
            The SVG text.

        Raises:
            ValueError: `path` does not end in `.svg`.
            OSError: The file cannot be written.
        """
        if path is not None:
            name = _name(path)
            if not name.lower().endswith(b".svg"):
                raise ValueError(
                    f"plot writes .svg files, not {os.fsdecode(name)!r}: use save for other formats"
                )
            self._recording.save(name, memory, seconds, small)
        return self._recording.svg(memory, seconds, small)

    def save(self, path: Path) -> None:
        """Writes the recording to a file.

        Args:
            path: File to write. Its suffix selects the format: `.html`, `.svg`, `.json`, `.dat`
                (mprof) or `.trace`.

        Raises:
            ValueError: The suffix is none of these.
            OSError: The file cannot be written.
        """
        self._recording.save(_name(path))

    def json(self) -> str:
        """Returns the whole recording as JSON text; docs/profile.md lists the fields."""
        return self._recording.json()

    def _repr_html_(self) -> str:
        seen = self._recording_or_none()
        return f"<p>{html.escape(repr(self))}</p>" if seen is None else seen.svg()

    def __repr__(self) -> str:
        if self._running is not None:
            return "<lowtide.Profile running>"
        if self._seen is None:
            return "<lowtide.Profile not started>"
        return f"<lowtide.Profile {self.summary()}>"

    def _recording_or_none(self) -> _core.Recording | None:
        return self._seen if self._running is None else self._running.recording()

    @property
    def _recording(self) -> _core.Recording:
        seen = self._recording_or_none()
        if seen is None:
            raise RuntimeError("this profile has not been started: use `with` or call start()")
        return seen


@overload
def profile(function: _Function, /) -> _Function: ...
@overload
def profile(
    *,
    pid: int | None = ...,
    interval: float | None = ...,
    children: bool = ...,
    trace: Path | None = ...,
    watch: Path | Sequence[Path] = ...,
) -> Profile: ...
def profile(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Records memory: `with lt.profile() as p: ...`, or `@lt.profile` above a function.

    Args:
        function: Function to record, when used as a decorator without arguments.
        **options: Keyword arguments of `Profile`:

            - `pid`: root of the process tree to record. Default: this process.
            - `interval`: seconds between readings. Default: adapts itself and stays below 1 % of
              one core.
            - `children`: whether to include the processes that it starts. Default: True.
            - `trace`: file to write during the recording; it survives a kill of this process.
            - `watch`: one or more files whose page cache is recorded even if no process maps them.

    Returns:
        A `Profile` that has not started, or the wrapped function.

    Raises:
        ValueError: An option is out of range.
        TypeError: An option is unknown or has the wrong type.
    """
    watching = Profile(**options)
    return watching if function is None else watching(function)


def _name(path: Any) -> bytes:
    return path_list([path])[0][0]


def _process(pid: Any) -> int:
    number = operator.index(pid)
    if number <= 0:
        raise ValueError(f"pid must be above 0, not {number}")
    return number


def _seconds(interval: Any) -> float:
    seconds = float(interval)
    if not 0.001 <= seconds <= 3600:
        raise ValueError(f"interval must be from 0.001 to 3600 seconds, not {interval!r}")
    return seconds
