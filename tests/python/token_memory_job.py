"""One training job in a fresh process, for the memory proofs of tokens.

Told by JSON on the command line. Says "ready" with its memory after all imports, waits for a line,
goes through windows, checks each, and says its peaks. Run by test_token_memory.py, which samples
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from memory_job import run_job


def token_at(place: Any) -> Any:
    """Every token encodes its position, so any window can be checked by its ends."""
    return (np.asarray(place, np.uint64) * np.uint64(2654435761) >> np.uint64(15)) & np.uint64(
        0xFFFF
    )


def check(x: Any, y: Any, starts: Any) -> None:
    last = x.shape[1] - 1
    ends = np.concatenate([x[:, 0], x[:, last], y[:, 0], y[:, last]])
    places = np.concatenate([starts, starts + last, starts + 1, starts + 1 + last])
    if not np.array_equal(ends, token_at(places)):
        raise SystemExit("a window is not the one that was asked for")


def open_loader(told: dict[str, Any], tokens: list[Any]) -> Any:
    import lowtide

    sources = tokens[0] if len(tokens) == 1 else [(one, 1 + i) for i, one in enumerate(tokens)]
    return lowtide.Loader(
        sources, 12, told["block"], order=told["order"], seed=7, documents=told["documents"]
    )


def train(told: dict[str, Any]) -> dict[str, Any]:
    """Epochs of a Loader; of one file in an order of windows, each must come once."""
    import lowtide

    tokens = [
        lowtide.tokens(path, dtype="uint16", memory=told["memory"], cache=told["cache"])
        for path in told["paths"]
    ]
    once = len(tokens) == 1 and told["order"] != "random"
    with open_loader(told, tokens) as loader:
        for _ in range(told["epochs"]):
            seen = np.zeros((len(tokens[0]) - 1) // told["block"] if once else 0, dtype=bool)
            for batch in loader:
                starts = batch.samples * (1 if told["order"] == "random" else told["block"])
                if len(tokens) == 1:
                    check(batch.x, batch.y, starts)
                if once:
                    seen[batch.samples] = True
            if once and (~seen).sum() >= 12:
                raise SystemExit("a window was never delivered")
        stats = loader.stats()
    return {"engine": stats["engine"], "memory": stats["memory"]}


def cut(told: dict[str, Any]) -> dict[str, Any]:
    """windows(), batch() and slices: nothing but the caller's own results may stay."""
    import lowtide

    rng = np.random.default_rng(0)
    path = told["paths"][0]
    with lowtide.tokens(path, dtype="uint16", memory=told["memory"], cache=told["cache"]) as tokens:
        for step in range(told["steps"]):
            starts = rng.integers(0, len(tokens) - told["block"], 12)
            check(*tokens.windows(starts, told["block"]), starts)
            tokens.batch(12, told["block"], seed=step)
            first = int(starts[0])
            if tokens[first] != token_at(first) or len(tokens[first : first + 1000 : 7]) > 1000:
                raise SystemExit("a slice is not the one that was asked for")
        stats = tokens.stats()
    return {"engine": stats["engine"], "memory": stats["memory"]}


if __name__ == "__main__":
    run_job({"cut": cut, "train": train})
