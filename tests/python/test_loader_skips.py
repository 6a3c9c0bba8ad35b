"""Skipped steps, and when a token is trained on."""

from __future__ import annotations

import json

import lowtide as lt
import numpy as np
import pytest
from loader_runs import told
from token_files import windows_of

BLOCK = 8
WINDOWS = 100
ORDERS = ["shuffle", "random", "sequential"]


@pytest.fixture
def data():
    return np.random.default_rng(0).integers(0, 50257, BLOCK * WINDOWS + 3).astype(np.uint16)


@pytest.mark.parametrize("order", ORDERS)
def test_skipped_steps_do_not_come(tokens, order):
    with lt.Loader(tokens, 5, BLOCK, order) as loader:
        whole = [told(batch) for _ in range(3) for batch in loader]
    with lt.Loader(tokens, 5, BLOCK, order) as loader:
        loader.next()
        loader.skip(steps=(3, 7))
        loader.skip((0, 2), epoch=1)
        state = loader.state_dict()
        assert len(json.dumps(state)) < 1024
        found = [told(batch) for _ in range(3) for batch in loader]
    gone = {(0, 0), (0, 3), (0, 4), (0, 5), (0, 6), (1, 0), (1, 1)}
    assert found == [one for one in whole if one[:2] not in gone]  # by their old names, too
    with lt.Loader(tokens, 5, BLOCK, order) as loader:
        loader.load_state_dict(json.loads(json.dumps(state)))
        again = [told(batch) for _ in range(3) for batch in loader]
    assert again == found


def test_a_skip_holds_for_all_ranks_and_after_a_change_of_world(tokens, data):
    loaders = [lt.Loader(tokens, 5, BLOCK, rank=rank, world_size=2) for rank in range(2)]
    seen = [windows_of([loader.next()], data, BLOCK) for loader in loaders]
    for loader in loaders:
        loader.skip(steps=(2, 4))
    assert loaders[0].state_dict() == loaders[1].state_dict()
    with lt.Loader(tokens, 5, BLOCK) as whole:
        dealt = [batch.samples for batch in whole]
    left_out = set(np.concatenate(dealt[4:8]).tolist())
    with lt.Loader(tokens, 2, BLOCK) as one:
        one.load_state_dict(loaders[0].state_dict())
        while one.epoch == 0:
            seen.append(windows_of([one.next()], data, BLOCK))
    for loader in loaders:
        loader.close()
    seen = np.concatenate(seen).tolist()
    assert len(seen) == len(set(seen)) == WINDOWS - 20
    assert not left_out & set(seen)


def test_seeking_back_does_not_bring_skipped_steps_back(tokens):
    """Neither by seek nor by a state that was saved behind them."""
    with lt.Loader(tokens, 5, BLOCK) as loader:
        whole = [told(batch) for _ in range(2) for batch in loader]
        loader.seek(0, epoch=0)
        loader.skip(steps=(3, 7))
        expected = [one for one in whole if one[0] == 1 or one[1] not in (3, 4, 5, 6)]
        for _ in range(2):
            assert [told(batch) for _ in range(2) for batch in loader] == expected
            loader.seek(0, epoch=0)
        loader.seek(12)
        state = loader.state_dict()
        assert loader.when(whole_token(tokens, 4)) is None
    with lt.Loader(tokens, 5, BLOCK) as loader:
        loader.load_state_dict(json.loads(json.dumps(state)))
        assert told(loader.next()) == whole[12]
        loader.seek(2)
        assert told(loader.next()) == whole[2]
        assert told(loader.next()) == whole[7]


def whole_token(tokens, step):
    """A token of this step of the first epoch."""
    with lt.Loader(tokens, 5, BLOCK) as loader:
        loader.seek(step)
        return int(loader.next().samples[0]) * BLOCK


def test_sixteen_skips_fit_into_a_state(tmp_path):
    path = tmp_path / "huge.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 42)
    with lt.tokens(path, dtype="uint16", memory="4MiB") as t, lt.Loader(t, 4, BLOCK) as loader:
        loader.seek(0, epoch=9_990)
        last = len(loader) - 100
        for number in range(16):
            loader.skip(steps=(last + 4 * number, last + 4 * number + 2))
        assert len(json.dumps(loader.state_dict())) < 1024
        with pytest.raises(ValueError, match="more than 16 ranges"):
            loader.skip(steps=(last - 10, last - 9))
        loader.skip(steps=(last + 2, last + 4))  # joins two
        loader.seek(0, epoch=9_991)
        for number in range(16):
            loader.skip(steps=(last + 4 * number, last + 4 * number + 2))
        assert {entry[0] for entry in loader.state_dict()["skipped"]} == {9_991}


