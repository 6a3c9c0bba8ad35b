"""Draws lines over a logarithmic x axis: panels in one SVG file, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 880, 430
TOP, BOTTOM, LEFT, RIGHT = 62, 338, 82, 70  # of the plot inside a panel
LEGEND_Y, LEGEND_STEP, LEGEND_X = 390, 24, (20, 335, 590)
NEAR = 14  # pixels: a second number as near as this would cover the first
GIB_MIB = 1024
MARKS = {
    1: "M-4 -4h8v8h-8z",
    2: "M0 -5l5 9h-10z",
    3: "M0 -5l5 5l-5 5l-5 -5z",
    4: "M-7 -6h14l-7 13z",
}
STYLE = """
.chart {
  --ink: #1b1f24; --faint: #57606a; --rule: #d8dee4; --ground: #ffffff; --limit: #b00020;
  font: 14px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
@media (prefers-color-scheme: dark) {
  .chart { --ink: #e6edf3; --faint: #9aa4af; --rule: #30363d; --ground: #0d1117; --limit: #ff7b86; }
}
.ground { fill: var(--ground); }
text { fill: var(--ink); }
.headline { font-size: 16px; font-weight: 600; }
.tick { fill: var(--faint); font-size: 13px; }
.value { font-size: 13px; font-weight: 600; }
.bold { font-weight: 700; }
.end { text-anchor: end; }
.mid { text-anchor: middle; }
.grid { stroke: var(--rule); }
.limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 9 4; fill: none; }
.line { stroke-width: 2.5; stroke-linejoin: round; }
.look-0 { stroke: #0072b2; fill: #0072b2; }
.look-1 { stroke: #d55e00; fill: #d55e00; }
.look-2 { stroke: #e69f00; fill: #e69f00; stroke-dasharray: 9 5; }
.look-3 { stroke: #cc79a7; fill: #cc79a7; stroke-dasharray: 2.5 4; }
.look-4 { stroke: #009e73; fill: #009e73; }
.line.look-0 { stroke-width: 4.5; }
.line.look-4 { stroke-width: 6.5; stroke-opacity: 0.6; }
.mark { stroke-dasharray: none; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
  .look-0 { stroke: #56b4e9; fill: #56b4e9; }
}
.line { fill: none; }
""".strip()


@dataclass(frozen=True)
class Line:
    """The points of one method; look 0 is that of Lowtide."""

    label: str
    look: int
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """Lines over one x axis. `show` writes a value; a limit is a line across."""

    title: str
    lines: list[Line]
    ticks: list[float]
    logarithmic: bool
    show: Callable[[float], str]
    limit: tuple[float, str] | None = None


def size_text(mib: float) -> str:
    """A size in MiB as people write it: "0", "70 MiB", "1.5 GiB"."""
    if mib < GIB_MIB:
        return f"{mib:.0f} MiB" if mib else "0"
    return f"{mib / GIB_MIB:.3g} GiB"


def rate_text(rate: float) -> str:
    """A rate as an axis shows it: 130, 1.3 k, 2 M."""
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if rate >= 0.9995 * scale:
            return (
                f"{rate / scale:.{0 if rate >= 9.95 * scale else 1}f}".removesuffix(".0")
                + f" {unit}"
            )
    return f"{rate:.0f}"


def size_ticks(most_mib: float) -> list[float]:
    """Multiples of a power of two, from 0 to at least the largest size."""
    step = 2.0 ** math.ceil(math.log2(max(most_mib, 1) / 4))
    return [step * place for place in range(math.ceil(most_mib / step) + 1)]


def rate_ticks(rates: list[float]) -> list[float]:
    """Powers of ten around all rates; one a little above the last of them needs no further one."""
    low, high = math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)) - 0.1)
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def svg(panels: list[Panel], about: str) -> str:
    """An SVG file with panels side by side and one legend; `about` is what a screen reader says."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width="{WIDTH}" '
        f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-label="{escape(about)}">',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
    ]
    width = WIDTH / len(panels)
    for place, panel in enumerate(panels):
        parts += [
            f'<g transform="translate({place * width:.0f} 0)">',
            *_panel(panel, width),
            "</g>",
        ]
    return "\n".join([*parts, *_legend(panels[0].lines), "</svg>"]) + "\n"


def _panel(panel: Panel, width: float) -> list[str]:
    sizes = sorted({x for line in panel.lines for x, _ in line.points})
    low, high = math.log2(sizes[0]), math.log2(sizes[-1])
    left, right = LEFT, width - RIGHT

    def across(size: float) -> float:
        return left + (right - left) * (math.log2(size) - low) / ((high - low) or 1)

    def down(value: float) -> float:
        first, last = panel.ticks[0], panel.ticks[-1]
        share = (value - first) / (last - first)
        if panel.logarithmic:
            share = math.log(value / first) / math.log(last / first)
        return BOTTOM - (BOTTOM - TOP) * share

    parts = [f'<text class="headline" x="12" y="30">{escape(panel.title)}</text>']
    for tick in panel.ticks:
        y = down(tick)
        parts.append(f'<path class="grid" d="M{left - 14:.0f} {y:.1f}H{right + 14:.0f}"/>')
        label = escape(panel.show(tick))
        parts.append(f'<text class="tick end" x="{left - 20:.0f}" y="{y + 4.5:.1f}">{label}</text>')
    for size in sizes:
        label = f'x="{across(size):.1f}" y="{BOTTOM + 22}">{size_text(size)}</text>'
        parts.append(f'<text class="tick mid" {label}')
    if panel.limit:
        y = down(panel.limit[0])
        parts.append(f'<path class="limit" d="M{left - 14:.0f} {y:.1f}H{right + 14:.0f}"/>')
        text = escape(panel.limit[1])
        parts.append(
            f'<text class="tick mid" x="{(left + right) / 2:.0f}" y="{y - 8:.1f}">{text}</text>'
        )
    for line in reversed(panel.lines):
        parts += _line(line, [(across(x), down(y)) for x, y in line.points])
    return parts + _values(panel, down, right)


def _line(line: Line, points: list[tuple[float, float]]) -> list[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    marks = [_mark(line.look, x, y) for x, y in points]
    return [f'<path class="line look-{line.look}" d="M{path}"/>', *marks]


def _mark(look: int, x: float, y: float) -> str:
    """A circle, square, triangle or diamond, so that lines differ without their colours."""
    if look == 0:
        return f'<circle class="mark look-0" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    return (
        f'<path class="mark look-{look}" transform="translate({x:.1f} {y:.1f})" d="{MARKS[look]}"/>'
    )


def _values(panel: Panel, down: Callable[[float], float], right: float) -> list[str]:
    """The value of each line at the right end, unless it would cover another one."""
    parts: list[str] = []
    used: list[float] = []
    end = max(line.points[-1][0] for line in panel.lines)
    for line in panel.lines:
        size, value = line.points[-1]
        y = down(value)
        if size == end and all(abs(y - other) >= NEAR for other in used):
            used.append(y)
            label = f'x="{right + 12:.0f}" y="{y + 4.5:.1f}">{escape(panel.show(value))}</text>'
            parts.append(f'<text class="value" {label}')
    return parts


def _legend(lines: list[Line]) -> list[str]:
    parts = []
    for place, line in enumerate(lines):
        x = LEGEND_X[place % len(LEGEND_X)]
        y = LEGEND_Y + place // len(LEGEND_X) * LEGEND_STEP
        parts.append(f'<path class="line look-{line.look}" d="M{x} {y}h34"/>')
        parts.append(_mark(line.look, x + 17, y))
        bold = ' class="bold"' if line.look == 0 else ""
        parts.append(f'<text{bold} x="{x + 44}" y="{y + 5}">{escape(line.label)}</text>')
    return parts
