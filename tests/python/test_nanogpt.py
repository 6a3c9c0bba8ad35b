"""examples/nanogpt: the losses of np.memmap to the last bit, and a run that no kill can disturb."""

from __future__ import annotations

import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import lowtide as lt
import pytest

pytest.importorskip("torch")

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "nanogpt"
STEPS = 45
TINY = ["--layers", "1", "--heads", "2", "--width", "16", "--batch-size", "4", "--block-size", "16"]


def command(script, *arguments):
    return [sys.executable, str(EXAMPLE / script), *map(str, arguments)]


def environment():
    package = pathlib.Path(lt.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(package)}


def run(*arguments):
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=240, env=environment(),
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def train(folder, data, log, *more):
    return run(
        "train.py", "--data", data, "--folder", folder, "--log", log, "--steps", STEPS, *TINY, *more
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("nanogpt")
    run("prepare.py", "--folder", made, "--tokens", 20_000)
    return made


def test_the_text_is_the_same_everywhere(folder):
    found = hashlib.sha256((folder / "train.bin").read_bytes()).hexdigest()
    assert found == "2e2a684e37529378836d920407d55fd54865983f588e668aa57cdb23e505e9a4"


@pytest.mark.slow
def test_losses_of_memmap_and_lowtide_are_equal_to_the_last_bit(folder, tmp_path):
    logs = {}
    for data in ("memmap", "lowtide"):
        said = train(folder, data, tmp_path / data)
        assert "loss on val.bin" in said
        logs[data] = (tmp_path / data).read_text()
    assert logs["memmap"] == logs["lowtide"]
    losses = [float.fromhex(line.split()[2]) for line in logs["lowtide"].splitlines()]
    assert len(losses) == STEPS
    assert losses[-1] < losses[0]
    assert not (folder / "checkpoint.pt").exists()


def kill_at(step, arguments, log):
    """Starts the trainer and ends it by SIGKILL as soon as its log has `step`."""
    child = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while not (log.exists() and any(line.startswith(f"{step} ") for line in log.open())):
        assert child.poll() is None and time.monotonic() < deadline, child.communicate()[0]
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return child.returncode


@pytest.mark.slow
def test_a_run_killed_three_times_has_the_losses_of_one_that_was_not(folder, tmp_path):
    arguments = ["--checkpoint-every", 3]
    train(folder, "loader", tmp_path / "whole", "--checkpoint", tmp_path / "whole.pt", *arguments)
    whole = (tmp_path / "whole").read_text()
    assert len(whole.splitlines()) == STEPS

    log, saved = tmp_path / "killed", tmp_path / "killed.pt"
    arguments = [
        "train.py", "--data", "loader", "--folder", folder, "--log", log, "--steps", STEPS, *TINY,
        "--checkpoint", saved, *arguments,
    ]  # fmt: skip
    killed = [kill_at(step, arguments, log) for step in (2, 15, 30)]
    assert killed[0] == -signal.SIGKILL
    assert "resuming from step" in run(*arguments)
    assert log.read_text() == whole
