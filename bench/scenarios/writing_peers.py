"""What others do to shuffle a matrix that is on the disk: datasets, Ray Data, Dask and terashuf.

They run in an interpreter of their own (`--shufflers`), and each gets the same rows in a form that
suits it: a column of bytes in Arrow or Parquet files, or lines of base64. `prepare` writes these
forms once. A method ends when its result is durable, and `check` then compares every row of it with
the matrix. Clusters are started before the clock. Each is limited by its own options, below.
"""

from __future__ import annotations

import base64
import glob
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import matrix
import numpy as np

if TYPE_CHECKING:
    from writing_worker import Task

FILES = 16
RAY_STORE_BYTES = 256 << 20
DASK_WORKERS = 2
DASK_WORKER_BYTES = 2 << 30  # with 1 GiB, a worker was lost and the other one waited for it
TERASHUF_GB = 0.25
_CHECKED = 8192  # rows at a time


def forms(source: str) -> str:
    """The folder of what `prepare` writes."""
    return f"{source}.forms"


def files(source: str) -> list[str]:
    """All files in it."""
    found = glob.glob(f"{glob.escape(forms(source))}/**", recursive=True)
    return [path for path in found if os.path.isfile(path)]


def open_source(source: str) -> Any:
    return np.load(source, mmap_mode="r")


def durable(*paths: str) -> None:
    for path in paths:
        with open(path, "rb+") as file:
            os.fsync(file.fileno())


def prepare(source: str) -> None:
    """Writes the forms of a matrix. Needs pyarrow."""
    import pyarrow as pa
    from pyarrow import parquet

    folder = forms(source)
    os.makedirs(f"{folder}/parquet", exist_ok=True)
    rows = open_source(source)
    schema = pa.schema([("row", pa.binary())])
    bounds = np.linspace(0, len(rows), FILES + 1).astype(int)
    with (
        pa.OSFile(f"{folder}/rows.arrow", "wb") as arrow,
        pa.ipc.new_stream(arrow, schema) as stream,
        open(f"{folder}/lines", "wb") as lines,
    ):
        for number, (first, end) in enumerate(itertools.pairwise(bounds)):
            texts = [row.tobytes() for row in rows[first:end]]
            table = pa.table({"row": pa.array(texts, pa.binary())}, schema=schema)
            stream.write_table(table, max_chunksize=_CHECKED)
            parquet.write_table(
                table, f"{folder}/parquet/{number:02}.parquet",
                compression="none", use_dictionary=False,
            )  # fmt: skip
            lines.writelines(base64.b64encode(text) + b"\n" for text in texts)
    durable(*files(source))


