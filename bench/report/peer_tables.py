"""The tables of peers.json: one per scenario, made from its keys scenario-work-adapter.

They need no text of their own, because any adapter may come or go.
"""

from __future__ import annotations

from values import Result

# What a scenario measures: the head of its table and the quantity; others have those of "".
HEADS = {
    "": ("1,000 samples/s", "k"),
    "resume": ("first batch, ms", "first"),
    "startup": ("first batch, ms", "first"),
    "dlio": ("samples/s", "rate"),
}
WORKS = {"hot": "cached", "cold": "on disk"}
# The second column of each work: memory, but utilisation for DLIO. The page cache of a hot file was
# there before: what a reader maps of it counts instead.
BESIDE = {"hot": ("memory", "group_mapped"), "cold": ("memory", "group_held")}
USED = ("accelerator used", "used")


def tables(result: Result) -> dict[str, str]:
    """By names such as "peers.rows": what pages.Source has."""
    scenarios = dict.fromkeys(key.split("-")[0] for key in result.labels)
    return {f"peers.{scenario}": _table(result, scenario) for scenario in scenarios}


def _table(result: Result, scenario: str) -> str:
    keys = [key.split("-", 2) for key in result.labels if key.startswith(f"{scenario}-")]
    works = [work for work in WORKS if any(key[1] == work for key in keys)]
    head, quantity = HEADS.get(scenario, HEADS[""])
    beside = {work: USED if scenario == "dlio" else BESIDE[work] for work in works}
    heads = [f"{scenario}: {head}"]
    for work in works:
        heads += [WORKS[work], f"{beside[work][0]}, {WORKS[work]}"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for adapter in dict.fromkeys(key[2] for key in keys):
        names = [f"{scenario}-{work}-{adapter}" for work in works]
        label = next(result.labels[name] for name in names if name in result.labels)
        bold = "**" if "lowtide" in label else ""
        cells = [f"{bold}{label}{bold}"]
        for name, work in zip(names, works):
            cells += [f"{{{name}: {quantity}}}", f"{{{name}: {beside[work][1]}}}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)
