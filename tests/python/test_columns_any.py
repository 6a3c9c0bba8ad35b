"""Any columns, sizes, orders and ranks: every row once, all columns right, also after a resume."""

from __future__ import annotations

import itertools

import lowtide as lt
import numpy as np
from column_files import made, write_parts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

COLUMN = st.tuples(
    st.sampled_from(["f4", "i8", "u1", ">i2", "c16", "?"]),
    st.sampled_from([(), (1,), (3,), (2, 3), (0,), (150,)]),
    st.sampled_from("CF"),
    st.lists(st.integers(0, 90), max_size=3),  # where files end
    st.booleans(),  # ragged
)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    count=st.integers(1, 90),
    columns=st.lists(COLUMN, min_size=1, max_size=4),
    batch_size=st.integers(1, 8),
    world=st.integers(1, 3),
    order=st.sampled_from(["shuffle", "sequential"]),
    step=st.sampled_from([None, 1, -1, 2, -3]),
    memory=st.sampled_from(["2MiB", "4MiB", "16MiB"]),
    engine=st.sampled_from(["auto", "pread"]),
    prefetch=st.sampled_from([None, 1, 3]),
    stop=st.integers(0, 20),
)
def test_any_columns(
    tmp_path_factory, count, columns, batch_size, world, order, step, memory, engine, prefetch, stop
):
    folder = tmp_path_factory.mktemp("any")
    rng = np.random.default_rng(count)
    source, samples = [], []
    for number, (dtype, shape, layout, cuts, ragged) in enumerate(columns):
        lengths = rng.integers(0, 5, count) if ragged else np.ones(count, int)
        ends = np.cumsum([0, *lengths])
        data = made(dtype, ends[-1] + ragged, *shape, seed=number)
        if layout == "F" and not ragged:
            data = np.asfortranarray(data)
        paths = write_parts(folder, f"c{number}", data, sorted(min(c, len(data)) for c in cuts))
        array = lt.open(paths, memory=memory, engine=engine)
        source.append(lt.ragged(array, ends) if ragged else array)
        samples.append([data[a:b] for a, b in itertools.pairwise(ends)] if ragged else data)
    source = {str(number): column for number, column in enumerate(source)}
    rows = None if step is None else slice(None, None, step)
    wanted = np.arange(count)[rows or slice(None)]
    options = {"order": order, "seed": 7, "rows": rows, "prefetch": prefetch}

    def checked(batch):
        for entry, expected in zip(batch, samples):
            if isinstance(entry, np.ndarray):
                assert entry.tobytes() == expected[batch.index].tobytes()
                continue
            values, offsets = entry
            parts = [expected[row] for row in batch.index]
            assert np.diff(offsets).tolist() == [len(part) for part in parts]
            assert values.tobytes() == b"".join(part.tobytes() for part in parts)
        return batch.index.tolist()

    seen, state = [], None
    if len(wanted) >= batch_size * world:
        loaders = [
            lt.Loader(source, batch_size, rank=rank, world_size=world, **options)
            for rank in range(world)
        ]
        for _ in range(min(stop, len(loaders[0]))):
            for loader in loaders:
                seen += checked(loader.next())
        state = loaders[0].state_dict()
        for loader in loaders:
            loader.close()
    with lt.Loader(source, 5, drop_last=False, **options) as rest:
        if state is not None:
            rest.load_state_dict(state)
        if rest.epoch == 0:
            for batch in rest:
                seen += checked(batch)
            assert sorted(seen) == sorted(wanted.tolist())
        if order == "sequential":
            assert seen == wanted.tolist()[: len(seen)]
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
