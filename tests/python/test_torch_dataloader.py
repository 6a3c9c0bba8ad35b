"""The map-style Dataset in real DataLoaders, and the Loader where others iterate and checkpoint."""

from __future__ import annotations

import json
import pickle
import warnings

import lowtide as lt
import pytest
from torch_files import BLOCK, TOKENS, WINDOWS, flat, numbered_tokens, window_of

torch = pytest.importorskip("torch")

from lowtide._torch import dataset as dataset_module  # noqa: E402
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

WAYS = ["fork", "spawn", "forkserver"]

# fork in a process with threads: what the tests are about
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


tokens = numbered_tokens


class Budgets(lt.torch.Dataset):
    """What memory the tokens have that each batch is read from."""

    def __getitems__(self, indices):
        super().__getitems__(indices)
        return [torch.tensor(self._source().memory) for _ in indices]


def test_each_item_is_its_window(tokens):
    dataset = lt.torch.Dataset(tokens, BLOCK)
    assert len(dataset) == WINDOWS == (TOKENS - 1) // BLOCK
    for k in (0, 1, WINDOWS - 1):
        x, y = dataset[k]
        assert x.tolist() == list(range(100 + k * BLOCK, 100 + (k + 1) * BLOCK))
        assert torch.equal(y, x + 1)
    assert torch.equal(dataset[-1][0], dataset[WINDOWS - 1][0])
    assert torch.equal(dataset[torch.tensor(3)][0], dataset[3][0])
    for k in (WINDOWS, -WINDOWS - 1):
        with pytest.raises(IndexError, match=f"window {k} is out of range: there are {WINDOWS}"):
            dataset[k]
    with pytest.raises(TypeError):
        dataset[1.5]
    assert sum(1 for _ in dataset) == WINDOWS  # the old protocol of iteration ends by IndexError


def test_targets_are_what_the_model_wants(tokens):
    x, y = lt.torch.Dataset(tokens, BLOCK)[5]
    assert torch.equal(lt.torch.Dataset(tokens, BLOCK, targets="none")[5], x)
    found = lt.torch.Dataset(tokens, BLOCK, targets="hf")[5]
    assert set(found) == {"input_ids", "labels"}
    assert torch.equal(found["input_ids"], x) and torch.equal(found["labels"], x)
    assert torch.equal(y[:-1], x[1:])
    with pytest.raises(ValueError, match="targets must be one of shifted, none, hf, not 'both'"):
        lt.torch.Dataset(tokens, BLOCK, targets="both")


def test_a_file_shorter_than_a_window_is_refused(tokens):
    with pytest.raises(
        ValueError, match=f"needs at least {TOKENS + 1} tokens, but there are {TOKENS}"
    ):
        lt.torch.Dataset(tokens, TOKENS)
    assert len(lt.torch.Dataset(tokens, TOKENS - 1)) == 1
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        lt.torch.Dataset(tokens, 0)


def test_a_batch_is_one_call(tokens, monkeypatch):
    asked = []

    def counted(source, starts, *arguments):
        asked.append(len(starts))
        return lt.torch.windows(source, starts, *arguments)

    monkeypatch.setattr(dataset_module, "windows", counted)
    dataset = lt.torch.Dataset(tokens, BLOCK)
    assert flat(window_of(x) for x, _ in DataLoader(dataset, batch_size=50)) == list(range(WINDOWS))
    assert asked == [50] * 4 + [WINDOWS - 200]
    assert dataset.__getitems__([]) == []


def test_the_batch_sampler_path_gives_the_sampled_windows(tokens):
    dataset = lt.torch.Dataset(tokens, BLOCK, targets="hf")
    sampler = RandomSampler(dataset, generator=torch.Generator().manual_seed(1))
    expected = list(RandomSampler(dataset, generator=torch.Generator().manual_seed(1)))
    loader = DataLoader(dataset, batch_sampler=BatchSampler(sampler, 16, drop_last=False))
    found = [window_of(batch["input_ids"]) for batch in loader]
    assert flat(found) == expected
    assert [len(batch) for batch in found] == [16] * (WINDOWS // 16) + [WINDOWS % 16]
    one_by_one = DataLoader(dataset, batch_size=None, sampler=SequentialSampler(dataset))
    assert [window_of(item["labels"][None])[0] for item in one_by_one] == list(range(WINDOWS))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_workers_deliver_every_window_once_epoch_after_epoch(tokens, way):
    dataset = lt.torch.Dataset(tokens, BLOCK)
    dataset[0]  # the parent has read before its children exist
    loader = DataLoader(
        dataset, batch_size=20, shuffle=True, num_workers=2, persistent_workers=True,
        multiprocessing_context=way,
    )  # fmt: skip
    epochs = []
    for _ in range(2):
        epochs.append([])
        for x, y in loader:
            assert torch.equal(y, x + 1)
            epochs[-1] += window_of(x)
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(WINDOWS))
    assert window_of(dataset[7][0][None]) == [7]
    del loader


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_workers_share_the_memory(tokens, way):
    dataset = Budgets(tokens, BLOCK)
    assert {budget.item() for budget in DataLoader(dataset, batch_size=None)} == {tokens.memory}
    loader = DataLoader(dataset, batch_size=25, num_workers=2, multiprocessing_context=way)
    found = {budget for batch in loader for budget in batch.tolist()}
    assert found == {tokens.memory // 2}


def test_a_dataset_pickles_small_and_by_reference(tokens):
    dataset = lt.torch.Dataset(tokens, BLOCK, targets="none", dtype=torch.int32)
    text = pickle.dumps(dataset)
    assert len(text) < 2000
    again = pickle.loads(text)
    assert len(again) == WINDOWS
    assert torch.equal(again[9], dataset[9]) and again[9].dtype == torch.int32
    assert "250 windows of 16" in repr(again)


def test_a_loader_in_a_data_loader_without_workers(tokens):
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=1)
    expected = [window_of(batch.x) for batch in lt.Loader(tokens, 10, BLOCK, seed=1, epochs=1)]
    assert isinstance(loader, IterableDataset)
    wrapped = DataLoader(loader, batch_size=None)
    assert len(wrapped) == len(loader) == 25
    assert [window_of(x) for x, _ in wrapped] == expected


