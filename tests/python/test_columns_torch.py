"""The same loader with tensors."""

from __future__ import annotations

import gc
import pickle

import lowtide as lt
import numpy as np
import pytest
from column_files import made, opened
from loader_runs import expect_resumes
from token_files import write_megatron

torch = pytest.importorskip("torch")

N = 40


@pytest.fixture
def pair(tmp_path):
    x, y = made("i4", N, 3), np.arange(N)
    with opened(tmp_path, x) as a, opened(tmp_path, y, "y") as b:
        yield (a, b), (x, y)


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16"]
)
def test_every_type_that_torch_has(tmp_path, dtype):
    for shape in ((), (3,), (2, 2), (0,)):
        data = made(dtype, 20, *shape)
        with (
            opened(tmp_path, data, f"v{len(shape)}") as a,
            lt.torch.Loader((a, a), 6, seed=1, drop_last=False) as loader,
        ):
            seen = []
            for batch in loader:
                assert batch.index.dtype == torch.int64
                rows = data[batch.index.numpy()]
                for tensor in batch:
                    assert tensor.dtype == getattr(torch, data.dtype.name)
                    assert tensor.shape == rows.shape and tensor.is_contiguous()
                    assert tensor.numpy().tobytes() == rows.tobytes()
                seen += batch.index.tolist()
            assert sorted(seen) == list(range(20))


def test_bfloat16(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.arange(80, dtype="f4").reshape(20, 4)
    data.astype(ml_dtypes.bfloat16).tofile(tmp_path / "x.bf16")
    with (
        lt.open(tmp_path / "x.bf16", dtype=ml_dtypes.bfloat16, shape=(20, 4)) as a,
        lt.torch.Loader(a, 5, order="sequential") as loader,
    ):
        (x,) = loader.next()
        assert x.dtype == torch.bfloat16
        assert x.float().tolist() == data[:5].tolist()


@pytest.mark.parametrize("dtype", [">f4", "g", "M8[s]", "S3", "V2", [("a", "i4")]], ids=str)
def test_types_that_torch_lacks(tmp_path, pair, dtype):
    with opened(tmp_path, made(dtype, N, 2), "z") as z:
        for source, name in (((*pair[0], z), "column 2"), ({"z": z}, "'z'"), (z, "source")):
            with pytest.raises(TypeError, match=f"{name} has dtype .*torch has no tensors"):
                lt.torch.Loader(source, 4)


def test_structures(pair):
    (a, b), (x, _) = pair
    with lt.torch.Loader({"x": a, "y": b}, 4, order="sequential") as loader:
        batch = loader.next()
        assert batch.keys() == ("x", "y") and batch["x"].tolist() == x[:4].tolist()
        with pytest.raises(KeyError, match="'z'"):
            batch["z"]
    with lt.torch.Loader((a, b), 4, order="sequential") as loader:
        xb, yb = loader.next()
        assert isinstance(xb, torch.Tensor) and yb.tolist() == [0, 1, 2, 3]
        xb += 1  # a buffer of ours, not the file
        loader.seek(0)
        assert loader.next()[0].tolist() == x[:4].tolist()


def test_the_same_rows_as_without_torch(pair):
    for options in ({}, {"rows": slice(None, None, 3)}, {"weights": np.arange(N)}):
        with lt.Loader(pair[0], 4, seed=3, **options) as loader:
            arrays = [(batch.index.tolist(), batch[0].tolist()) for batch in loader]
        with lt.torch.Loader(pair[0], 4, seed=3, **options) as loader:
            assert [(batch.index.tolist(), batch[0].tolist()) for batch in loader] == arrays


def test_rows_and_weights_as_tensors(pair):
    rows = torch.tensor([5, -1, 7, 7])
    with lt.torch.Loader(pair[0], 2, rows=rows) as loader:
        assert sorted(i for batch in loader for i in batch.index.tolist()) == [5, 7, 7, 39]
    mask = torch.zeros(N, dtype=torch.bool)
    mask[3:6] = True
    weights = torch.tensor([0.0, 1.0, 0.0], requires_grad=True)
    with lt.torch.Loader(pair[0], 3, rows=mask, weights=weights) as loader:
        assert loader.next().index.tolist() == [4, 4, 4]


def test_ranks_come_from_the_environment(pair, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with lt.torch.Loader(pair[0], 4, seed=1) as loader:
        assert "rank=1/2" in repr(loader)
        first = loader.next().index.tolist()
    with lt.Loader(pair[0], 8, seed=1) as loader:
        assert loader.next().index.tolist()[4:] == first


def test_a_loader_and_its_batches_pickle(pair):
    with lt.torch.Loader({"x": pair[0][0], "y": pair[0][1]}, 4, seed=1) as loader:
        loader.next()
        with pickle.loads(pickle.dumps(loader)) as again:
            batch, other = loader.next(), again.next()
            assert type(again) is lt.torch.Loader
            assert batch["x"].tolist() == other["x"].tolist() and other.step == 1
        copied = pickle.loads(pickle.dumps(batch))
        assert copied.keys() == ("x", "y") and copied["y"].tolist() == batch["y"].tolist()
        assert copied.index.tolist() == batch.index.tolist()


def test_a_run_resumes(pair):
    expect_resumes(lambda: lt.torch.Loader(pair[0], 4, seed=1))


def test_tensors_hold_their_buffer(pair):
    loader = lt.torch.Loader(pair[0], 4, seed=1)
    kept = [loader.next() for _ in range(8)]
    rows = [(batch.index.tolist(), batch[0][1]) for batch in kept]
    loader.close()
    del loader, kept
    gc.collect()
    for index, row in rows:
        assert row.tolist() == pair[1][0][index[1]].tolist()


def test_ragged_tensors(tmp_path, pair):
    (a, b), (x, _) = pair
    offsets = [0, 3, 3, 20, 38]
    with lt.torch.Loader(lt.ragged(a, offsets), 4, order="sequential") as loader:
        batch = loader.next()
        values, starts = batch
        assert starts.dtype == torch.int64 and starts.tolist() == offsets
        assert values.numpy().tobytes() == x[:38].tobytes()
        nested = batch.nested()
        assert nested.layout == torch.jagged and nested.values().data_ptr() == values.data_ptr()
        assert [len(one) for one in nested.unbind()] == [3, 0, 17, 18]
        assert torch.equal(nested.unbind()[2], values[3:20])
    with opened(tmp_path, np.arange(4), "label") as label:
        source = {"words": lt.ragged(b, offsets), "both": lt.ragged((a, b), offsets), "y": label}
        with lt.torch.Loader(source, 2) as loader:
            batch = loader.next()
            assert torch.equal(batch.nested("words").values(), batch["words"][0])
            for wrong in ("y", "both", None, 2):
                with pytest.raises(TypeError, match=r"nested\(\) is for ragged columns"):
                    batch.nested(wrong)
            with pytest.raises(KeyError):
                batch.nested("z")


def test_documents_as_tensors(tmp_path):
    documents = [[1, 2, 3], [], [4], [5, 6]]
    with (
        lt.tokens(write_megatron(tmp_path / "d", documents)) as t,
        lt.torch.Loader(t.documents, 4, order="sequential") as loader,
    ):
        batch = loader.next()
        assert batch[0].dtype == torch.uint16
        assert [one.tolist() for one in batch.nested().unbind()] == documents
