"""Data-parallel training by torchrun and gloo: what the ranks see, together and apart."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import lowtide as lt
import pytest
from torch_files import WINDOWS, flat, write_tokens

torch = pytest.importorskip("torch")

JOB = pathlib.Path(__file__).with_name("ddp_job.py")

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="this torch has no gloo",
)


def torchrun(ranks, path, folder, state=None):
    """The reports of all ranks."""
    folder.mkdir()
    package = pathlib.Path(lt.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{package}:{JOB.parent}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone",
            f"--nproc_per_node={ranks}", str(JOB), str(path), str(folder), json.dumps(state),
        ],
        capture_output=True, text=True, timeout=300, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.slow
def test_two_ranks_see_every_window_of_the_epoch_once_and_learn_together(tmp_path):
    path, _ = write_tokens(tmp_path)
    first, second = torchrun(2, path, tmp_path / "two")
    assert [(r["rank"], r["world"]) for r in (first, second)] == [(0, 2), (1, 2)]
    assert "rank=1/2" in second["repr"]
    steps = WINDOWS // (6 * 2)
    assert len(first["steps"]) == len(second["steps"]) == steps
    seen = flat(first["steps"] + second["steps"])
    assert len(seen) == len(set(seen)) == steps * 12
    assert first["gradients"] == second["gradients"]
    assert first["losses"] == second["losses"]
    assert sum(first["losses"][-5:]) < sum(first["losses"][:5])
    assert first["states"] == second["states"]

    # One rank goes on where two were: the rest of the epoch, each window once over both runs.
    cut = 11
    (alone,) = torchrun(1, path, tmp_path / "one", first["states"][cut - 1])
    before = flat(first["steps"][:cut] + second["steps"][:cut])
    after = flat(alone["steps"])
    assert len(after) == (WINDOWS - cut * 12) // 6 * 6
    assert len(set(before + after)) == len(before) + len(after)
