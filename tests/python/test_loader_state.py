"""A run resumes from its state as if it had never stopped."""

from __future__ import annotations

import shutil

import lowtide as lt
import numpy as np
import pytest
from loader_runs import expect_resumes, told
from token_files import windows_of, write_nanogpt, write_shards

BLOCK = 8
WINDOWS = 100
ORDERS = ["shuffle", "random", "sequential"]


@pytest.fixture
def data():
    return np.random.default_rng(0).integers(0, 50257, BLOCK * WINDOWS + 3).astype(np.uint16)


@pytest.fixture
def path(tmp_path, data):
    return write_nanogpt(tmp_path / "t.bin", data)


@pytest.fixture
def tokens(path):
    with lt.tokens(path, memory="4MiB") as t:
        yield t


@pytest.mark.parametrize("order", ORDERS)
def test_resume_at_every_step_is_the_uninterrupted_run(tokens, order):
    expect_resumes(lambda: lt.Loader(tokens, 7, BLOCK, order, seed=3))


def test_a_loader_goes_back_and_forth(tokens):
    with lt.Loader(tokens, 7, BLOCK, seed=3) as loader:
        whole = [told(loader.next()) for _ in range(30)]
        for turn in np.random.default_rng(0).permutation(29).tolist():
            loader.seek(turn % 14, epoch=turn // 14)
            assert (loader.epoch, loader.step) == divmod(turn, 14)
            assert told(loader.next()) == whole[turn]
            assert told(loader.next()) == whole[turn + 1]


def test_what_was_read_ahead_is_not_counted(tokens):
    with lt.Loader(tokens, 10, BLOCK) as loader:
        loader.next()
        loader.next()
        assert loader.state_dict()["position"] == 20
        assert (loader.state_dict()["epoch"], loader.state_dict()["step"]) == (0, 2)


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
@pytest.mark.parametrize("batch_sizes", [(2, 2, 2), (1, 3, 2), (5, 1, 4)])
def test_four_ranks_then_two_then_three(tokens, data, order, batch_sizes):
    """The epoch is left twice in the middle: every window comes once, but for a last rest."""
    asked = {"block_size": BLOCK, "order": order, "seed": 8}
    seen, state = [], None
    for world, batch_size, steps in zip((4, 2, 3), batch_sizes, (3, 5, None)):
        loaders = [
            lt.Loader(tokens, batch_size, rank=rank, world_size=world, **asked)
            for rank in range(world)
        ]
        if state is not None:
            for loader in loaders:
                loader.load_state_dict(state)
        left = loaders[0].steps_left
        assert left == (WINDOWS - sum(map(len, seen))) // (world * batch_size)
        for _ in range(left if steps is None else steps):
            for loader in loaders:
                seen.append(windows_of([loader.next()], data, BLOCK))
        states = [loader.state_dict() for loader in loaders]
        assert states == states[:1] * world
        state = states[0]
        if steps is None:
            assert state["epoch"] == 1 and state["position"] == 0
        for loader in loaders:
            loader.close()
    seen = np.concatenate(seen)
    assert len(np.unique(seen)) == len(seen)
    assert WINDOWS - len(seen) < 3 * batch_sizes[-1]


def test_an_epoch_with_too_little_left_is_over(tokens):
    with lt.Loader(tokens, 10, BLOCK) as loader:
        loader.seek(9)
        state = loader.state_dict()
    with lt.Loader(tokens, 11, BLOCK) as loader:
        loader.load_state_dict(state)
        batch = loader.next()
        assert (batch.epoch, batch.step) == (1, 0)


def test_a_copy_of_the_data_resumes(tmp_path, tokens, data):
    with lt.Loader(tokens, 5, BLOCK, seed=1) as loader:
        loader.seek(4)
        state = loader.state_dict()
        expected = told(loader.next())
    shutil.copy(tokens.paths[0], tmp_path / "copy.bin")
    with lt.tokens(tmp_path / "copy.bin") as other, lt.Loader(other, 5, BLOCK, seed=1) as loader:
        loader.load_state_dict(state)
        assert told(loader.next()) == expected


def other_data(folder, data):
    changed = data.copy()
    changed[len(data) // 2 :] ^= 1
    yield [write_nanogpt(folder / "changed.bin", changed)]
    yield [write_nanogpt(folder / "shorter.bin", data[:-1])]
    yield [write_nanogpt(folder / "wider.bin", data, "<u4")]
    (folder / "parts").mkdir()
    yield write_shards(folder / "parts", data, [100])


def test_a_state_of_other_data_is_refused(tmp_path, tokens, data):
    with lt.Loader(tokens, 5, BLOCK) as loader:
        state = loader.state_dict()
    for paths in other_data(tmp_path, data):
        dtype = "uint32" if "wider" in paths[0] else "uint16"
        with lt.tokens(paths, dtype=dtype) as other, lt.Loader(other, 5, BLOCK) as loader:
            before = loader.state_dict()
            with pytest.raises(ValueError, match="data differs"):
                loader.load_state_dict(state)
            assert loader.state_dict() == before
            loader.next()


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"block_size": 9}, "block_size differs: the state has 8, this loader has 9"),
        (
            {"order": "sequential"},
            "order differs: the state has shuffle, this loader has sequential",
        ),
        ({"seed": 5}, "seed differs: the state has 0, this loader has 5"),
    ],
)
def test_a_state_of_another_loader_is_refused(tokens, other, says):
    with lt.Loader(tokens, 5, BLOCK) as loader:
        state = loader.state_dict()
    with lt.Loader(tokens, 5, **{"block_size": BLOCK, **other}) as loader:
        with pytest.raises(ValueError, match=says):
            loader.load_state_dict(state)
        loader.next()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: s.pop("epoch"), "lacks 'epoch'"),
        (lambda s: s.update(more=1), "unknown key 'more'"),
        (lambda s: s.update(epoch="1"), "epoch in state must be an integer, not str"),
        (lambda s: s.update(epoch=1.0), "epoch in state must be an integer, not float"),
        (lambda s: s.update(step=True), "step in state must be an integer, not bool"),
        (lambda s: s.update(position=-1), "position in state must be at least 0"),
        (lambda s: s.update(position=101), "position 101 is beyond the 100"),
        (lambda s: s.update(seed=2**64), "seed in state must be at most"),
        (lambda s: s.update(format=2), "format differs: the state has 2, this loader has 1"),
        (lambda s: s.update(order="up"), "up"),
        (lambda s: s.update(order=1), "order in state must be a str"),
        (lambda s: s.update(fingerprint=12), "16 hexadecimal digits"),
        (lambda s: s.update(fingerprint="x" * 16), "16 hexadecimal digits"),
        (lambda s: s.update(skipped=[[0, 1]]), r"\[epoch, first, last\]"),
        (lambda s: s.update(skipped=[[0, 5, 5000]]), "5 to 5000 is not within"),
        (lambda s: s.update(skipped=None), "NoneType"),
        (lambda s: s.update(skipped=[[0, 1, "2"]]), "skipped in state must be an integer"),
    ],
)
def test_a_damaged_state_is_refused_with_the_reason(tokens, change, says):
    with lt.Loader(tokens, 5, BLOCK) as loader:
        loader.next()
        before = loader.state_dict()
        state = loader.state_dict()
        change(state)
        with pytest.raises(ValueError, match=says):
            loader.load_state_dict(state)
        assert loader.state_dict() == before
        assert loader.next().step == 1


@pytest.mark.parametrize("state", [None, [], "state", 5])
def test_a_state_must_be_a_dict(tokens, state):
    with lt.Loader(tokens, 5, BLOCK) as loader, pytest.raises(TypeError, match="dict"):
        loader.load_state_dict(state)


def test_seek_out_of_range(tokens):
    with lt.Loader(tokens, 10, BLOCK, epochs=2) as loader:
        for step, epoch in ((11, 0), (0, 3), (1, 2), (2**62, None)):
            with pytest.raises(IndexError, match="seek"):
                loader.seek(step, epoch)
        for step in (-1, 2**64):
            with pytest.raises(ValueError, match="step"):
                loader.seek(step)
        for step in (1.0, "1", None):
            with pytest.raises(TypeError, match="step"):
                loader.seek(step)
        loader.seek(9, epoch=1)
        assert loader.next().step == 9
        with pytest.raises(StopIteration):
            loader.next()
        loader.seek(0, epoch=0)
        assert [batch.step for batch in loader] == list(range(10))
