"""A result file, and the numbers that texts take from it.

A text names a number as `{KEY: QUANTITY}`, such as `{hot-64: krow}`: the median of all valid rounds
of that method, or the peak where the quantity is memory. There is more:

    {hot-64 & cold-64: held}         the range over several methods: "52 - 53 MiB"
    {hot-64 & cold-64: held^}        the largest of them: "53 MiB"
    {hot-64: krow~}                  the range over the rounds of each: "1,835 - 2,134"
    {hot-64 / hot-preadv: krow}      the ratio of two medians: "3.60"
    {hot-64 / hot-preadv: krow~}     the range of that ratio over the rounds
    {facts: rows}                    a fact of the run; those in bytes are in MiB
    {rounds: most}                   how many rounds it had
    {rounds: scan}                   how many rounds the methods had whose keys begin with scan-
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import report
from report import MIB

LONG_REASON = 40


def number(value: float) -> str:
    """A number as texts have it: with two digits at least, and no more places than that."""
    places = 0 if value >= 9.95 or value == 0 else 1 if value >= 0.095 else 2
    return f"{value:,.{places}f}"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def tenths(value: float) -> str:
    return f"{value:,.1f}"


def hundredths(value: float) -> str:
    return f"{value:.2f}" if value < 10 else whole(value)


def percent(value: float) -> str:
    return f"{value:.1%}".replace("%", "").removesuffix(".0")


@dataclass(frozen=True)
class Quantity:
    """A sum of fields of a round, in a unit, and how a text shows it."""

    fields: tuple[str, ...]
    scale: float = 1.0
    show: Callable[[float], str] = number
    pick: Callable[[list[float]], float] = statistics.median
    unit: str = ""


def _peak(*fields: str, scale: float = 1 / MIB, unit: str = " MiB") -> Quantity:
    return Quantity(fields, scale, whole, max, unit)


QUANTITIES = {
    "rows": Quantity(
        ("rows_per_s",), show=lambda rate: whole(rate) if rate >= 100 else number(rate)
    ),
    "krow": Quantity(("rows_per_s",), 1e-3),
    "mrow": Quantity(("rows_per_s",), 1e-6, tenths),
    "ksample": Quantity(("samples_per_s",), 1e-3),
    "k": Quantity(("rate",), 1e-3),
    "rate": Quantity(("rate",)),
    "used": Quantity(("utilisation",), 100, whole, unit=" %"),
    "first": Quantity(("first_batch_s",), 1e3),
    "us": Quantity(("us_a_batch",)),
    "windows": Quantity(("windows_per_s",)),
    "kwindow": Quantity(("windows_per_s",), 1e-3),
    "cpu_tokens": Quantity(("cpu_s_a_billion",)),
    "cpu_gb": Quantity(("cpu_s_per_gb",)),
    "cpu_s": Quantity(("cpu_s",)),
    "cpu": Quantity(("cpu_us",), show=hundredths),
    **{
        f"cpu_{kind}": Quantity((f"cpu_{kind}",), show=hundredths)
        for kind in ("copy", "lookup", "disk", "fault", "kernel", "lowtide", "python")
    },
    "wait_us": Quantity(("wait_s",), 1e6),
    "wait_p90_us": Quantity(("wait_p90_s",), 1e6),
    "wait_p99_ms": Quantity(("wait_p99_s",), 1e3),
    "waited": Quantity(("waited_share",), 100, whole),
    "resume_ms": Quantity(("resume_s",), 1e3, whole),
    "mb": Quantity(("speed",), 1e-6),
    "gb": Quantity(("speed",), 1e-9),
    "mib": Quantity(("speed",), 1 / MIB),
    "requests": Quantity(("requests",), show=whole),
    "read_per_byte": Quantity(("read_per_byte",)),
    "gap_kib": Quantity(("gap_bytes",), 1 / 1024, whole, unit=" KiB"),
    "krow_648": Quantity(("speed",), 1e-3 / 648),
    "held": _peak("anon_growth", "file_growth"),
    "grown": _peak("growth"),
    "mapped": _peak("file_growth"),
    "memory": _peak("memory"),
    "group_held": _peak("group_anon", "group_cache"),
    "group_mapped": _peak("group_anon", "group_file"),
    "cached": _peak("cached", unit=""),
    "group": _peak("group_peak", unit=""),
    "plain_peak": _peak("plain_peak_mib", scale=1),
    "guard_peak": _peak("guard_peak_mib", scale=1),
    "within": Quantity(("within_5_percent",), show=percent, unit=" %"),
    "time": Quantity(("time_ratio",), show=hundredths),
    "cpu_time": Quantity(("cpu_ratio",), show=hundredths),
}


class Result:
    """One file of bench/results."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.facts: dict[str, Any] = data.get("facts", {})
        self.labels: dict[str, str] = data.get("labels", {})
        self.rounds: report.Rounds = data["rounds"] if "rounds" in data else _programs(data)

    def has(self, name: str) -> bool:
        """Whether any method of a `{KEY: QUANTITY}` was tried."""
        return any(self.rounds.get(key) for key in _keys(name.rpartition(": ")[0]))

    def text(self, name: str) -> str:
        """What a text has in place of `{name}`; KeyError if there is no such method or fact."""
        keys, _, what = name.rpartition(": ")
        if keys == "facts":
            return self._fact(what)
        if keys == "rounds":
            start = "" if what == "most" else f"{what}-"
            return str(max(len(all) for key, all in self.rounds.items() if key.startswith(start)))
        unknown = [key for key in _keys(keys) if key not in self.rounds]
        if unknown:
            raise KeyError(f"{{{name}}}: no rounds of {unknown[0]}")
        quantity = QUANTITIES[what.rstrip("~^")]
        each = what.endswith("~")
        if " / " in keys:
            return _range(self._ratios(*keys.split(" / "), quantity, each), hundredths)
        found = self._amounts(_keys(keys), quantity, each)
        if not found:
            return self._reason(_keys(keys))
        return _range([max(found)] if what.endswith("^") else found, quantity.show) + quantity.unit

    def _fact(self, name: str) -> str:
        if name in ("least_cgroup", "most_cgroup"):
            sizes = self.facts["cgroup_bytes"].values()
            return whole((min if name == "least_cgroup" else max)(sizes) / MIB)
        value = self.facts[name]
        return whole(value / MIB) if name.endswith("_bytes") else whole(value)

    def values(self, key: str, quantity: Quantity) -> list[float]:
        """The quantity in each valid round that has all of its fields."""
        fields = quantity.fields
        rounds = [one for one in self.rounds[key] if report.is_good(one)]
        known = [one for one in rounds if all(one.get(name) is not None for name in fields)]
        return [quantity.scale * sum(one[name] for name in fields) for one in known]

    def _amounts(self, keys: list[str], quantity: Quantity, each: bool) -> list[float]:
        found = []
        for key in keys:
            values = self.values(key, quantity)
            if values:
                found += [min(values), max(values)] if each else [quantity.pick(values)]
        return found

    def _ratios(self, ours: str, theirs: str, quantity: Quantity, each: bool) -> list[float]:
        mine, other = self.values(ours, quantity), self.values(theirs, quantity)
        if each:
            ratios = [a / b for a, b in zip(mine, other)]
            return [min(ratios), max(ratios)]
        return [quantity.pick(mine) / quantity.pick(other)]

    def _reason(self, keys: list[str]) -> str:
        """Why there is no number: the error, if it says how the method ended."""
        errors = [one["error"] for key in keys for one in self.rounds[key] if "error" in one]
        ends = [error for error in errors if error.startswith(("killed", "ended"))]
        if not ends:
            return "not measured" if errors else ""
        return ends[0] if len(ends[0]) <= LONG_REASON else ends[0].partition(":")[0]


def _keys(names: str) -> list[str]:
    return [key for pair in names.split(" / ") for key in pair.split(" & ")]


def _range(values: list[float], show: Callable[[float], str]) -> str:
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} - {high}"


def _programs(data: dict[str, Any]) -> report.Rounds:
    """The rounds of ceiling.json, which lists programs and their summary."""
    rows = data["rows"] + data.get("shuffled", {}).get("rows", [])
    names = [row["program"] for row in data["rows"]]
    names += [f"again: {row['program']}" for row in rows[len(names) :]]
    return {name: [{**row, "residency": "not asked"}] for name, row in zip(names, rows)}
