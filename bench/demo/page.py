"""The demo's HTML page: one file that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from chart import HEIGHT, LEFT, MIB, WIDTH, Curve, Limit, Scale, draw, nice_step

STYLE = """
:root { color-scheme: light dark; --paper:#fcfcfb; --ink:#1c1e21; --soft:#5f6670; --line:#e2e4e7;
  --card:#ffffff; --heap:#2563c9; --mapped:#d9480f; --cache:#0f8a6c; --ours:#eef4fd; }
@media (prefers-color-scheme: dark) { :root { --paper:#15171a; --ink:#e8eaed; --soft:#9aa3ad;
  --line:#30353b; --card:#1c1f23; --heap:#6ea8ff; --mapped:#ff8a4c; --cache:#3fc9a1;
  --ours:#1c2738; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--paper); color:var(--ink);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; }
main { max-width:1180px; margin:0 auto; padding:44px 24px 64px; }
h1 { font-size:30px; line-height:1.2; margin:0 0 12px; letter-spacing:-.015em; }
h2 { font-size:20px; margin:44px 0 4px; letter-spacing:-.01em; }
.lead { font-size:18px; max-width:72ch; margin:0 0 8px; }
.note { color:var(--soft); margin:0 0 14px; max-width:80ch; }
.legend { display:flex; flex-wrap:wrap; gap:6px 22px; margin:18px 0 0; padding:0; list-style:none; }
.legend i { display:inline-block; width:20px; height:3px; border-radius:2px; margin-right:8px;
  vertical-align:middle; }
.panels { display:grid; grid-template-columns:repeat(auto-fill,minmax(350px,1fr)); gap:16px; }
figure { margin:0; background:var(--card); border:1px solid var(--line); border-radius:10px;
  padding:14px 12px 8px; }
figure.ours { background:var(--ours); }
figcaption { font-weight:600; padding:0 6px 6px; }
figcaption span { display:block; font-weight:400; color:var(--soft); font-size:14px;
  font-variant-numeric:tabular-nums; }
figure p { color:var(--soft); padding:0 6px; }
svg { display:block; width:100%; height:auto;
  font:13px system-ui,-apple-system,"Segoe UI",sans-serif; }
.grid { stroke:var(--line); } .tick,.axis { fill:var(--soft); font-size:12px; }
.limit { stroke:var(--soft); stroke-dasharray:5 4; }
.limit-name { fill:var(--soft); font-size:12px; }
.line { fill:none; stroke-width:2; stroke-linejoin:round; } .name { font-size:12px; }
svg .lead { stroke-width:1; opacity:.35; }
.heap { stroke:var(--heap); } .mapped { stroke:var(--mapped); } .cache { stroke:var(--cache); }
text.heap { fill:var(--heap); stroke:none; } text.mapped { fill:var(--mapped); stroke:none; }
text.cache { fill:var(--cache); stroke:none; } .end { stroke:none; }
.end.heap { fill:var(--heap); } .end.mapped { fill:var(--mapped); }
.end.cache { fill:var(--cache); }
.scroll { overflow-x:auto; margin-top:18px; }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums; font-size:15px; }
th,td { text-align:right; padding:8px 12px; border-bottom:1px solid var(--line);
  white-space:nowrap; }
th { color:var(--soft); font-weight:500; } th:first-child,td:first-child { text-align:left; }
tr.ours td { background:var(--ours); font-weight:600; }
svg svg { width:400px; height:240px; } .paper { fill:var(--paper); }
.title { fill:var(--ink); font-size:14px; font-weight:600; }
footer { margin-top:44px; color:var(--soft); font-size:14px; max-width:88ch; }
"""

LEGEND = """<ul class="legend">
<li><i style="background:var(--heap)"></i>heap: memory of the process itself (RssAnon)</li>
<li><i style="background:var(--mapped)"></i>mapped file: its pages in the process (RssFile)</li>
<li><i style="background:var(--cache)"></i>page cache: pages of the file that the kernel keeps</li>
</ul>"""


@dataclass(frozen=True)
class Panel:
    """One method in one part: cells are what the table shows, already as text."""

    title: str
    ours: bool
    rate: str
    cells: list[str]
    curves: list[Curve]
    limits: list[Limit]
    reason: str = ""


@dataclass(frozen=True)
class Part:
    """One section of the page; its panels share their scales."""

    title: str
    note: str
    panels: list[Panel]


def _scale(part: Part) -> Scale:
    curves = [curve for panel in part.panels for curve in panel.curves if curve.points]
    seconds = max([curve.points[-1][0] for curve in curves], default=1.0)
    limits = [size for panel in part.panels for size, _ in panel.limits]
    high = max([curve.peak for curve in curves] + limits + [float(MIB)])
    step = nice_step(high / MIB) * MIB
    return Scale(max(seconds, 0.5), step * -(-high // step), step)


def _figure(panel: Panel, scale: Scale) -> str:
    kind = ' class="ours"' if panel.ours else ""
    head = f"<figcaption>{escape(panel.title)}<span>{escape(panel.rate)}</span></figcaption>"
    if panel.reason:
        return f"<figure{kind}>{head}<p>Not measured: {escape(panel.reason)}</p></figure>"
    drawn = draw(panel.curves, scale, panel.limits, f"Memory of {panel.title} over time")
    return f"<figure{kind}>{head}{drawn}</figure>"


def _table(part: Part, columns: list[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ["method", *columns])
    rows = []
    for panel in part.panels:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in [panel.title, *panel.cells])
        rows.append(f"<tr{' class=ours' if panel.ours else ''}>{cells}</tr>")
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def render(title: str, lead: str, parts: list[Part], columns: list[str], foot: str) -> str:
    body = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>', LEGEND]
    for part in parts:
        body.append(f"<h2>{escape(part.title)}</h2>")
        body.append(f'<p class="note">{escape(part.note)}</p>')
        if part.panels:
            scale = _scale(part)
            figures = "".join(_figure(panel, scale) for panel in part.panels)
            body.append(f'<div class="panels">{figures}</div>{_table(part, columns)}')
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"{''.join(body)}<footer>{escape(foot)}</footer></main></body></html>\n"
    )


def picture(part: Part, ours_and: tuple[str, ...]) -> str:
    """Our panel and those whose titles begin so, side by side, as an SVG file of its own."""
    scale = _scale(part)
    chosen = [p for p in part.panels if p.ours or p.title.startswith(ours_and)]
    high = HEIGHT + 40
    drawn = []
    for place, panel in enumerate(chosen):
        svg = draw(panel.curves, scale, panel.limits, f"Memory of {panel.title} over time")
        left = place * WIDTH
        drawn.append(
            f'<text class="title" x="{left + LEFT}" y="18">{escape(panel.title)}</text>'
            f'<text class="tick" x="{left + LEFT}" y="34">{escape(panel.rate)}</text>'
            + svg.replace("<svg ", f'<svg x="{left}" y="40" width="{WIDTH}" height="{HEIGHT}" ', 1)
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(chosen)} {high}">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" class="paper"/>'
        f"{''.join(drawn)}</svg>\n"
    )
