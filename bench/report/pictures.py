"""The pictures of the docs, drawn from results."""

from __future__ import annotations

from pathlib import Path

from chart import Line, Panel, rate_text, rate_ticks, size_text, size_ticks, svg
from values import QUANTITIES, Quantity, Result

LOOKS = ("lowtide", "memmap", "again", "dataloader", "h5py")  # in the order of the legend
MEMORY, RATE = QUANTITIES["memory"], QUANTITIES["rows"]


def drawn(results: dict[str, Result]) -> dict[Path, str]:
    """The text of each picture by its path, relative to the root."""
    return {Path("docs/scale.svg"): scale(results["scale"])} if "scale" in results else {}


def scale(result: Result) -> str:
    """Memory and rate over the size of the file."""
    memory, rates = _lines(result, MEMORY), _lines(result, RATE)
    limit = float(result.facts["limit_mib"])
    every = [rate for line in rates for _, rate in line.points]
    room = (limit, f"memory limit: {size_text(limit)}")
    panels = [
        Panel(
            "Memory held, by size of the file",
            memory,
            size_ticks(limit * 1.1),
            False,
            size_text,
            room,
        ),
        Panel("Rows per second", rates, rate_ticks(every), True, rate_text),
    ]
    return svg(panels, _about(memory, rates))


def _lines(result: Result, quantity: Quantity) -> list[Line]:
    """One line per method, without the sizes at which it failed."""
    found = []
    for look, reader in enumerate(LOOKS):
        points = []
        for size in result.facts["sizes_mib"]:
            key = f"{size}-{reader}"
            values = result.values(key, quantity) if key in result.rounds else []
            if values:
                points.append((float(size), quantity.pick(values)))
        if points:
            found.append(Line(result.labels[f"{points[0][0]:.0f}-{reader}"], look, points))
    return found


def _about(memory: list[Line], rates: list[Line]) -> str:
    size = size_text(memory[0].points[-1][0])
    parts = [
        f"{held.label} holds {size_text(held.points[-1][1])} and reads "
        f"{rate_text(rate.points[-1][1])} rows per second"
        for held, rate in zip(memory, rates)
    ]
    return f"Memory and rate as a file grows. At {size}: {'; '.join(parts)}."
