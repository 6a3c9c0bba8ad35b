"""device=: batches that are copied ahead, by a simulated device that is late."""

from __future__ import annotations

import gc
import json
import pickle
import random

import lowtide as lt
import numpy as np
import pytest
from torch_files import BLOCK, WINDOWS, numbered_tokens, open_tokens, window_of, write_tokens

torch = pytest.importorskip("torch")

from fake_device import FakeCopier  # noqa: E402  # it needs torch

tokens = numbered_tokens
DELAYS = (0.0, 0.0005, 0.005)


@pytest.fixture
def copier(monkeypatch):
    found = FakeCopier()
    monkeypatch.setattr(lt.torch, "open_copier", lambda device: found if device else None)
    return found


@pytest.fixture(params=DELAYS)
def late(request, monkeypatch):
    found = FakeCopier(seed=3, most_delay_s=request.param)
    monkeypatch.setattr(lt.torch, "open_copier", lambda device: found if device else None)
    return found


def same(mine, theirs):
    """Whether two batches have the same arrays and facts."""
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs):
        assert isinstance(one, torch.Tensor)
        assert np.array_equal(one.numpy(), other)
    assert (mine.step, mine.epoch) == (theirs.step, theirs.epoch)
    assert mine.index.tolist() == theirs.index.tolist()
    return True


def place_of(loader):
    return loader.state_dict(), loader.step, loader.epoch, loader.steps_left


def held_bytes(loader):
    gc.collect()
    return loader.stats()["memory"]["held_by_you"]


def test_windows_arrive_in_order_and_unchanged_at_any_delay(tokens, late):
    plain = lt.Loader(tokens, 7, BLOCK, seed=11, epochs=2)
    loader = lt.torch.Loader(tokens, 7, BLOCK, seed=11, epochs=2, device="cuda")
    for epoch in range(2):
        assert loader.epoch == epoch
        assert sum(same(mine, theirs) for mine, theirs in zip(loader, plain, strict=True)) == len(
            plain
        )
    assert list(loader) == []
    with pytest.raises(StopIteration):
        loader.next()


def test_rows_come_in_the_structure_of_their_source(tmp_path, late):
    x = np.random.default_rng(1).random((500, 3), np.float32)
    y = np.arange(500, dtype=np.int16)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    source = {"x": lt.open(tmp_path / "x.npy"), "y": lt.open(tmp_path / "y.npy")}
    loader = lt.torch.Loader(source, 9, seed=1, device="cuda", drop_last=False)
    for batch in loader:
        assert batch.keys() == ("x", "y")
        assert np.array_equal(batch["x"].numpy(), x[batch.index.numpy()])
        assert np.array_equal(batch["y"].numpy(), y[batch.index.numpy()])
    assert late.sent[0] == [torch.float32, torch.int16]


def test_ragged_samples_come_with_their_offsets(tmp_path, late):
    values = np.arange(400, dtype=np.int32)
    np.save(tmp_path / "values.npy", values)
    bounds = np.array([0, 3, 3, 10, 60, 61, 200, 399, 400], np.int64)
    source = lt.Ragged(lt.open(tmp_path / "values.npy"), bounds)
    plain = lt.Loader(source, 3, seed=2, epochs=2)
    loader = lt.torch.Loader(source, 3, seed=2, epochs=2, device="cuda")
    assert all(same(mine, theirs) for mine, theirs in zip(loader, plain))
    assert loader.next().nested().is_nested


def test_a_mixture_names_the_source_of_each_row(tmp_path, late):
    np.save(tmp_path / "a.npy", np.arange(50))
    np.save(tmp_path / "b.npy", np.arange(1000, 1030))
    mixture = [(lt.open(tmp_path / name), 1) for name in ("a.npy", "b.npy")]
    loader = lt.torch.Loader(mixture, 9, seed=1, device="cuda")
    for batch in loader:
        assert torch.equal(batch[0], 1000 * batch.sources + batch.index)


def test_positions_and_cu_seqlens_follow_to_the_device(tmp_path, copier):
    path, _ = write_tokens(tmp_path)
    with open_tokens(path, eot=120) as t:
        options = {"order": "sequential", "documents": "separate"}
        mine = lt.torch.Loader(t, 4, BLOCK, device="cuda", **options).next()
        theirs = lt.Loader(t, 4, BLOCK, **options).next()
    assert same(mine, theirs)
    assert mine.positions.tolist() == theirs.positions.tolist()
    assert mine.cu_seqlens.tolist() == theirs.cu_seqlens.tolist()
    assert copier.sent[0][2:] == [torch.int32, torch.int32]
    again = pickle.loads(pickle.dumps(mine))
    assert torch.equal(again.positions, mine.positions)