def test_a_loader_in_several_workers_is_refused(tokens):
    loader = DataLoader(
        lt.torch.Loader(tokens, 10, BLOCK), batch_size=None, num_workers=2,
        multiprocessing_context="fork",
    )  # fmt: skip
    with pytest.raises(ValueError, match="num_workers=0"):
        next(iter(loader))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_data_loader_over_the_dataset_resumes(tokens, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return stateful.StatefulDataLoader(
            lt.torch.Dataset(tokens, BLOCK), batch_size=10, num_workers=workers,
            multiprocessing_context="fork" if workers else None,
        )  # fmt: skip

    first = make()
    whole = []
    for step, (x, _) in enumerate(first):
        whole.append(window_of(x))
        if step == 6:
            state = pickle.loads(pickle.dumps(first.state_dict()))
    second = make()
    second.load_state_dict(state)
    assert [window_of(x) for x, _ in second] == whole[7:]
    assert [window_of(x) for x, _ in second] == whole


def test_a_stateful_data_loader_over_the_loader_resumes_without_replay(tokens, caplog):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return stateful.StatefulDataLoader(
            lt.torch.Loader(tokens, 10, BLOCK, seed=3), batch_size=None
        )

    first = make()
    epochs = [[], []]
    states = []
    for epoch in epochs:
        for x, _ in first:
            epoch.append(window_of(x))
            states.append(json.loads(json.dumps(first.state_dict())))
    for cut in (1, 12, 25, 26, 40):
        second = make()
        second.load_state_dict(states[cut - 1])
        found = [window_of(x) for x, _ in second]
        found += [window_of(x) for x, _ in second]
        expected = (epochs[0] + epochs[1])[cut:]
        assert found[: len(expected)] == expected
    assert "fast-forwarding" not in caplog.text


class PlainTrainer:
    """What HF's Trainer does with a train dataloader that is not a DataLoader: `len`, one iteration
    an epoch, and, with ignore_data_skip=True, no skipping on resume: the state is a callback's."""

    def __init__(self, loader):
        self.loader = loader
        self.seen = []

    def train(self, epochs, save_at=None, step=0):
        saved = None
        steps_in_epoch = len(self.loader)
        for _ in range(step // steps_in_epoch, epochs):
            for inputs in self.loader:
                x, y = type(inputs)(part.to("cpu") for part in inputs)
                assert torch.equal(y, x + 1)
                self.seen.append(window_of(x))
                step += 1
                if step == save_at:
                    saved = {"step": step, "loader": json.dumps(self.loader.state_dict())}
        return saved


@pytest.mark.parametrize("cut", [1, 10, 24, 25, 26, 49])
def test_a_trainer_of_hugging_face_s_kind_resumes_exactly(tokens, cut):
    whole = PlainTrainer(lt.torch.Loader(tokens, 10, BLOCK, seed=6))
    saved = whole.train(2, save_at=cut)
    assert len(whole.seen) == 50
    for epoch in (whole.seen[:25], whole.seen[25:]):
        assert sorted(flat(epoch)) == list(range(WINDOWS))
    rest = PlainTrainer(lt.torch.Loader(tokens, 10, BLOCK, seed=6))
    rest.loader.load_state_dict(json.loads(saved["loader"]))
    rest.train(2, step=saved["step"])
    assert rest.seen == whole.seen[cut:]


class PlainFit:
    """What Lightning's fit loop does with any iterable: `len` bounds the epoch, and the state of a
    loader that has one goes into the checkpoint and comes back before the iterator is made."""

    def __init__(self, loader):
        self.loader = loader
        self.done = 0
        self.seen = []

    def fit(self, epochs, save_at=None, checkpoint=None):
        saved = None
        if checkpoint is not None:
            self.done = checkpoint["done"]
            self.loader.load_state_dict(checkpoint["loader"])
        limit = len(self.loader)
        while self.done < epochs * limit:
            batches = iter(self.loader)
            while True:
                x, _ = next(batches)
                self.seen.append(window_of(x))
                self.done += 1
                if self.done == save_at:
                    saved = {"done": self.done, "loader": self.loader.state_dict()}
                if self.done % limit == 0:
                    break
        return saved


@pytest.mark.parametrize("cut", [1, 24, 25, 26, 49])
def test_a_trainer_of_lightning_s_kind_resumes_exactly(tokens, cut):
    whole = PlainFit(lt.torch.Loader(tokens, 10, BLOCK, seed=6))
    saved = whole.fit(2, save_at=cut)
    assert len(whole.seen) == 50
    rest = PlainFit(lt.torch.Loader(tokens, 10, BLOCK, seed=6))
    rest.fit(2, checkpoint=saved)
    assert rest.seen == whole.seen[cut:]


def test_no_warning_on_the_way(tokens):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lt.torch.windows(tokens, torch.tensor([1, 2]), BLOCK)
        for _ in DataLoader(lt.torch.Dataset(tokens, BLOCK), batch_size=10):
            pass
        for _ in DataLoader(lt.torch.Loader(tokens, 10, BLOCK), batch_size=None):
            pass