class Peer:
    """One shuffle. `results` gives the bytes of all rows that it wrote."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.forms = forms(task.source)
        self.folder = os.path.dirname(task.path)

    def write(self) -> int:
        self.shuffle()
        return self.task.rows * matrix.ROW_BYTES

    def shuffle(self) -> None:
        raise NotImplementedError

    def results(self) -> Iterator[bytes]:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def check(self) -> None:
        """Every row once, with its bytes, and in another order."""
        self.close()
        source = open_source(self.task.source)
        seen = np.zeros(len(source), np.uint8)
        moved = place = 0
        batch: list[bytes] = []

        def compare() -> None:
            nonlocal moved, place
            found = np.frombuffer(b"".join(batch), np.float32).reshape(-1, matrix.COLUMNS)
            numbers = found[:, 0].astype(np.int64)
            np.add.at(seen, numbers, 1)
            if not np.array_equal(source[numbers], found):
                raise ValueError("a row differs from that of the matrix")
            moved += np.count_nonzero(numbers != np.arange(place, place + len(numbers)))
            place += len(numbers)
            batch.clear()

        for row in self.results():
            batch.append(row)
            if len(batch) == _CHECKED:
                compare()
        if batch:
            compare()
        if place != len(source) or not (seen == 1).all():
            raise ValueError(f"{place} rows are not a permutation of {len(source)}")
        if moved < 0.99 * len(source):
            raise ValueError(f"only {moved} of {len(source)} rows moved")


class Datasets(Peer):
    """Maps the source and writes rows in batches of its default size."""

    def __init__(self, task: Task) -> None:
        import datasets

        super().__init__(task)
        datasets.disable_progress_bars()
        self.data = datasets.Dataset.from_file(f"{self.forms}/rows.arrow")
        self.out = f"{self.folder}/out.arrow"

    def shuffle(self) -> None:
        indices = f"{self.folder}/indices.arrow"
        shuffled = self.data.shuffle(seed=1, indices_cache_file_name=indices)
        self.found = shuffled.flatten_indices(cache_file_name=self.out)
        durable(self.out)

    def results(self) -> Iterator[bytes]:
        for batch in self.found.with_format("arrow").iter(_CHECKED):
            yield from batch["row"].to_pylist()


class ParquetPeer(Peer):
    def results(self) -> Iterator[bytes]:
        from pyarrow import parquet

        for path in sorted(glob.glob(f"{self.folder}/out/*.parquet")):
            for batch in parquet.ParquetFile(path).iter_batches(_CHECKED, columns=["row"]):
                yield from batch["row"].to_pylist()

    def finish(self) -> None:
        durable(*glob.glob(f"{self.folder}/out/*.parquet"))


class Ray(ParquetPeer):
    """The object store has RAY_STORE_BYTES and spills to the same disk."""

    def __init__(self, task: Task) -> None:
        import ray
        import ray.data

        super().__init__(task)
        self.ray = ray
        ray.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False,
            object_store_memory=RAY_STORE_BYTES, object_spilling_directory=f"{self.folder}/spill",
        )  # fmt: skip
        ray.data.DataContext.get_current().enable_progress_bars = False

    def shuffle(self) -> None:
        data = self.ray.data.read_parquet(f"{self.forms}/parquet")
        data.random_shuffle(seed=1).write_parquet(f"{self.folder}/out")
        self.finish()

    def close(self) -> None:
        self.ray.shutdown()


class Dask(ParquetPeer):
    """By a column of chance, then within each partition; each worker has DASK_WORKER_BYTES."""

    def __init__(self, task: Task) -> None:
        import dask
        import distributed

        super().__init__(task)
        dask.config.set({"dataframe.convert-string": False})
        self.cluster = distributed.LocalCluster(
            n_workers=DASK_WORKERS, threads_per_worker=1, memory_limit=DASK_WORKER_BYTES,
            dashboard_address=None, local_directory=f"{self.folder}/dask",
        )  # fmt: skip
        self.client = distributed.Client(self.cluster)

    def shuffle(self) -> None:
        import dask.dataframe as dd

        data = dd.read_parquet(f"{self.forms}/parquet", dtype_backend="pyarrow")
        data = data.map_partitions(_with_chance)
        data = data.shuffle("chance", npartitions=FILES)
        data = data.map_partitions(_sampled)
        data.to_parquet(f"{self.folder}/out", write_index=False, compression=None)
        self.finish()

    def close(self) -> None:
        self.client.close()
        self.cluster.close()


def _with_chance(part: Any) -> Any:
    return part.assign(chance=np.random.default_rng().integers(0, 1 << 62, len(part)))


def _sampled(part: Any) -> Any:
    return part.sample(frac=1)[["row"]]


class Terashuf(Peer):
    """The program beside this interpreter, with MEMORY=TERASHUF_GB."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.program = os.path.join(sys.prefix, "bin", "terashuf")
        if not os.path.exists(self.program):
            raise FileNotFoundError("no program terashuf beside this interpreter")
        self.out = f"{self.folder}/out.lines"

    def shuffle(self) -> None:
        settings = {"MEMORY": str(TERASHUF_GB), "TMPDIR": self.folder, "SEED": "1"}
        with open(f"{self.forms}/lines", "rb") as source, open(self.out, "wb") as target:
            subprocess.run(
                [self.program], stdin=source, stdout=target, stderr=subprocess.DEVNULL,
                env=os.environ | settings, check=True,
            )  # fmt: skip
        durable(self.out)

    def results(self) -> Iterator[bytes]:
        with open(self.out, "rb") as file:
            for line in file:
                yield base64.b64decode(line)


PEERS: dict[str, Any] = {"datasets": Datasets, "ray": Ray, "dask": Dask, "terashuf": Terashuf}


if __name__ == "__main__":
    prepare(sys.argv[1])
