"""Generates the text of the example and its token files, train.bin and val.bin.

The text consists of sentences of a small grammar. Each byte is one token, stored as uint16 as in
nanoGPT. The files are the same on every machine, and nothing is downloaded.
"""

from __future__ import annotations

import argparse
import pathlib
import random

import numpy as np

TRAIN_TOKENS = 1_000_000
VAL_TOKENS = 100_000

RULES = {
    "sentence": ["{subject} {verb} {object}.", "{when}, {subject} {verb} {object}.",
                 "{subject} {verb} {object} because {subject} {verb} {object}."],
    "subject": ["the {noun}", "the {adjective} {noun}", "every {noun}", "no {noun} of the {place}"],
    "object": ["a {noun}", "the {adjective} {noun}", "the {place}", "what the {noun} left behind"],
    "noun": ["tide", "heron", "sailor", "lighthouse", "crab", "harbour master", "gull", "boat"],
    "adjective": ["low", "patient", "grey", "salt-white", "early", "forgotten"],
    "verb": ["follows", "counts", "crosses", "remembers", "measures", "waits for"],
    "place": ["estuary", "pier", "sandbank", "far shore"],
    "when": ["at dawn", "before the storm", "in the third hour", "when the wind turns"],
}  # fmt: skip


def expand(rule: str, draw: random.Random) -> str:
    """Generates one text from `rule`."""
    choices = RULES[rule]
    text = choices[int(draw.random() * len(choices))]
    while "{" in text:
        head, _, rest = text.partition("{")
        name, _, tail = rest.partition("}")
        text = head + expand(name, draw) + tail
    return text


def make_tokens(count: int, seed: int) -> np.ndarray:
    """Generates `count` tokens of text, which depend on the seed only."""
    draw = random.Random(seed)
    parts: list[str] = []
    size = 0
    while size < count:
        sentence = expand("sentence", draw)
        ending = "\n" if draw.random() < 0.2 else " "
        parts.append(sentence[0].upper() + sentence[1:] + ending)
        size += len(parts[-1])
    text = "".join(parts)[:count].encode("ascii")
    return np.frombuffer(text, np.uint8).astype("<u2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--folder", type=pathlib.Path, default=pathlib.Path("out"), help="where to write the files"
    )
    parser.add_argument(
        "--tokens", type=int, default=TRAIN_TOKENS, help="number of tokens in train.bin"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", options.tokens, 1), ("val", VAL_TOKENS, 2)):
        path = options.folder / f"{name}.bin"
        make_tokens(count, seed).tofile(path)
        print(f"{path}: {count:,} tokens")


if __name__ == "__main__":
    main()
