"""Memory curves of one method as inline SVG: no script, no network, colours from the page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

MIB = 1 << 20
WIDTH, HEIGHT = 400, 240
LEFT, RIGHT, TOP, BOTTOM = 54, 136, 12, 38
LABEL_STEP = 16
MAX_POINTS = 240

Limit = tuple[float, str]  # bytes, and what the dashed line says


@dataclass(frozen=True)
class Curve:
    """One line: its CSS class, its name, and points of (seconds, bytes)."""

    style: str
    name: str
    points: list[tuple[float, float]]

    @property
    def peak(self) -> float:
        return max(value for _, value in self.points)


@dataclass(frozen=True)
class Scale:
    """What one panel and its neighbours share, so that heights can be compared."""

    seconds: float
    high_bytes: float
    step_bytes: float

    def x(self, seconds: float) -> float:
        return LEFT + min(seconds / self.seconds, 1) * (WIDTH - LEFT - RIGHT)

    def y(self, size: float) -> float:
        return HEIGHT - BOTTOM - size / self.high_bytes * (HEIGHT - TOP - BOTTOM)


def nice_step(high: float, parts: int = 4) -> float:
    """A round distance between grid lines, so that about `parts` of them reach `high`."""
    power = 1.0
    while power * 10 * parts <= high:
        power *= 10
    while power * parts > high:
        power /= 10
    return next(power * k for k in (1, 2, 2.5, 5, 10) if power * k * parts * 1.2 >= high)


def thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most about MAX_POINTS points; the lowest and highest of each group stay."""
    group = max(1, -(-len(points) * 2 // MAX_POINTS))
    kept: list[tuple[float, float]] = []
    for first in range(0, len(points), group):
        some = points[first : first + group]
        ends = {min(some, key=lambda p: p[1]), max(some, key=lambda p: p[1])}
        kept += sorted(ends)
    return kept


def _spread(wanted: list[float]) -> list[float]:
    """Label heights as near to the wanted ones as possible without overlap; order is kept."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    placed = list(wanted)
    for before, place in zip([None, *order], order, strict=False):
        if before is not None:
            placed[place] = max(placed[place], placed[before] + LABEL_STEP)
    over = max(placed, default=0.0) - (HEIGHT - BOTTOM + 4)
    if over > 0:
        limit = HEIGHT - BOTTOM + 4.0
        for place in reversed(order):
            placed[place] = min(placed[place], limit)
            limit = placed[place] - LABEL_STEP
    return placed


def _grid(scale: Scale) -> list[str]:
    out = []
    right = WIDTH - RIGHT
    level = 0.0
    while level <= scale.high_bytes * 1.001:
        y = scale.y(level)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        text = f"{level / MIB:,.0f}"
        out.append(
            f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
        level += scale.step_bytes
    step = nice_step(scale.seconds)
    at = 0.0
    while at <= scale.seconds * 1.001:
        x = scale.x(at)
        out.append(
            f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}"'
            f' text-anchor="middle">{at:g}</text>'
        )
        at += step
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(
        f'<text class="axis" transform="rotate(-90 12 {middle})" x="12" y="{middle}"'
        ' text-anchor="middle">MiB</text>'
    )
    out.append(
        f'<text class="axis" x="{(LEFT + right) / 2}" y="{HEIGHT - 6}"'
        ' text-anchor="middle">seconds</text>'
    )
    return out


def _limit(scale: Scale, size: float, name: str) -> str:
    y = scale.y(size)
    right = WIDTH - RIGHT
    return (
        f'<line class="limit" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="limit-name" x="{right - 4}" y="{y - 5:.1f}" text-anchor="end">'
        f"{escape(name)}</text>"
    )


def draw(curves: list[Curve], scale: Scale, limits: list[Limit], title: str) -> str:
    """One panel. Each line carries its name and its peak at its right end."""
    known = [curve for curve in curves if curve.points]
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    parts += _grid(scale)
    parts += [_limit(scale, *limit) for limit in limits]
    for curve in known:
        way = " ".join(f"{scale.x(at):.1f},{scale.y(size):.1f}" for at, size in thin(curve.points))
        parts.append(f'<polyline class="line {curve.style}" points="{way}"/>')
    heights = _spread([scale.y(curve.points[-1][1]) + 4 for curve in known])
    for curve, height in zip(known, heights, strict=True):
        x = scale.x(curve.points[-1][0])
        y = scale.y(curve.points[-1][1])
        label_x = WIDTH - RIGHT + 12
        parts.append(
            f'<line class="lead {curve.style}" x1="{x:.1f}" y1="{y:.1f}"'
            f' x2="{label_x - 3}" y2="{height - 4:.1f}"/>'
            f'<circle class="end {curve.style}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
            f'<text class="name {curve.style}" x="{label_x}" y="{height:.1f}">'
            f"{escape(curve.name)} {curve.peak / MIB:,.0f}</text>"
        )
    if not known:
        parts.append(f'<text class="axis" x="{LEFT + 12}" y="{HEIGHT / 2}">unknown</text>')
    return "".join([*parts, "</svg>"])
