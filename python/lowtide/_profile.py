"""Where memory went, over time: heap, mapped files, page tables, page cache; with a verdict."""

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
    """Is it a leak? `str(verdict)` is the headline.

    kind: "flat", "heap-leak", "mapped-files", "page-cache", "page-tables", "shared-twice" or
        "too-short".
    evidence, unknown, advice: the numbers it rests on, what could not be seen and why, what to do.
    """

    kind: str
    headline: str
    evidence: tuple[str, ...]
    unknown: tuple[str, ...]
    advice: tuple[str, ...]

    def __str__(self) -> str:
        return self.headline


class Profile:
    """Memory watched from a thread of its own: `with lt.profile() as p: ...`.

    Also a decorator: `@lt.profile` watches each call of a function, says on stderr what it saw, and
    keeps the last one as `function.profile`. Sizes are bytes; None is what could not be measured.
    In a notebook the object shows its picture.
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
        """Nothing is watched before `start` or `with`. Arguments as those of `profile`."""
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
        """A finished one from a file: a .trace or .json of ours, or memory_profiler's .dat.

        Raises OSError, FormatError.
        """
        loaded = cls()
        loaded._seen = _core.Recording.load(_name(path))
        return loaded

    def start(self) -> Self:
        """Begins to watch; a profile that was stopped begins anew."""
        if self._running is not None:
            raise RuntimeError("this profile is running already")
        self._seen = None
        self._running = _core.Profile.start(*self._options)
        return self

    def stop(self) -> None:
        """Ends the watching; what was seen stays. Again: nothing happens.

        Raises OSError where the trace could not be written to its end; what was seen stays.
        """
        running, self._running = self._running, None
        if running is None:
            return
        try:
            running.stop()
        finally:
            self._seen = running.recording()

    def mark(self, text: str) -> None:
        """A line on the curve, now, with `text` beside it."""
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
        """`function`, watched in each call that is not inside another one."""
        inside = threading.local()

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "calls", False):
                return function(*args, **kwargs)
            seen = Profile()
            seen._options = self._options
            seen.start()  # of what cannot begin there is nothing to say
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
        """The most at one moment, over the tree: rss, anon, file, shmem, page_tables, ...

        page_cache is that of the files which were mapped or watched, group_usage the cgroup's.
        """
        return self._recording.peak()

    @property
    def at_start(self) -> dict[str, int | None]:
        """After the start-up, which is the first tenth of the run; keys as in `peak`."""
        return self._recording.start()

    @property
    def at_end(self) -> dict[str, int | None]:
        """The last reading before the processes ended, or simply the last; keys as in `peak`."""
        return self._recording.end()

    @property
    def growth(self) -> dict[str, int | None]:
        """The end minus the start; keys as in `peak`, without group_usage."""
        return self._recording.growth()

    @property
    def verdict(self) -> Verdict:
        """What the curve means, in words."""
        kind, headline, *lists = self._recording.verdict()
        return Verdict(kind, headline, *(tuple(entries) for entries in lists))

    @property
    def seconds(self) -> float:
        """How long it watched."""
        return self._recording.seconds

    @property
    def readings(self) -> int:
        """How many readings were kept."""
        return self._recording.readings

    @property
    def cost(self) -> float:
        """The share of one core that the watching took."""
        return self._recording.cost

    def summary(self) -> str:
        """One line: the peak and the verdict."""
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
        """The picture as SVG text; with `path` (.svg) it is also written there.

        memory, seconds: how far the axes reach at least (bytes), so that pictures compare.
        small: 440 x 260 units, the memory alone, to stand beside others.
        """
        if path is not None:
            name = _name(path)
            if not name.lower().endswith(b".svg"):
                raise ValueError(
                    f"plot writes .svg, not {os.fsdecode(name)!r}: use save for others"
                )
            self._recording.save(name, memory, seconds, small)
        return self._recording.svg(memory, seconds, small)

    def save(self, path: Path) -> None:
        """Writes what was seen, by suffix: .html, .svg, .json, .dat (mprof) or .trace.

        Raises ValueError for another suffix, OSError where it cannot be written.
        """
        self._recording.save(_name(path))

    def json(self) -> str:
        """Everything as JSON text; docs/profile.md says what is in it."""
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
            raise RuntimeError("this profile has not been started: use it in a `with`")
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
    """Watches memory: `with lt.profile() as p: ...`, or `@lt.profile` above a function.

    pid: the root of the processes to watch (default: this one). children: those too that it starts.
    interval: seconds between readings; by default it adapts, and stays below 1 % of one core.
    trace: a file that is written while it runs, and readable even if this process is killed.
    watch: a file or several, of which the page cache is told though nobody maps them.
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
