"""The buffers of tensors: borrowed, unchanged while anything refers to them, then returned."""

from __future__ import annotations

import gc

import lowtide as lt
import pytest
from conftest import run
from torch_files import BLOCK, numbered_tokens, open_tokens, write_tokens

torch = pytest.importorskip("torch")


tokens = numbered_tokens


def held_bytes(source):
    gc.collect()
    return source.stats()["memory"]["held_by_you"]


def test_tensors_are_the_lent_buffer_and_give_it_back(tokens):
    def lend():
        return lt.torch.windows(tokens, [0, 7], BLOCK)[0]

    first = lend()
    address = first.data_ptr()
    row = first[1]
    del first
    other = lend()
    assert other.data_ptr() != address, "a view holds the buffer"
    assert held_bytes(tokens) > 0
    del row
    assert held_bytes(tokens) == 0
    assert lend().data_ptr() == address, "and then it serves again"


def test_x_and_y_hold_the_buffer_each_by_itself(tokens):
    loader = lt.torch.Loader(tokens, 4, BLOCK)
    kept = [loader.next()[at] for at in (0, 1, 0, 1)]
    assert held_bytes(loader) >= 3 * 2 * 4 * BLOCK * 8
    del kept
    assert held_bytes(loader) == 0


def test_a_tensor_that_nobody_takes_gives_its_buffer_back(tokens):
    def keep(capsule):
        return capsule

    kept = [tokens._core.window_tensors([0, 7], BLOCK, "int64", keep) for _ in range(3)]
    x = torch.utils.dlpack.from_dlpack(kept[0][0])
    assert x.tolist() == tokens.windows([0, 7], BLOCK)[0].tolist()
    with pytest.raises(RuntimeError, match="once"):
        torch.utils.dlpack.from_dlpack(kept[0][0])
    assert held_bytes(tokens) > 0
    del kept, x
    assert held_bytes(tokens) == 0


def test_a_tensor_that_cannot_be_made_gives_its_buffer_back(tokens):
    kept = lt.torch.windows(tokens, [0, 7], BLOCK)  # in hand, which is not counted
    made = []

    def fail_at_y(capsule):
        made.append(torch.utils.dlpack.from_dlpack(capsule))
        if len(made) == 2:
            raise MemoryError("no room for y")
        return made[0]

    with pytest.raises(MemoryError, match="no room for y"):
        tokens._core.window_tensors([0, 7], BLOCK, "int64", fail_at_y)
    assert held_bytes(tokens) > 0
    made.clear()
    assert held_bytes(tokens) == 0
    del kept


def test_tensors_may_go_on_another_thread_and_after_the_interpreter(tmp_path):
    path, _ = write_tokens(tmp_path)
    done = run(
        f"""
import threading, torch, lowtide as lt, lowtide.torch
t = lt.tokens({str(path)!r}, dtype="uint16")
kept = [lt.torch.windows(t, [0], {BLOCK}) for _ in range(8)]
thread = threading.Thread(target=kept.clear)
thread.start()
thread.join()
assert t.stats()["memory"]["held_by_you"] == 0
torch.kept = lt.torch.windows(t, [0], {BLOCK})  # goes with the module, after all else
print("over")
"""
    )
    assert done.stdout == "over\n" and done.stderr == ""


def test_a_kept_batch_never_changes(tokens):
    loader = lt.torch.Loader(tokens, 10, BLOCK, seed=5)
    kept, copies = [], []
    for batch in loader:
        if batch.step % 3 == 0:
            kept.append(batch.x)
            copies.append(batch.x.clone())
    for _ in range(60):
        loader.next()
    assert all(torch.equal(*pair) for pair in zip(kept, copies))


def test_tensors_live_on_after_everything_is_closed(tmp_path):
    path, _ = write_tokens(tmp_path)
    tokens = open_tokens(path)
    loader = lt.torch.Loader(tokens, 10, BLOCK)
    x, y = loader.next()
    row = x[3]
    before = x.clone(), y.clone(), row.clone()
    loader.close()
    tokens.close()
    del loader, tokens
    gc.collect()
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])
    del x
    gc.collect()
    assert torch.equal(row, before[2])
    row += 1
    assert torch.equal(row, before[2] + 1)
