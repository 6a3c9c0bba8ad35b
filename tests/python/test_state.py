"""One state for arrays and tokens. States that version 0.1.0 saved still load."""

from __future__ import annotations

import json
import shutil

import lowtide as lt
import numpy as np
import pytest

# Saved by version 0.1.0 over the files below, with the windows or rows that came next.
OLD_LOADER = (
    '{"format": 1, "fingerprint": "afabe162c3218674", "block_size": 16, "order": "shuffle", '
    '"seed": 7, "epoch": 0, "position": 20, "step": 5, "base": 0, '
    '"skipped": [[0, 32, 40], [1, 8, 12]]}',
    [[178, 111, 187, 20], [2, 12, 258, 242]],
)
OLD_RANDOM = (
    '{"format": 1, "fingerprint": "afabe162c3218674", "block_size": 16, "order": "random", '
    '"seed": 7, "epoch": 0, "position": 12, "step": 3, "base": 0, "skipped": []}',
    [[1556, 1124, 3679, 164], [4558, 294, 3480, 2485]],
)
OLD_MIXTURE = (
    '{"format": 1, "fingerprint": "22c3f5dd66892e5d", "block_size": 16, "order": "shuffle", '
    '"seed": 7, "epoch": 1, "position": 24, "step": 6, "base": 496, "skipped": []}',
    [[187, 488, 269, 146], [426, 224, 298, 81]],
)
# Those of batches: a dict each, which JSON had held.
OLD_BATCHES = {
    "format": 1, "epoch": 2, "position": 40, "seed": 3, "order": "shuffle", "size": 100,
}  # fmt: skip
OLD_END = {
    "format": 1, "epoch": 0, "position": 100, "seed": 0, "order": "sequential", "size": 100,
}  # fmt: skip
OLD_ROWS = {"format": 1, "epoch": 0, "position": 20, "seed": 0, "order": "rows", "size": 100}


@pytest.fixture
def tokens(tmp_path):
    for name, count, factor in (("t", 5000, 40503), ("u", 3000, 977)):
        values = np.arange(count, dtype=np.uint32) * factor % 50257
        values.astype("<u2").tofile(tmp_path / f"{name}.bin")
    with (
        lt.tokens(tmp_path / "t.bin", dtype="uint16") as t,
        lt.tokens(tmp_path / "u.bin", dtype="uint16") as u,
    ):
        yield t, u


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "m.npy", np.arange(300, dtype=np.float32).reshape(100, 3))
    return tmp_path / "m.npy"


def indices(batches):
    return [idx.tolist() for idx, _ in batches]


@pytest.mark.parametrize(
    ("old", "mixed", "order"),
    [
        (OLD_LOADER, False, "shuffle"),
        (OLD_RANDOM, False, "random"),
        (OLD_MIXTURE, True, "shuffle"),
    ],
)
def test_a_loader_takes_a_state_of_version_0_1_0(tokens, old, mixed, order):
    t, u = tokens
    state, expected = old
    source = [(t, 0.7), (u, 0.3)] if mixed else t
    with lt.Loader(source, 4, 16, order, seed=7) as loader:
        loader.load_state_dict(json.loads(state))
        assert loader.state_dict() == json.loads(state)
        # That version numbered the windows of all sources together.
        firsts = np.array([0, (len(t) - 1) // 16])
        batches = [loader.next() for _ in expected]
        together = [b.index + (0 if b.sources is None else firsts[b.sources]) for b in batches]
        assert [numbers.tolist() for numbers in together] == expected


def test_batches_take_a_state_of_version_0_1_0(path):
    with lt.open(path) as a:
        batches = a.batches(10, seed=3)
        batches.load_state_dict(OLD_BATCHES)
        assert batches.position == 4
        assert indices(batches) == indices(a.batches(10, seed=3, epoch=2))[4:]
        batches = a.batches(10, order="sequential")
        batches.load_state_dict(OLD_END)
        assert indices(batches) == []
        batches = a.batches(10, order=np.arange(100)[::-1])
        batches.load_state_dict(OLD_ROWS)
        assert next(batches)[0].tolist() == list(range(79, 69, -1))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"size": 99}, "size 99, but these batches have 100"),
        ({"seed": 4}, "seed differs: the state has 4, these batches have 3"),
        ({"order": "rows"}, "order differs"),
        ({"position": 101}, "position 101 is beyond the 100"),
        ({"format": 2}, "format differs"),
        ({"epoch": -1}, "epoch in state must be at least 0"),
    ],
)
def test_an_old_state_of_other_batches_is_refused(path, change, says):
    with lt.open(path) as a, pytest.raises(ValueError, match=says):
        a.batches(10, seed=3).load_state_dict({**OLD_BATCHES, **change})


