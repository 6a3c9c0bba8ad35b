"""The bars of the benchmark `sparse`, and its tables as the docs have them.

    python bench/scenarios/sparse_report.py

puts the tables of bench/results/sparse.json into the docs; a test compares them.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import report

RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("h5ad, cold", "cold-h5ad-lowtide", "cold-h5ad-fio", 0.9),
    ("SCDL folder, cold", "cold-scdl-lowtide", "cold-h5ad-fio", 0.9),
    ("zarr, cold", "cold-zarr-lowtide", "cold-h5ad-fio", 0.9),
    ("SCDL folder, cold", "cold-scdl-lowtide", "cold-scdl-bionemo", 50.0),
    ("h5ad, cold", "cold-h5ad-lowtide", "cold-h5ad-annloader", 100.0),
    ("fully random against blocks, cold", "cold-h5ad-batches", "cold-annbatch-blocks", 1.0),
    ("fully random, cold", "cold-h5ad-batches", "cold-annbatch-random", 5.0),
    ("dense columns, ours reads too", "hot-few-dense", "hot-few-scipy", 5.0),
    ("dense columns, both read", "hot-few-dense", "hot-few-loader", 5.0),
    ("safetensors, hot", "hot-safetensors-lowtide", "hot-safetensors-own", 1.0),
    ("npz, hot", "hot-npz-lowtide", "hot-npz-own", 1.0),
    ("fbin, hot", "hot-fbin-lowtide", "hot-fbin-own", 1.0),
    ("safetensors, cold", "cold-safetensors-lowtide", "cold-safetensors-own", 5.0),
    ("npz, cold", "cold-npz-lowtide", "cold-npz-own", 5.0),
    ("fbin, cold", "cold-fbin-lowtide", "cold-fbin-own", 5.0),
)
FILL_BAR: report.RatioBar = ("dense columns, CPU of both", "hot-few-dense", "hot-few-scipy", 5.0)

_CELLS = {
    "h5ad-annloader": "AnnLoader, `.h5ad`",
    "scdl-bionemo": "bionemo-scdl, its folder, one thread of torch",
    "annbatch-random": "annbatch, its own shuffled store, `chunk_size=1`",
    "annbatch-blocks": "annbatch, its own shuffled store, blocks of 32 rows",
    "h5ad-fio": "fio randread, 4 KiB, direct, depth 128, two reads per row",
    "h5ad-lowtide": "**`lt.Loader`, `.h5ad` in place**",
    "h5ad-batches": "**the same in batches of 4,096**",
    "scdl-lowtide": "**`lt.Loader`, SCDL folder in place**",
    "zarr-lowtide": "**`lt.Loader`, zarr in place**",
}
_DENSE = {
    "few-scipy": "SciPy, `batch[:, genes].toarray()` of batches in memory",
    "few-sparse": "`lt.Loader`, sparse batches of the same cells",
    "few-loader": "`lt.Loader`, then the same",
    "few-dense": "**`lt.Loader(dense=True, columns=genes)`**",
}
_ROWS = {
    "safetensors-own": "safetensors, `safe_open`, rows by NumPy",
    "safetensors-lowtide": "**safetensors, `lt.Loader`**",
    "npz-own": "`.npz`, `np.load`",
    "npz-lowtide": "**`.npz`, `lt.Loader`**",
    "fbin-own": "fbin, `np.memmap`",
    "fbin-lowtide": "**fbin, `lt.Loader`**",
}


def add_fill_rates(found: report.Rounds) -> None:
    """Adds `fill_rows_per_s`: rows per second of CPU that become dense, without reading them.

    What Lowtide does beside that is what it does for sparse batches of the same cells.
    """
    both = zip(found.get("hot-few-dense", []), found.get("hot-few-sparse", []), strict=False)
    for dense, sparse in both:
        if report.is_good(dense) and report.is_good(sparse) and dense["cpu_us"] > sparse["cpu_us"]:
            dense["fill_rows_per_s"] = 1e6 / (dense["cpu_us"] - sparse["cpu_us"])
    for one in found.get("hot-few-scipy", []):
        if report.is_good(one):
            one["fill_rows_per_s"] = 1e6 / one["cpu_us"]


def _rate(found: report.Rounds, key: str) -> str:
    values = report.good(found, key, "rows_per_s")
    if values:
        rate = statistics.median(values)
        return f"{rate:,.0f}" if rate >= 100 else f"{rate:,.1f}"
    errors = [one["error"] for one in found.get(key, []) if "error" in one]
    return next((why for why in errors if why.startswith("killed")), "not measured" * bool(errors))


def _grown(found: report.Rounds, *keys: str) -> str:
    values = [value for key in keys for value in report.good(found, key, "growth")]
    return f"{max(values) / report.MIB:,.0f} MiB" if values else ""


def _lines(found: report.Rounds, named: dict[str, str], works: tuple[str, ...]) -> list[str]:
    lines = []
    for name, label in named.items():
        keys = [f"{work}-{name}" for work in works]
        if any(found.get(key) for key in keys):
            cells = [label, *(_rate(found, key) for key in keys), _grown(found, *keys)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _table(heads: list[str], lines: list[str]) -> str:
    head = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*head, *lines])


def tables(result: dict[str, Any]) -> list[str]:
    """The tables of a result file: cells, dense genes, dense rows. What was not measured is left
    out, and so is a table without lines."""
    found = result["rounds"]
    made = []
    for named, works, head in (
        (_CELLS, ("hot", "cold"), "cells in random order"),
        (_DENSE, ("hot",), "2,000 of 20,000 genes, dense"),
        (_ROWS, ("hot", "cold"), "dense rows of 1 KiB"),
    ):
        lines = _lines(found, named, works)
        rates = {"hot": "cached, rows/s", "cold": "on disk, rows/s"}
        if lines:
            made.append(_table([head, *(rates[work] for work in works), "memory held"], lines))
    return made


def _about(result: dict[str, Any]) -> str:
    facts = result["facts"]
    rounds = max(len(one) for one in result["rounds"].values())
    size = facts["rows"] * 8000 / 1e9  # about 1,000 values and columns of 4 bytes per row
    return (
        f"{facts['rows']:,} x {facts['columns']:,}, about 1,000 values per row ({size:.0f} GB),\n"
        f'batches of {facts["batch_size"]} (annbatch: 4,096), memory="256MiB", medians of '
        f"interleaved rounds ({rounds}):\n"
        f"`./dev bench sparse`, [bench/results/sparse.json](../bench/results/sparse.json). "
        f"{_groups(facts)}"
    )


def _groups(facts: dict[str, Any]) -> str:
    """How much room a cold file has."""
    sizes = {size // report.MIB for size in facts["cgroup_bytes"].values()}
    if not sizes:
        return "No memory group could be made."
    low, high = min(sizes), max(sizes)
    room = f"{low:,} MiB" if low == high else f"{low:,} MiB (peers that need more: {high:,} MiB)"
    return f"From\nthe disk, each process is in a cgroup of {room}."


def sections(result: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """By the name of a page in docs: the heading of its section with numbers, and what is in it."""
    made = tables(result)
    return {
        "numbers.md": ("Single cells", "\n\n".join([_about(result), *made])),
        "single-cells.md": ("Numbers", "\n\n".join([_about(result), *made[:2]])),
    }


def with_section(page: str, heading: str, body: str) -> str:
    """The text of a page in which a section is replaced, or added at its end."""
    text = f"## {heading}\n{body}\n"
    found = re.search(rf"^## {heading}\n.*?(?=^## |\Z)", page, re.M | re.S)
    if found is None:
        return f"{page.rstrip()}\n\n{text}"
    rest = page[found.end() :]
    return page[: found.start()] + text + ("\n" + rest if rest else "")


def write(result_path: str, docs: str) -> None:
    """Puts the tables of a result file into the pages of docs."""
    result = json.loads(Path(result_path).read_text(encoding="utf-8"))
    for name, (heading, body) in sections(result).items():
        page = Path(docs, name)
        page.write_text(with_section(page.read_text(encoding="utf-8"), heading, body), "utf-8")


if __name__ == "__main__":
    root = Path(__file__).parents[2]
    write(str(root / "bench/results/sparse.json"), str(root / "docs"))
