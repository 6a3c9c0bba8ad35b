"""examples/nanogpt: the losses of np.memmap to the last bit, and a run that no kill can disturb."""

from __future__ import annotations

import hashlib
import os
import pathlib
import signal
import time

import lowtide as lt
import pytest
import warm_runs

pytest.importorskip("torch")

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "nanogpt"
STEPS = 45
TINY = ["--layers", "1", "--heads", "2", "--width", "16", "--batch-size", "4", "--block-size", "16"]


@pytest.fixture(scope="module")
def warm():
    package = pathlib.Path(lt.__file__).parents[1]
    with warm_runs.origin({**os.environ, "PYTHONPATH": str(package)}) as started:
        yield started


def trainer(folder, data, log, *more):
    words = ["--data", data, "--folder", folder, "--log", log, "--steps", STEPS, *TINY, *more]
    return [EXAMPLE / "train.py", *words]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, warm):
    made = tmp_path_factory.mktemp("nanogpt")
    words = ["--folder", made, "--tokens", 20_000]
    warm.run(made, made / "said", EXAMPLE / "prepare.py", *words)
    return made


def test_the_text_is_the_same_everywhere(folder):
    found = hashlib.sha256((folder / "train.bin").read_bytes()).hexdigest()
    assert found == "2e2a684e37529378836d920407d55fd54865983f588e668aa57cdb23e505e9a4"


@pytest.mark.slow
def test_losses_of_memmap_and_lowtide_are_equal_to_the_last_bit(folder, tmp_path, warm):
    logs = {}
    for data in ("memmap", "lowtide"):
        said = warm.run(tmp_path, tmp_path / "said", *trainer(folder, data, tmp_path / data))
        assert "loss on val.bin" in said
        logs[data] = (tmp_path / data).read_text()
    assert logs["memmap"] == logs["lowtide"]
    losses = [float.fromhex(line.split()[2]) for line in logs["lowtide"].splitlines()]
    assert len(losses) == STEPS
    assert losses[-1] < losses[0]
    assert not (folder / "checkpoint.pt").exists()


def kill_at(step, log, started):
    """Ends a trainer by SIGKILL as soon as its log has `step`."""
    deadline = time.monotonic() + 240
    while not (log.exists() and any(line.startswith(f"{step} ") for line in log.open())):
        assert started.runs() and time.monotonic() < deadline, started.said.read_text()
        time.sleep(0.001)
    os.kill(started.pid, signal.SIGKILL)
    return started.wait()


@pytest.mark.slow
def test_a_run_killed_three_times_has_the_losses_of_one_that_was_not(folder, tmp_path, warm):
    log, saved, said = tmp_path / "whole", tmp_path / "whole.pt", tmp_path / "said"
    often = ["--checkpoint-every", 3]
    warm.run(tmp_path, said, *trainer(folder, "loader", log, "--checkpoint", saved, *often))
    whole = log.read_text()
    assert len(whole.splitlines()) == STEPS

    log, saved = tmp_path / "killed", tmp_path / "killed.pt"
    words = trainer(folder, "loader", log, "--checkpoint", saved, *often)
    killed = [kill_at(step, log, warm.start(tmp_path, said, *words)) for step in (2, 15, 30)]
    assert killed[0] == -signal.SIGKILL
    assert "resuming from step" in warm.run(tmp_path, said, *words)
    assert log.read_text() == whole
