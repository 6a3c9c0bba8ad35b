"""One Loader in several threads and processes, and Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import warnings

import lowtide as lt
import numpy as np
import pytest
from conftest import in_threads, wait_for
from loader_runs import expect_goes_on_in_a_child
from token_files import BLOCK, COUNT, nanogpt_batch


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_a_loader_goes_on_in_a_child(tokens, way):
    with lt.Loader(tokens, 5, BLOCK, seed=4) as loader:
        expect_goes_on_in_a_child(loader, way, 7)


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_tokens_in_a_child(tokens, data, way):
    context = multiprocessing.get_context(way)
    tokens.windows([0, 5], BLOCK)
    results = context.SimpleQueue()
    child = context.Process(target=read_windows, args=(tokens, results))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    x, y = results.get()
    expected = nanogpt_batch(data, [3, 99], BLOCK)
    assert (x, y) == (expected[0].tobytes(), expected[1].tobytes())
    child.join(120)
    assert child.exitcode == 0


def read_windows(tokens, results):
    x, y = tokens.windows([3, 99], BLOCK)
    results.put((x.tobytes(), y.tobytes()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_goes_on_though_another_thread_was_waiting(tokens, data):
    for _ in range(10):
        loader = lt.Loader(tokens, 1, BLOCK, seed=3)
        stop = threading.Event()

        def iterate(loader=loader, stop=stop):
            while not stop.is_set():
                loader.next()

        thread = threading.Thread(target=iterate)
        thread.start()
        child = os.fork()
        if child == 0:
            batch = loader.next()
            expected = nanogpt_batch(data, batch.samples * BLOCK, BLOCK)
            right = np.array_equal(batch.x, expected[0]) and np.array_equal(batch.y, expected[1])
            loader.close()
            os._exit(0 if right else 1)
        stop.set()
        thread.join()
        loader.close()
        assert wait_for(child) == 0


def test_many_threads_share_one_epoch(tokens):
    seen, lock = [], threading.Lock()

    def work(number):
        for batch in iterators[number]:
            with lock:
                seen.append(batch.samples)

    with lt.Loader(tokens, 2, BLOCK) as loader:
        iterators = [iter(loader) for _ in range(4)]
        in_threads(work, 4)
        assert loader.epoch == 1
    seen = np.concatenate(seen)
    assert len(np.unique(seen)) == len(seen) == 100


def test_many_threads_cut_windows_of_one_file(tokens, data):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            starts = rng.integers(0, COUNT - 65, int(rng.integers(1, 9)))
            block_size = int(rng.integers(1, 65))
            x, y = tokens.windows(starts, block_size)
            expected = nanogpt_batch(data, starts, block_size)
            if not (np.array_equal(x, expected[0]) and np.array_equal(y, expected[1])):
                wrong.append(seed)

    in_threads(work, 8)
    assert wrong == []


def test_close_from_another_thread_ends_the_iteration(tokens):
    loader = lt.Loader(tokens, 1, BLOCK)
    closer = threading.Timer(0.05, loader.close)
    closer.start()
    count = 0
    while not loader.closed:
        try:
            for _ in loader:
                count += 1
        except ValueError as error:
            assert "closed" in str(error)
    closer.join()
    assert count


def test_ctrl_c_ends_an_iteration(tokens):
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with lt.Loader(tokens, 1, BLOCK) as loader:
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.1, 0.5)
                while True:
                    loader.next()
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert loader.next().x.shape == (1, BLOCK)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_state_can_be_asked_for_while_another_thread_trains(tokens):
    with lt.Loader(tokens, 1, BLOCK) as loader:
        done = threading.Event()

        def train():
            while not done.is_set():
                loader.next()

        thread = threading.Thread(target=train)
        thread.start()
        states = [loader.state_dict() for _ in range(50)]
        done.set()
        thread.join()
    places = [(state["epoch"], state["step"]) for state in states]
    assert places == sorted(places)


def test_pickles_hold_the_place(tokens):
    with lt.Loader(tokens, 5, BLOCK, seed=4, epochs=2, dtype="int32") as loader:
        for _ in range(23):
            loader.next()
        text = pickle.dumps(loader)
        assert len(text) < 8192
        with pickle.loads(text) as again:
            assert again.state_dict() == loader.state_dict()
            for mine, other in zip(loader, again):
                assert (mine.epoch, mine.step) == (other.epoch, other.step)
                np.testing.assert_array_equal(mine.x, other.x)
                assert other.x.dtype == np.int32
            assert list(loader) == list(again) == []
