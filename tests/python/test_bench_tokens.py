"""The bars of `./dev bench tokens`."""

from __future__ import annotations

import pytest


def busy(wait_us: float, work_us: float) -> dict[str, object]:
    return {"residency": "ok", "wait_s": wait_us * 1e-6, "work_s": work_us * 1e-6}


@pytest.mark.parametrize(
    "rounds, reached_us",
    [
        ([busy(3, 10), busy(4, 10.9), busy(90, 11.1), busy(80, 25)], 3.5),
        ([busy(3, 10), busy(9, 10), busy(8, 10)], 8),
    ],
)
def test_only_quiet_rounds_decide_how_long_a_busy_consumer_waits(bench_module, rounds, reached_us):
    bars = bench_module("token_report").bars({"busy-loader": rounds}, [])
    (bar,) = [bar for bar in bars if bar["work"] == "wait per step in quiet rounds, busy-loader"]
    assert bar["reached"] == pytest.approx(reached_us * 1e-6)
    assert (bar["verdict"] == "PASS") == (reached_us < 5)
