"""Shared by the tests with torch: a token file whose tokens encode their position."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest

BLOCK = 16
WINDOWS = 250
# A few tokens more than whole windows need; they belong to no window.
TOKENS = WINDOWS * BLOCK + 1 + 5


def write_tokens(folder, name="train.bin"):
    """The path of the file, and its tokens: token i is i + 100."""
    data = (np.arange(TOKENS) + 100).astype("<u2")
    path = folder / name
    data.tofile(path)
    return path, data


def window_of(x):
    """Which window each row of x is, whatever its type; fails on a row that is not a window."""
    rows = np.asarray(x).astype(np.int64) - 100
    assert (rows == rows[:, :1] + np.arange(rows.shape[1])).all()
    assert (rows[:, 0] % BLOCK == 0).all()
    return (rows[:, 0] // BLOCK).tolist()


def flat(batches):
    """The windows of all batches, in order."""
    return [window for batch in batches for window in batch]


def open_tokens(path, **options):
    return lt.tokens(path, **{"memory": "4MiB", **options})


@pytest.fixture
def numbered_tokens(tmp_path):
    """That file, open: what the tests with torch call `tokens`."""
    path, _ = write_tokens(tmp_path)
    with open_tokens(path) as t:
        yield t
