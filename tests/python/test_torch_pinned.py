"""pin_memory=True with CUDA, whose runtime library is a simulated one."""

from __future__ import annotations

import pathlib

import lowtide as lt
import pytest
from conftest import run
from guarded import compiled
from torch_files import BLOCK, numbered_tokens, write_tokens

torch = pytest.importorskip("torch")

tokens = numbered_tokens
HERE = pathlib.Path(__file__).parent

# The library is found by its name, once it is loaded; so each test has a process of its own.
START = """
import ctypes, gc, sys, warnings
cuda = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
import lowtide as lt, numpy as np, torch
warnings.simplefilter("error")
torch.accelerator.is_available = lambda: True
torch.accelerator.current_accelerator = lambda: torch.device("cuda")
def copy(tensor):
    raise AssertionError("torch has copied")
torch.Tensor.pin_memory = copy
PINS, UNPINS, EVENTS, DESTROYED, BYTES, WAITS = range(6)
count = cuda.fake_count
tokens = lt.tokens(sys.argv[2], memory="4MiB")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    built = compiled(
        folder, HERE / "fake_cudart.cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.12"
    )
    return built.rename(folder / "libcudart.so.12")


def succeeds(library, tmp_path, code):
    path, _ = write_tokens(tmp_path)
    done = run(START + code, library, path, timeout_s=60)
    assert done.returncode == 0, done.stderr


def test_the_buffers_of_the_loader_are_pinned_once_and_lent_without_a_copy(library, tmp_path):
    code = f"""
loader = lt.torch.Loader(tokens, 10, {BLOCK}, seed=1, epochs=8, pin_memory=True)
plain = lt.Loader(tokens, 10, {BLOCK}, seed=1, epochs=8)
assert "pin_memory" in repr(loader)
for _ in range(8 * len(plain)):
    x, y = loader.next()
    xb, yb = plain.next()
    assert np.array_equal(x.numpy(), xb) and np.array_equal(y.numpy(), yb)
    del x, y
assert 0 < count(PINS) < 100 < count(EVENTS)
assert count(BYTES) < 4 << 20, "within the budget"
loader.close()
plain.close()
tokens.close()
del loader, plain
gc.collect()
assert count(PINS) == count(UNPINS) and count(EVENTS) == count(DESTROYED)
"""
    succeeds(library, tmp_path, code)


def test_a_dropped_batch_keeps_its_bytes_until_its_event_has_passed(library, tmp_path):
    code = f"""
loader = lt.torch.Loader(tokens, 10, {BLOCK}, seed=1, pin_memory=True)
for _ in range(20):
    cuda.fake_hold(1)
    seen = []
    for _ in range(3):
        x = loader.next().x
        seen.append((x.data_ptr(), x.nbytes, bytes(x.numpy())))
        del x
    assert len({{at for at, _, _ in seen}}) == 3
    for at, size, before in seen:
        assert ctypes.string_at(at, size) == before
    cuda.fake_hold(0)
    loader.next()
"""
    succeeds(library, tmp_path, code)


def test_a_forked_child_leaves_the_device_alone(library, tmp_path):
    code = f"""
import os
warnings.simplefilter("ignore")
loader = lt.torch.Loader(tokens, 10, {BLOCK}, seed=1, pin_memory=True)
kept = loader.next()
child = os.fork()
if child == 0:
    before = [count(which) for which in range(6)]  # the parent's thread goes on until the fork
    del kept
    for _ in range(30):
        loader.next()
    loader.close()
    del loader
    gc.collect()
    os._exit(0 if [count(which) for which in range(6)] == before else 1)
assert os.waitpid(child, 0)[1] == 0
loader.next()
"""
    succeeds(library, tmp_path, code)


def test_without_cuda_the_core_says_why_it_cannot_pin(tokens):
    assert lt._core.why_no_pinning().startswith("CUDA's runtime library (libcudart.so.13")
    options = lt._core.LoaderOptions()
    options.pin_memory = True
    options.block_size = BLOCK
    with pytest.raises(ValueError, match="pin_memory: CUDA's runtime library"):
        lt._core.Loader.open_windows(
            [(tokens._core, 1.0)], mixture=False, options=options, rows=None, weights=None
        )