def test_bad_skips(tokens):
    with lt.Loader(tokens, 5, BLOCK) as loader:
        for _ in range(3):
            loader.next()
        for steps in ((0, 2), (2, 5)):
            with pytest.raises(ValueError, match="has passed"):
                loader.skip(steps)
        for steps in ((5, 4), (5, 5), (5, 21)):
            with pytest.raises((ValueError, IndexError), match="steps"):
                loader.skip(steps)
        for steps in (5, (5,), (1, 2, 3), "ab", None, (1.0, 2.0)):
            with pytest.raises(TypeError, match="steps"):
                loader.skip(steps)
        assert loader.state_dict()["skipped"] == []
        assert loader.next().step == 3


def test_skips_that_meet_and_overlap(tokens):
    with lt.Loader(tokens, 5, BLOCK) as loader:
        whole = [batch.samples.tolist() for batch in loader]
    with lt.Loader(tokens, 5, BLOCK) as loader:
        for steps in ((4, 6), (6, 8), (5, 7), (4, 6)):
            loader.skip(steps)
        assert [batch.samples.tolist() for batch in loader] == whole[:4] + whole[8:]
        assert loader.epoch == 1


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
@pytest.mark.parametrize("world", [1, 3])
def test_when_finds_every_token(tokens, order, world):
    loaders = [lt.Loader(tokens, 4, BLOCK, order, 6, rank, world) for rank in range(world)]
    for epoch in range(2):
        expected = {}
        for rank, loader in enumerate(loaders):
            for batch in loader:
                assert batch.epoch == epoch
                for row, window in enumerate(batch.samples.tolist()):
                    for token in range(window * BLOCK, (window + 1) * BLOCK):
                        expected[token] = (batch.step, rank, row)
                    if window == WINDOWS - 1:
                        expected[WINDOWS * BLOCK] = (batch.step, rank, row)
        for token in range(len(tokens)):
            assert loaders[0].when(token, epoch) == expected.get(token)
    found = loaders[0].when(0, 0)
    assert isinstance(found, lt.When)
    assert (found.step, found.rank, found.row) == found
    assert loaders[0].when(0) == loaders[0].when(0, loaders[0].epoch)
    for loader in loaders:
        loader.close()


def test_when_out_of_range(tokens):
    with lt.Loader(tokens, 4, BLOCK) as loader:
        with pytest.raises(IndexError, match=f"token {len(tokens)} is outside"):
            loader.when(len(tokens))
        with pytest.raises(IndexError, match="source"):
            loader.when(0, source=1)
        with pytest.raises(ValueError, match="row must"):
            loader.when(-1)
        with pytest.raises(TypeError, match="row must"):
            loader.when(1.5)
    with lt.Loader(tokens, 4, BLOCK, order="random") as loader:
        with pytest.raises(ValueError, match="drawn with replacement"):
            loader.when(0)


def test_when_after_a_change_of_sizes_and_a_skip(tokens):
    """For upcoming windows it reports what this run delivers."""
    with lt.Loader(tokens, 7, BLOCK) as loader:
        done = {window for _ in range(3) for window in loader.next().samples.tolist()}
        state = loader.state_dict()
    with lt.Loader(tokens, 3, BLOCK) as loader:
        loader.load_state_dict(state)
        ahead = [window for window in range(WINDOWS) if window not in done]
        plain = {window: loader.when(window * BLOCK, 0) for window in ahead}
        loader.skip((5, 8))
        skipping = {window: loader.when(window * BLOCK, 0) for window in ahead}
        delivered = {}
        while loader.epoch == 0:
            batch = loader.next()
            for row, window in enumerate(batch.samples.tolist()):
                delivered[window] = (batch.step, 0, row)
    left_out = [place for place in plain.values() if place is None]
    assert len(left_out) == (WINDOWS - 21) % 3
    for window, place in plain.items():
        gone = place is None or place.step in (5, 6, 7)
        assert skipping[window] == (None if gone else place)
        assert delivered.get(window) == skipping[window]