def test_batches_resume_with_any_batch_size_and_world_size(path):
    with lt.open(path) as a:
        whole = [row for batch in indices(a.batches(7, seed=3, epoch=2)) for row in batch]
        first = a.batches(7, seed=3, epoch=2)
        for done in range(0, 99, 14):
            state = json.loads(json.dumps(first.state_dict()))
            assert len(json.dumps(state)) < 1000
            for size, world in ((7, 1), (3, 1), (5, 2), (100, 3)):
                rest = []
                for rank in range(world):
                    batches = a.batches(size, seed=3, rank=rank, world_size=world)
                    batches.load_state_dict(state)
                    rest.append(indices(batches))
                steps = max(map(len, rest))
                dealt = [
                    row for s in range(steps) for part in rest if s < len(part) for row in part[s]
                ]
                assert dealt == whole[done:], (done, size, world)
            next(first)
            next(first, None)


def test_a_state_goes_from_one_array_to_its_copy_and_to_no_other(path, tmp_path):
    with lt.open(path) as a:
        batches = a.batches(10, seed=3)
        next(batches)
        state = batches.state_dict()
    shutil.copy(path, tmp_path / "copy.npy")
    data = np.load(path)
    np.save(tmp_path / "type.npy", data.astype(np.float64))
    np.save(tmp_path / "fortran.npy", np.asfortranarray(data))
    data[99, 2] += 1
    np.save(tmp_path / "last.npy", data)
    with lt.open(tmp_path / "copy.npy") as copy:
        batches = copy.batches(10, seed=3)
        batches.load_state_dict(state)
        assert batches.position == 1
    for name in ("type", "fortran", "last"):
        with lt.open(tmp_path / f"{name}.npy") as other:
            batches = other.batches(10, seed=3)
            with pytest.raises(ValueError, match="the data differs"):
                batches.load_state_dict(state)
            assert batches.position == 0


def test_the_rows_of_an_order_of_your_own_are_part_of_the_state(path):
    with lt.open(path) as a:
        state = a.batches(10, order=np.arange(50)).state_dict()
        for order in (np.arange(50, dtype=np.int32), list(range(50)), range(50)):
            a.batches(10, order=order).load_state_dict(state)
        for order in (np.arange(51), np.arange(50)[::-1]):
            with pytest.raises(ValueError, match="the data differs"):
                a.batches(10, order=order).load_state_dict(state)
        with pytest.raises(ValueError, match="order differs"):
            a.batches(10).load_state_dict(state)


def test_arrays_and_tokens_have_the_same_keys(path, tokens):
    with lt.open(path) as a, lt.Loader(tokens[0], 4, 16) as loader:
        state = a.batches(10).state_dict()
        assert list(state) == list(loader.state_dict())
        assert state["block_size"] == 0
        with pytest.raises(ValueError, match="saved by a reader of rows"):
            loader.load_state_dict(state)


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (1,), (3, 70)])
@pytest.mark.parametrize("dtype", ["float32", "V3000", [("a", "<i2"), ("b", "|S7")]])
def test_arrays_of_any_shape_have_a_state(tmp_path, shape, dtype):
    np.save(tmp_path / "m.npy", np.zeros(shape, dtype))
    with lt.open(tmp_path / "m.npy") as a:
        batches = a.batches(2)
        state = batches.state_dict()
        whole = indices(batches)
        assert batches.state_dict()["position"] == shape[0]
        batches.load_state_dict(state)
        assert indices(batches) == whole
