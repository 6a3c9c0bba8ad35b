"""The progress of a job: a bar on a terminal, one line per task elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lowtide import _core

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_S = 1.0  # a shorter job draws no bar
_EACH_S = 0.1
_MOST_BAR = 40


class Standing(NamedTuple):
    """How far a job has come."""

    done: int  # bytes, or units of `unit_bytes`
    total: int
    stage: str
    tasks_done: int = 0  # of this stage
    tasks: int = 0
    unit_bytes: int = 1


class Shown(Protocol):
    """Shows where a job stands, and stops showing it."""

    def show(self, at: Standing) -> None: ...

    def close(self) -> None: ...


def shown(progress: Any, title: str, tasks: bool = True) -> Shown:
    """Returns an object that shows the progress of a job, in tasks or in rows. Raises TypeError."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        kind = type(progress).__name__
        raise TypeError(f"progress must be None, a bool or a callable (done, total), not {kind}")
    if callable(progress):
        return _Called(progress)
    if progress is not False and _is_terminal():
        return _Bar(title)
    if not progress:
        return _Nothing()
    return _Lines(title) if tasks else _Tenths(title)


def _is_terminal() -> bool:
    try:
        on_terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # no stderr, or a closed one
        return False
    return on_terminal and os.environ.get("TERM", "dumb") != "dumb"


class _Nothing:
    def show(self, at: Standing) -> None:
        pass

    def close(self) -> None:
        pass


class _Called:
    """Calls the user's function when something has changed, and once with everything done."""

    def __init__(self, call: Callable[[int, int], object]) -> None:
        self._call = call
        self._last = (-1, -1)

    def show(self, at: Standing) -> None:
        if (at.done, at.total) != self._last:
            self._last = (at.done, at.total)
            self._call(at.done, at.total)

    def close(self) -> None:
        pass


class _Lines:
    """One line per finished task, for logs."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._start = time.monotonic()
        self._seen: dict[str, int] = {}  # stage: tasks that were told of, or done before

    def show(self, at: Standing) -> None:
        first = self._seen.setdefault(at.stage, 0)
        for task in range(first, at.tasks_done):
            noun = "task" if at.tasks == 1 else "tasks"
            text = f"{self._title}: {at.stage}: {task + 1} of {at.tasks} {noun} done"
            print(f"{text}, {_words(at, self._start)}", file=sys.stderr, flush=True)
        self._seen[at.stage] = at.tasks_done

    def close(self) -> None:
        pass


class _Tenths:
    """One line per tenth of the rows, for logs."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._start = time.monotonic()
        self._seen = 0

    def show(self, at: Standing) -> None:
        tenths = 10 * at.done // max(at.total, 1)
        if tenths > self._seen:
            self._seen = tenths
            text = f"{self._title}: {at.done} of {at.total} {at.stage}"
            print(f"{text}, {_words(at, self._start)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class _Bar:
    """One line that is rewritten, from the first second on, and removed at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._start = time.monotonic()
        self._next = self._start + _FIRST_S
        self._drawn = False

    def show(self, at: Standing) -> None:
        now = time.monotonic()
        if now < self._next or not at.total:
            return
        self._next = now + _EACH_S
        self._drawn = True
        words = _words(at, self._start)
        columns = shutil.get_terminal_size().columns
        title = f"{self._title}: {at.stage}"
        room = min(columns - len(title) - len(words) - 6, _MOST_BAR)
        full, empty = ("█", "░") if "utf" in (sys.stderr.encoding or "").lower() else ("#", ".")
        filled = at.done * room // at.total if room > 8 else 0
        bar = full * filled + empty * (room - filled) + "  " if room > 8 else ""
        line = f"{title}  {bar}{words}"
        print(f"\r{line[: columns - 1]}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _words(at: Standing, start: float) -> str:
    """Bytes, rate and time left."""
    seconds = time.monotonic() - start
    done, total = at.done * at.unit_bytes, at.total * at.unit_bytes
    text = f"{_core.format_bytes(done)} of {_core.format_bytes(total)}"
    if at.done and seconds > 0:
        text += f"  {_core.format_bytes(int(done / seconds))}/s"
        if at.done < at.total:
            text += f"  {int(seconds * (at.total - at.done) / at.done)} s left"
    return text