@pytest.mark.parametrize(
    ("dtype", "sent"),
    [
        (None, torch.uint16),
        (torch.int32, torch.uint16),
        (np.int64, torch.uint16),
        ("uint16", torch.uint16),
        ("int16", torch.int16),
    ],
)
def test_tokens_are_sent_as_stored_and_widened_on_the_device(tokens, copier, dtype, sent):
    loader = lt.torch.Loader(tokens, 5, BLOCK, order="sequential", dtype=dtype, device="cuda")
    x, y = loader.next()
    wanted = lt.Loader(tokens, 5, BLOCK, order="sequential", dtype="int64").next()
    assert copier.sent[0] == [sent, sent]
    expected = {None: torch.int64, np.int64: torch.int64}.get(dtype, dtype)
    assert x.dtype == y.dtype == (getattr(torch, expected) if type(expected) is str else expected)
    assert np.array_equal(x.numpy(), wanted.x) and np.array_equal(y.numpy(), wanted.y)


def test_sources_of_several_types_are_sent_in_the_type_of_the_loader(tmp_path, tokens, copier):
    wide = tmp_path / "wide.bin"
    (np.arange(1000, dtype=np.int64) + 100).astype("<u4").tofile(wide)
    with open_tokens(wide, dtype="uint32") as t:
        lt.torch.Loader([(tokens, 0.5), (t, 0.5)], 5, BLOCK, device="cuda").next()
        lt.torch.Loader(t, 5, BLOCK, device="cuda").next()
    assert copier.sent[0] == [torch.int64, torch.int64]
    assert copier.sent[-1] == [torch.uint32, torch.uint32]


def test_batches_that_are_on_their_way_do_not_count(tokens, late):
    plain = lt.Loader(tokens, 60, BLOCK, seed=4, epochs=3)
    loader = lt.torch.Loader(tokens, 60, BLOCK, seed=4, epochs=3, device="cuda")
    assert WINDOWS // 60 == len(loader) == len(plain) == 4
    for _ in range(12):
        assert place_of(loader) == place_of(plain)
        state = json.loads(json.dumps(loader.state_dict()))
        same(loader.next(), plain.next())
        again = lt.torch.Loader(tokens, 30, BLOCK, seed=4, device="cuda")
        again.load_state_dict(state)
        assert place_of(again)[0] == state
    assert place_of(loader) == place_of(plain)


def test_any_moves_lead_where_those_of_the_plain_loader_lead(tokens, late):
    chance = random.Random(8)
    plain = lt.Loader(tokens, 25, BLOCK, seed=6)
    loader = lt.torch.Loader(tokens, 25, BLOCK, seed=6, device="cuda")
    states = [plain.state_dict()]
    for _ in range(150):
        move = chance.randrange(8)
        if move == 0:
            step, epoch = chance.randrange(10), chance.choice([None, plain.epoch, 3])
            plain.seek(step, epoch)
            loader.seek(step, epoch)
        elif move == 1 and plain.step < 8 and len(plain.state_dict()["skipped"]) < 10:
            steps = (plain.step + 1, plain.step + 2)
            plain.skip(steps)
            loader.skip(steps)
        elif move == 2:
            state = chance.choice(states)
            plain.load_state_dict(state)
            loader.load_state_dict(state)
        elif move == 3:
            states.append(loader.state_dict())
        elif move == 4:
            rest = list(plain) if plain.steps_left < 4 else []
            assert all(same(mine, theirs) for mine, theirs in zip(loader if rest else [], rest))
        else:
            same(loader.next(), plain.next())
        assert place_of(loader) == place_of(plain)
        token = chance.randrange(WINDOWS * BLOCK)
        assert loader.when(token) == plain.when(token)


def test_a_wrong_move_leaves_the_loader_where_it_was(tokens, copier):
    loader = lt.torch.Loader(tokens, 25, BLOCK, seed=6, device="cuda")
    first = window_of(loader.next().x)
    before = place_of(loader)
    with pytest.raises(IndexError):
        loader.seek(99)
    with pytest.raises(ValueError, match="has passed"):
        loader.skip((0, 1))
    other = lt.Loader(tokens, 25, BLOCK, seed=7)
    with pytest.raises(ValueError, match="seed"):
        loader.load_state_dict(other.state_dict())
    assert place_of(loader) == before
    loader.seek(0)
    assert window_of(loader.next().x) == first


def test_a_lease_is_kept_until_its_event_has_passed(tokens, copier):
    loader = lt.torch.Loader(tokens, 10, BLOCK, device="cuda")
    copier.hold()
    for _ in range(5):
        loader.next()
    held = held_bytes(loader)
    assert held >= 4 * 2 * 10 * BLOCK * 2, "nobody has the batches, but they are being copied"
    copier.release()
    for _ in range(5):
        loader.next()
    assert held_bytes(loader) < held, "the delivered ones are on the device"


