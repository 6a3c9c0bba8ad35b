"""The demo's HTML page: one self-contained file. Its pictures are those of the report."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, HEAD, FOOT = 440, 260, 50, 58  # of a small picture, its header and its footer

STYLE = """
:root { color-scheme: light dark; --paper:#f6f8fa; --ink:#1b1f24; --soft:#57606a; --line:#d8dee4;
  --card:#ffffff; --ours:#e8f1fb; }
@media (prefers-color-scheme: dark) { :root { --paper:#0d1117; --ink:#e6edf3; --soft:#9aa4af;
  --line:#30363d; --card:#14181d; --ours:#16263a; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--paper); color:var(--ink);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; }
main { max-width:1240px; margin:0 auto; padding:44px 24px 64px; }
h1 { font-size:30px; line-height:1.2; margin:0 0 12px; letter-spacing:-.015em; }
h2 { font-size:20px; margin:44px 0 4px; letter-spacing:-.01em; }
.lead { font-size:18px; max-width:72ch; margin:0 0 8px; }
.note { color:var(--soft); margin:0 0 14px; max-width:80ch; }
.legend { display:flex; flex-wrap:wrap; gap:4px 22px; margin:18px 0 0; padding:0; list-style:none; }
.legend svg { margin-right:8px; vertical-align:-2px; background:none; }
.panels { display:grid; gap:16px;
  grid-template-columns:repeat(auto-fill,minmax(min(360px,100%),1fr)); }
figure { margin:0; background:var(--card); border:1px solid var(--line); border-radius:10px;
  padding:14px 10px 6px; overflow:hidden; }
figure.ours { border:2px solid #0072b2; padding:13px 9px 5px; }
figure > svg { display:block; width:100%; height:auto; }
figcaption { font-weight:600; padding:0 6px 6px; }
figcaption span { display:block; font-weight:400; color:var(--soft); font-size:14px;
  font-variant-numeric:tabular-nums; }
figure p { color:var(--soft); padding:0 6px; }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums; font-size:15px;
  margin-top:18px; }
th,td { text-align:right; padding:8px 12px; border-bottom:1px solid var(--line);
  font-weight:400; vertical-align:bottom; }
td { white-space:nowrap; }
thead th { color:var(--soft); font-weight:500; } th:first-child { text-align:left; }
tr.ours > * { background:var(--ours); font-weight:600; }
footer { margin-top:44px; color:var(--soft); font-size:14px; max-width:88ch; }
@media (max-width:900px) { table { font-size:14px; } th,td { padding:7px 8px; } }
@media (max-width:640px) { main { padding:24px 14px 40px; } h1 { font-size:24px; }
  .lead { font-size:16px; } figure { padding:12px 4px 4px; }
  figure.ours { padding:11px 3px 3px; }
  table,tbody { display:block; }
  thead { position:absolute; width:1px; height:1px; overflow:hidden; clip-path:inset(50%); }
  tr { display:block; padding:10px 10px; border-bottom:1px solid var(--line); }
  tr.ours { background:var(--ours); } tr.ours > * { background:none; }
  th,td,tr.ours td { display:flex; justify-content:space-between; border:0; padding:1px 0;
    font-weight:400; }
  tbody th,tr.ours th { font-weight:600; padding-bottom:3px; }
  td::before { content:attr(data-name); color:var(--soft); } }
"""

_AREA = '<rect width="22" height="12" fill="url(#lt-look-{})"/>'
LEGEND = (
    (_AREA.format(1), "mapped: the matrix"),
    (_AREA.format(6), "mapped: libraries"),
    (_AREA.format(8), "page tables"),
    (_AREA.format(0), "heap"),
    (
        '<rect class="cache" width="22" height="12"/><path class="cached" d="M0 1H22"/>',
        "page cache, not mapped",
    ),
)


@dataclass(frozen=True)
class Panel:
    """One method in one part: cells are the table's cells, as text; svg may be empty."""

    title: str
    ours: bool
    rate: str
    cells: list[str]
    svg: str
    reason: str = ""


@dataclass(frozen=True)
class Part:
    """One section of the page."""

    title: str
    note: str
    panels: list[Panel]


def _legend() -> str:
    entries = "".join(
        f'<li><svg class="lt-chart" width="22" height="12" aria-hidden="true">{sign}</svg>'
        f"{escape(name)}</li>"
        for sign, name in LEGEND
    )
    return f'<ul class="legend">{entries}</ul>'


def _figure(panel: Panel) -> str:
    kind = ' class="ours"' if panel.ours else ""
    head = f"<figcaption>{escape(panel.title)}<span>{escape(panel.rate)}</span></figcaption>"
    inside = panel.svg or f"<p>Not measured: {escape(panel.reason)}</p>"
    return f"<figure{kind}>{head}{inside}</figure>"


def _table(part: Part, columns: list[str]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ["method", *columns])
    rows = []
    for panel in part.panels:
        cells = "".join(
            f'<td data-name="{escape(name)}">{escape(cell)}</td>'
            for name, cell in zip(columns, panel.cells, strict=True)
        )
        kind = ' class="ours"' if panel.ours else ""
        rows.append(f'<tr{kind}><th scope="row">{escape(panel.title)}</th>{cells}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def render(title: str, lead: str, parts: list[Part], columns: list[str], foot: str) -> str:
    body = [f"<h1>{escape(title)}</h1>"]
    body += [f'<p class="lead">{escape(line)}</p>' for line in lead.splitlines()]
    body.append(_legend())
    for part in parts:
        body.append(f"<h2>{escape(part.title)}</h2>")
        body.append(f'<p class="note">{escape(part.note)}</p>')
        if part.panels:
            figures = "".join(_figure(panel) for panel in part.panels)
            body.append(f'<div class="panels">{figures}</div>{_table(part, columns)}')
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"{''.join(body)}<footer>{escape(foot)}</footer></main></body></html>\n"
    )


def picture(part: Part, titles: list[str]) -> str:
    """The panels with these titles, two in a row, as an SVG file of its own."""
    by_title = {panel.title: panel for panel in part.panels if panel.svg}
    chosen = [by_title[title] for title in titles if title in by_title]
    row = HEAD + HEIGHT
    width, height = 2 * WIDTH, row * ((len(chosen) + 1) // 2) + FOOT
    drawn = []
    for place, panel in enumerate(chosen):
        left, top = place % 2 * WIDTH, place // 2 * row
        drawn.append(
            f'<text class="headline" x="{left + 8}" y="{top + 24}">{escape(panel.title)}</text>'
            f'<text class="tick" x="{left + 8}" y="{top + 43}">{escape(panel.rate)}</text>'
            + panel.svg.replace("<svg ", f'<svg x="{left}" y="{top + HEAD}" ', 1)
        )
    for place, (sign, name) in enumerate(LEGEND):
        at = f"translate({70 + place % 3 * 260} {height - FOOT + 10 + place // 3 * 22})"
        drawn.append(f'<g transform="{at}">{sign}<text x="30" y="10">{escape(name)}</text></g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lt-chart" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}">'
        f'<rect class="ground" width="{width}" height="{height}"/>{"".join(drawn)}</svg>\n'
    )
