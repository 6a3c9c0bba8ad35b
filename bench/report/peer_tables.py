"""The tables of peers.json: one per scenario, made from its keys scenario-work-adapter.

They need no text of their own, because any adapter may come or go.
"""

from __future__ import annotations

from values import Result

HEADS = {
    "k": "1,000 samples/s",
    "first": "first batch, ms",
}
FIRST = ("resume", "startup")  # scenarios that time one batch
WORKS = {"hot": "cached", "cold": "on disk"}
# The page cache of a hot file was there before: what a reader maps of it counts instead.
HELD = {"hot": "group_mapped", "cold": "group_held"}


def tables(result: Result) -> dict[str, str]:
    """By names such as "peers.rows": what pages.Source has."""
    scenarios = dict.fromkeys(key.split("-")[0] for key in result.labels)
    return {f"peers.{scenario}": _table(result, scenario) for scenario in scenarios}


def _table(result: Result, scenario: str) -> str:
    keys = [key.split("-", 2) for key in result.labels if key.startswith(f"{scenario}-")]
    works = [work for work in WORKS if any(key[1] == work for key in keys)]
    quantity = "first" if scenario in FIRST else "k"
    heads = [f"{scenario}: {HEADS[quantity]}"]
    for work in works:
        heads += [WORKS[work], f"memory, {WORKS[work]}"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for adapter in dict.fromkeys(key[2] for key in keys):
        names = [f"{scenario}-{work}-{adapter}" for work in works]
        label = next(result.labels[name] for name in names if name in result.labels)
        bold = "**" if label.startswith("lowtide") else ""
        cells = [f"{bold}{label}{bold}"]
        for name, work in zip(names, works):
            cells += [f"{{{name}: {quantity}}}", f"{{{name}: {HELD[work]}}}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)
