"""What a loader gave, and that it gives the same again: from a state, and in another process."""

from __future__ import annotations

import json
import multiprocessing
import warnings

import numpy as np


def told(batch):
    """A batch as what it says and holds."""
    return (batch.epoch, batch.step, batch.index.tolist(), *_bytes(batch))


def _bytes(entry):
    if isinstance(entry, dict):
        entry = list(entry.values())
    return tuple(
        _bytes(e) if isinstance(e, (tuple, dict)) else np.asarray(e).tobytes() for e in entry
    )


def expect_resumes(make_loader, epochs=3):
    """A loader that goes on from any state of a run gives what that run gave."""
    with make_loader() as loader:
        states, whole = [loader.state_dict()], []
        for _ in range(epochs * len(loader)):
            whole.append(told(loader.next()))
            states.append(loader.state_dict())
    for turn, state in enumerate(states[:-1]):
        text = json.dumps(state)
        assert len(text) < 1024
        with make_loader() as loader:
            loader.load_state_dict(json.loads(text))
            assert loader.state_dict() == state
            for expected in whole[turn : turn + 4]:
                assert told(loader.next()) == expected


def expect_goes_on_in_a_child(loader, way, steps):
    """A child and its parent both go on with the epoch after `steps` batches."""
    context = multiprocessing.get_context(way)
    whole = [told(batch) for batch in loader]
    loader.seek(0, epoch=0)
    for _ in range(steps):
        loader.next()
    results = context.SimpleQueue()
    child = context.Process(target=_rest_of, args=(loader, results))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    assert results.get() == whole[steps:]
    child.join(120)
    assert child.exitcode == 0
    assert [told(batch) for batch in loader] == whole[steps:]


def _rest_of(loader, results):
    results.put([told(batch) for batch in loader])
