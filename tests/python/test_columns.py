"""A loader over arrays: every row once, its columns together, in the structure of the source."""

from __future__ import annotations

import copy
import pickle

import lowtide as lt
import numpy as np
import pytest
from column_files import expect_rows, indexes, made, numbered, opened, write_parts

ORDERS = ["shuffle", "sequential"]
DTYPES = [
    *("f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16"),
    *(">f4", ">i8", ">c8", "M8[s]", "S5", "U3", "V7"),
    [("a", "<i4"), ("b", ">f8", (2,)), ("c", "S3")],
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_comes_as_it_is_stored(tmp_path, dtype):
    x, y, z = made(dtype, 50, 3), made(dtype, 50, seed=1), made(dtype, 50, 2, 2, seed=2)
    arrays = [opened(tmp_path, data, name) for name, data in (("x", x), ("y", y), ("z", z))]
    for order in ORDERS:
        with lt.Loader(tuple(arrays), 7, order=order, drop_last=False, epochs=1) as loader:
            batches = list(loader)
        for batch in batches:
            expect_rows(batch, x, y, z)
        assert sorted(indexes(batches)) == list(range(50))
        assert all(part.flags.writeable for part in batches[0])


def test_bfloat16(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.arange(400, dtype="f4").reshape(100, 4).astype(ml_dtypes.bfloat16)
    x.tofile(tmp_path / "x.bf16")
    with (
        lt.open(tmp_path / "x.bf16", dtype=ml_dtypes.bfloat16, shape=(100, 4)) as a,
        opened(tmp_path, np.arange(100), "y") as b,
        lt.Loader((a, b), 8, drop_last=False) as loader,
    ):
        seen = 0
        for batch in loader:
            expect_rows(batch, x, np.arange(100))
            seen += len(batch.index)
        assert seen == 100


@pytest.fixture
def layouts(tmp_path):
    """Columns of every layout, more than 1 MiB together; the last ones are small."""
    n = 6000
    datas = {
        "plain": made("f4", n, 5, 7),
        "fortran": np.asfortranarray(made("f8", n, 12, seed=1)),
        "parts": made("i2", n, 9, seed=2),
        "wide": np.asfortranarray(made("u1", n, 3, 4, seed=3)),
        "sizeless": made("f4", n, 0),
        "label": np.arange(n),
        "small_parts": made("u1", n, seed=4),
    }

    def open_all(**options):
        paths = {name: tmp_path / f"{name}.npy" for name in datas}
        paths["parts"] = write_parts(tmp_path, "parts", datas["parts"], [1, 1, 700, 4999])
        paths["small_parts"] = write_parts(
            tmp_path, "small_parts", datas["small_parts"], [699, 700, 701]
        )
        for name, path in paths.items():
            if not isinstance(path, list):
                np.save(path, datas[name])
        return {name: lt.open(path, **options) for name, path in paths.items()}

    return open_all, datas


@pytest.mark.parametrize("memory", ["1MiB", "64MiB"])
@pytest.mark.parametrize("order", ORDERS)
def test_columns_of_all_layouts_come_together(layouts, engine, order, memory):
    open_all, datas = layouts
    if engine == "memory" and memory == "1MiB":
        return  # more data than memory
    arrays = open_all(engine=engine, memory=memory)
    prefetch = 1 if order == "shuffle" else None
    with lt.Loader(arrays, 100, order=order, seed=5, prefetch=prefetch) as loader:
        assert len(loader) == 60
        for epoch in range(2):
            batches = list(loader) if memory == "64MiB" else loader
            seen = []
            for batch in batches:
                expect_rows(batch, *datas.values())
                seen.append(batch.index)
                assert (batch.epoch, batch.step) == (epoch, len(seen) - 1)
            alone = arrays["plain"].batches(100, order=order, seed=5, epoch=epoch)
            np.testing.assert_array_equal(
                np.concatenate(seen), np.concatenate([idx for idx, _ in alone])
            )
        claims = loader.stats()["memory"]
        assert sum(claims["claims"].values()) <= claims["limit"]


def test_the_order_of_batches_with_any_first_column(layouts):
    open_all, _ = layouts
    arrays = open_all(memory="2MiB")
    orders = []
    for names in (("label",), ("fortran", "label"), ("sizeless",), ("parts", "wide")):
        columns = tuple(arrays[name] for name in names)
        with lt.Loader(columns, 512, seed=9, drop_last=False) as loader:
            orders.append(indexes(loader).tolist())
    assert orders == orders[:1] * 4
    assert sorted(orders[0]) == list(range(6000))


@pytest.fixture
def pair(tmp_path):
    x, y = numbered(23, 3), np.arange(23)
    with opened(tmp_path, x) as a, opened(tmp_path, y, "y") as b:
        yield a, b


def test_a_single_array_gives_a_tuple_of_one(pair):
    for source in (pair[0], (pair[0],)):
        with lt.Loader(source, 4) as loader:
            batch = loader.next()
            (xb,) = batch
            assert isinstance(batch, tuple) and len(batch) == 1
            assert xb.shape == (4, 3)
            np.testing.assert_array_equal(xb[:, 0], batch.index)
            assert batch.index.dtype == np.int64 and batch.index is batch.samples


def test_a_tuple_gives_a_tuple(pair):
    with lt.Loader(pair, 4, order="sequential") as loader:
        batch = loader.next()
        xb, yb = batch
        assert yb.tolist() == batch.index.tolist() == [0, 1, 2, 3]
        assert batch[-1] is yb and xb is batch[0]
        assert not hasattr(batch, "keys") and not hasattr(batch, "x")
        with pytest.raises(TypeError):
            batch["x"]
        with pytest.raises(TypeError, match="nested"):
            batch.nested()
        assert "float32 (4, 3), int64 (4,) epoch=0 step=0" in repr(batch)
        assert batch.positions is None and batch.cu_seqlens is None


def test_a_dict_gives_names(pair):
    with lt.Loader({"image": pair[0], "label": pair[1]}, 4) as loader:
        batch = loader.next()
        xb, yb = batch
        assert batch["image"] is xb and batch["label"] is yb and batch[1] is yb
        assert tuple(batch.keys()) == ("image", "label")
        assert list(dict(batch)) == ["image", "label"]
        with pytest.raises(KeyError, match=r"'x': the columns are 'image', 'label'"):
            batch["x"]
        with pytest.raises(IndexError):
            batch[2]
        np.testing.assert_array_equal(xb[:, 0], yb)


def test_one_array_twice(pair):
    with lt.Loader((pair[0], pair[0], pair[1]), 4) as loader:
        one, two, three = loader.next()
        np.testing.assert_array_equal(one, two)
        one[:] = -1
        np.testing.assert_array_equal(two[:, 0], three)


@pytest.mark.parametrize("named", [False, True])
def test_a_batch_pickles_with_its_facts(pair, named):
    source = {"image": pair[0], "label": pair[1]} if named else pair
    with lt.Loader(source, 4, seed=2) as loader:
        loader.next()
        batch = loader.next()
        for again in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
            np.testing.assert_array_equal(again[0], batch[0])
            np.testing.assert_array_equal(again[1], batch[1])
            np.testing.assert_array_equal(again.index, batch.index)
            assert (again.epoch, again.step) == (0, 1)
            assert again[0].base is not batch[0].base
            if named:
                assert again.keys() == ("image", "label")
                np.testing.assert_array_equal(again["label"], batch["label"])


def test_what_a_loader_says_of_itself(pair):
    with lt.Loader(pair, 4, seed=9, rank=1, world_size=2) as loader:
        loader.next()
        for word in ("4 rows", "'shuffle'", "seed=9", "rank=1/2", "epoch=0", "step=1 of 2"):
            assert word in repr(loader)
        assert (loader.batch_size, loader.block_size) == (4, None)
    assert repr(loader).endswith("closed>")


def test_the_last_batch_is_short_unless_dropped(pair):
    with lt.Loader(pair, 10, drop_last=False, epochs=2) as loader:
        assert [len(batch.index) for batch in loader] == [10, 10, 3]
        assert [len(batch[0]) for batch in loader] == [10, 10, 3]
        with pytest.raises(StopIteration):
            loader.next()
    with lt.Loader(pair, 10, epochs=1) as loader:
        assert [len(batch.index) for batch in loader] == [10, 10]
    with lt.Loader(pair, 1000, drop_last=False) as loader:
        assert len(loader.next().index) == 23


def test_random_draws_come_with_replacement(pair):
    with lt.Loader(pair, 10, order="random", seed=1) as loader:
        assert len(loader) == 2
        found = [loader.next() for _ in range(100)]
        for batch in found:
            np.testing.assert_array_equal(batch[0][:, 0], batch[1])
            np.testing.assert_array_equal(batch[1], batch.index)
    counts = np.bincount(indexes(found), minlength=23)
    assert counts.sum() == 1000 and counts.min() > 10 and counts.max() < 90


def test_rows_without_bytes(tmp_path):
    with opened(tmp_path, np.zeros((9, 0, 4), "f8")) as a, lt.Loader((a, a), 4) as loader:
        batch = loader.next()
        assert batch[0].shape == batch[1].shape == (4, 0, 4) and batch[0].dtype == np.float64
        assert sorted(indexes([batch, loader.next()]))[0] >= 0
