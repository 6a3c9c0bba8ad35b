"""lt.ray.read and the example with Ray Train. `./dev test --cluster` installs Ray beside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lowtide as lt
import numpy as np
import pytest
from job_files import matrix_file
from token_files import write_nanogpt

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples" / "arrays"


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20
    )
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    yield ray
    ray.shutdown()


def rows_of(dataset: Any, name: str) -> np.ndarray:
    return np.concatenate([batch[name] for batch in dataset.iter_batches(batch_size=1000)])


def test_the_rows_of_an_array_are_a_dataset(tmp_path: Path, ray: Any) -> None:
    data = matrix_file(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", data[::-1])
    whole = np.concatenate([data, data[::-1]])
    for source in (str(tmp_path / "?.npy"), lt.open([tmp_path / "a.npy", tmp_path / "b.npy"])):
        dataset = lt.ray.read(source, override_num_blocks=7)
        assert dataset.count() == len(whole)
        np.testing.assert_array_equal(rows_of(dataset, "data"), whole)


def test_several_arrays_are_columns(tmp_path: Path, ray: Any) -> None:
    data = matrix_file(tmp_path / "x.npy")
    labels = np.arange(len(data), dtype=">i8")
    np.save(tmp_path / "y.npy", labels)
    dataset = lt.ray.read({"x": lt.open(tmp_path / "x.npy"), "y": lt.open(tmp_path / "y.npy")})
    np.testing.assert_array_equal(rows_of(dataset, "x"), data)
    np.testing.assert_array_equal(rows_of(dataset, "y"), labels)
    assert dataset.sum("y") == labels.sum()


def test_windows_of_tokens_are_rows(tmp_path: Path, ray: Any) -> None:
    tokens = np.random.default_rng(0).integers(0, 50257, 5003).astype("<u2")
    t = lt.tokens(write_nanogpt(tmp_path / "t.bin", tokens))
    found = rows_of(lt.ray.read(t, block_size=16, override_num_blocks=3), "tokens")
    np.testing.assert_array_equal(found, np.lib.stride_tricks.sliding_window_view(tokens, 17)[::16])


def test_large_blocks_are_cut(tmp_path: Path, ray: Any) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((10, 2 << 20), "f4"))  # 8 MiB per row
    source = lt.ray._columns(tmp_path / "wide.npy", None)
    (task,) = lt.ray._Rows(source).get_read_tasks(1)
    assert task.metadata.num_rows == 10
    assert [block.num_rows for block in task()] == [4, 4, 2]


def test_wrong_sources_are_refused(tmp_path: Path, ray: Any) -> None:
    matrix_file(tmp_path / "m.npy")
    np.save(tmp_path / "short.npy", np.zeros(3))
    a, t = lt.open(tmp_path / "m.npy"), lt.tokens(write_nanogpt(tmp_path / "t.bin", np.arange(9)))
    with pytest.raises(ValueError, match="a: 5000, b: 3"):
        lt.ray.read({"a": a, "b": lt.open(tmp_path / "short.npy")})
    with pytest.raises(ValueError, match="tokens need block_size"):
        lt.ray.read(t)
    with pytest.raises(ValueError, match="needs 10 tokens, but there are 9"):
        lt.ray.read(t, block_size=9)
    with pytest.raises(ValueError, match="block_size is for tokens"):
        lt.ray.read(a, block_size=4)
    with pytest.raises(TypeError, match="source must be"):
        lt.ray.read(np.zeros(3))
    with pytest.raises(FileNotFoundError):
        lt.ray.read(tmp_path / "none.npy")
    with pytest.raises(ValueError, match="empty dict"):
        lt.ray.read({})


def test_workers_of_ray_train_share_every_step(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    pytest.importorskip("torch")
    package = Path(lt.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    for program in ("data.py", "ray_train.py"):
        done = subprocess.run(
            [sys.executable, "-B", str(EXAMPLES / program)], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    epoch = f"an epoch: {40_000 // 256 * 256} rows by 2 ranks, 0 of them twice\n"
    assert done.stdout.endswith(epoch * 2), done.stdout