def test_close_waits_for_the_copies_and_leaves_delivered_batches(tokens, late):
    plain = lt.Loader(tokens, 10, BLOCK, seed=1)
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=1, device="cuda")
    batches = iter(loader)
    kept = [next(batches) for _ in range(3)]
    ahead = loader._core
    loader.close()
    assert loader.closed
    assert not ahead._sources
    assert list(batches) == []
    with pytest.raises(ValueError, match="closed"):
        loader.next()
    assert all(same(batch, plain.next()) for batch in kept)


def test_a_forgotten_loader_waits_for_its_copies(tokens, copier):
    loader = lt.torch.Loader(tokens, 10, BLOCK, device="cuda")
    loader.next()
    sources = loader._core._sources
    assert sources
    del loader
    gc.collect()
    assert not sources


class FailingCore:
    """A core whose read of one step fails a few times."""

    def __init__(self, core, step, times):
        self._core, self._step, self._times = core, step, times

    def _check(self):
        if self._core.step() == self._step and self._times:
            self._times -= 1
            raise OSError(f"cannot read step {self._step}")

    def next(self, make, epoch):
        self._check()
        return self._core.next(make, epoch)

    def next_ready(self, make):
        self._check()
        return self._core.next_ready(make)

    def __getattr__(self, name):
        return getattr(self._core, name)


@pytest.mark.parametrize("times", [1, 2])
def test_a_failed_read_is_heard_of_at_its_step(tokens, copier, times):
    plain = lt.Loader(tokens, 10, BLOCK, seed=3)
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=3, device="cuda")
    loader._core._core = FailingCore(loader._core._core, 5, times)
    for _ in range(5):
        same(loader.next(), plain.next())
    for _ in range(times):
        assert place_of(loader) == place_of(plain)
        with pytest.raises(OSError, match="cannot read step 5"):
            loader.next()
    for _ in range(5):
        assert place_of(loader) == place_of(plain)
        same(loader.next(), plain.next())


def test_a_batch_that_could_not_be_copied_is_tried_again(tokens, copier):
    plain = lt.Loader(tokens, 10, BLOCK, seed=3)
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=3, device="cuda")
    copier.fails = 1
    with pytest.raises(RuntimeError, match="out of memory"):
        loader.next()
    assert loader.step == 0
    for _ in range(3):
        same(loader.next(), plain.next())
    copier.fails = 3
    delivered = 0
    while delivered < 10:
        try:
            batch = loader.next()
        except RuntimeError:
            assert copier.fails < 3
        else:
            same(batch, plain.next())
            delivered += 1
        assert place_of(loader) == place_of(plain)
    assert copier.fails == 0


def test_a_loader_pickles_with_its_place_and_its_device(tokens, copier):
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=4, device="cuda")
    loader.next()
    assert repr(loader).endswith("device='cpu'>")  # that of the simulated one
    again = pickle.loads(pickle.dumps(loader))
    assert again.step == 1 and again._copier is copier
    assert [window_of(batch.x) for batch in again] == [window_of(batch.x) for batch in loader]


def test_the_cpu_is_no_device(tokens):
    loader = lt.torch.Loader(tokens, 10, BLOCK, device="cpu")
    assert loader._copier is None
    assert "device" not in repr(loader)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is an accelerator")
def test_a_device_without_cuda_is_refused(tokens):
    for device in ("cuda", "cuda:1", torch.device("cuda", 0)):
        with pytest.raises(ValueError, match=r"device: there is no 'cuda.*torch finds no CUDA"):
            lt.torch.Loader(tokens, 10, BLOCK, device=device)


def test_a_device_of_another_kind_is_refused(tokens):
    with pytest.raises(ValueError, match="device: batches can be copied to CUDA devices, not to"):
        lt.torch.Loader(tokens, 10, BLOCK, device="mps")
    with pytest.raises(ValueError, match="device: "):
        lt.torch.Loader(tokens, 10, BLOCK, device="nonsense")
    with pytest.raises(TypeError):
        lt.torch.Loader(tokens, 10, BLOCK, device=1.5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_a_cuda_device_gets_the_same_batches(tokens):
    plain = lt.Loader(tokens, 10, BLOCK, seed=1, epochs=2)
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=1, epochs=2, device="cuda")
    for mine, theirs in zip(loader, plain):
        assert mine.x.is_cuda and mine.x.dtype == torch.int64
        assert np.array_equal(mine.x.cpu().numpy(), theirs.x)
