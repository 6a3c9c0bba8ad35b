"""lt.torch.windows: the batch of nanoGPT's get_batch, from starts of any kind."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest
from torch_files import BLOCK, TOKENS, numbered_tokens

torch = pytest.importorskip("torch")


tokens = numbered_tokens


def nano_gpt_batch(data, ix, block_size):
    """The slow obvious twin."""
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack(
        [torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix]
    )
    return x, y


def test_windows_are_the_batch_of_nano_gpt(tokens):
    data = tokens[:]
    torch.manual_seed(3)
    for _ in range(20):
        ix = torch.randint(len(tokens) - BLOCK, (12,))
        x, y = lt.torch.windows(tokens, ix, BLOCK)
        expected_x, expected_y = nano_gpt_batch(data, ix.tolist(), BLOCK)
        assert torch.equal(x, expected_x)
        assert torch.equal(y, expected_y)
        assert x.is_contiguous() and y.is_contiguous()


@pytest.mark.parametrize(
    "ix",
    [
        [0, 5, 5],
        (7, 1),
        np.array([3, 2], np.int32),
        torch.tensor([9]),
        torch.arange(10)[::3],
        torch.tensor([4, 1], dtype=torch.int16),
    ],
)
def test_windows_take_starts_of_any_kind(tokens, ix):
    x, _ = lt.torch.windows(tokens, ix, BLOCK)
    assert (x[:, 0] - 100).tolist() == [int(i) for i in ix]


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        (torch.int64, torch.int64),
        (torch.int32, torch.int32),
        (torch.int16, torch.int16),
        (torch.uint16, torch.uint16),
        ("int32", torch.int32),
        (np.int32, torch.int32),
        (np.dtype("int16"), torch.int16),
        ("i4", torch.int32),
        ("<u2", torch.uint16),
        (int, torch.int64),
    ],
)
def test_windows_have_the_type_asked_for(tokens, dtype, found):
    x, y = lt.torch.windows(tokens, [4], BLOCK, dtype=dtype)
    assert x.dtype == y.dtype == found
    assert x.tolist() == [list(range(104, 104 + BLOCK))]
    loader = lt.torch.Loader(tokens, 2, BLOCK, dtype=dtype)
    assert loader.next().x.dtype == found
    assert lt.torch.Dataset(tokens, BLOCK, dtype=dtype)[0][0].dtype == found


def test_a_type_too_narrow_or_not_whole_is_refused(tokens):
    with pytest.raises(ValueError, match="uint8"):
        lt.torch.windows(tokens, [TOKENS - BLOCK - 1], BLOCK, dtype=torch.uint8)
    with pytest.raises((TypeError, ValueError), match="float32"):
        lt.torch.windows(tokens, [0], BLOCK, dtype=torch.float32)
    with pytest.raises(ValueError, match=r"one of uint8, int8, .* not float32"):
        lt.torch.windows(tokens, [0], BLOCK, dtype="float32")
    with pytest.raises(TypeError, match="nonsense"):
        lt.torch.windows(tokens, [0], BLOCK, dtype="nonsense")


@pytest.mark.parametrize(
    ("size", "error", "says"),
    [
        (0, ValueError, "block_size must be at least 1, not 0"),
        (-1, ValueError, "block_size must be at least 1, not -1"),
        (2**63, ValueError, "block_size must be at most"),
        (TOKENS, ValueError, "does not fit into a stream"),
        (True, TypeError, "not bool"),
        (4.0, TypeError, "not float"),
    ],
)
def test_invalid_block_sizes_are_refused(tokens, size, error, says):
    with pytest.raises(error, match=says):
        lt.torch.windows(tokens, torch.tensor([0]), size)


def test_a_block_size_may_be_a_numpy_integer(tokens):
    assert lt.torch.windows(tokens, torch.tensor([0]), np.int64(BLOCK))[0].shape == (1, BLOCK)


def test_a_window_that_is_not_all_inside_is_an_index_error(tokens):
    lt.torch.windows(tokens, [TOKENS - BLOCK - 1], BLOCK)
    for start in (TOKENS - BLOCK, -1):
        for ix in ([start], torch.tensor([5, start]), torch.tensor([start], dtype=torch.int32)):
            with pytest.raises(IndexError, match=f"is {start}; a window of {BLOCK}"):
                lt.torch.windows(tokens, ix, BLOCK)


@pytest.mark.parametrize(
    ("ix", "error", "says"),
    [
        ([], ValueError, "starts is empty"),
        ([[1, 2]], ValueError, "one axis"),
        ([1.0], TypeError, "integers"),
        ([True], TypeError, "integers"),
    ],
)
def test_invalid_starts_are_refused(tokens, ix, error, says):
    tensor = torch.tensor(ix, dtype=torch.int64 if ix == [] else None)
    for same in (tensor, tensor.numpy(), ix):
        with pytest.raises(error, match=says):
            lt.torch.windows(tokens, same, BLOCK)
