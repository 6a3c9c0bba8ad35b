"""examples/arrays: each program runs as pasted, and does what it is there to show."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys

import lowtide as lt
import pytest
import warm_runs

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "arrays"


def command(*words):
    return [sys.executable, *map(str, words)]


def environment():
    package = pathlib.Path(lt.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}


def run(folder, *words):
    done = subprocess.run(
        command(*words), cwd=folder, capture_output=True, text=True, timeout=240,
        env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def warm():
    with warm_runs.origin(environment()) as started:
        yield started


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with features.npy and labels.npy."""
    folder = tmp_path_factory.mktemp("arrays")
    run(folder, EXAMPLES / "data.py")
    return folder


@pytest.fixture
def folder(tmp_path, data):
    for name in ("features.npy", "labels.npy"):
        (tmp_path / name).symlink_to(data / name)
    return tmp_path


def accuracies(said):
    return [float(found) for found in re.findall(r"accuracy (\d\.\d+)", said)]


def kill_after(line, folder, warm):
    """Starts the classifier and ends it by SIGKILL when it has printed a line with `line`."""
    os.mkfifo(folder / "lines")
    started = warm.start(folder, folder / "lines", EXAMPLES / "classifier.py")
    said = []
    with open(started.said) as lines:
        for found in lines:
            said.append(found.strip())
            if line in found:
                os.kill(started.pid, signal.SIGKILL)
                break
    assert started.wait() == -signal.SIGKILL, said
    return said


@pytest.mark.slow
def test_a_classifier_that_was_killed_ends_as_one_that_was_not(
    folder, data, tmp_path_factory, warm
):
    said = folder / "said"
    whole = warm.run(folder, said, EXAMPLES / "classifier.py").splitlines()
    scores = accuracies("\n".join(whole))
    assert len(scores) == 3 and scores[-1] > 0.8

    other = tmp_path_factory.mktemp("killed")
    for name in ("features.npy", "labels.npy"):
        (other / name).symlink_to(data / name)
    first = kill_after("epoch 1 step 99", other, warm)
    assert first == whole[: len(first)]
    resumed, *rest = warm.run(other, said, EXAMPLES / "classifier.py").splitlines()
    assert resumed == "resuming in epoch 1 at step 100"
    assert rest == whole[len(first) :]
    again = warm.run(other, said, EXAMPLES / "classifier.py")
    assert again.startswith("resuming in epoch 3")  # no step left


def test_weights_show_a_rare_class_as_often_as_the_others(tmp_path, warm):
    stored, balanced = warm.run(tmp_path, tmp_path / "said", EXAMPLES / "balance.py").splitlines()
    share, recall = map(float, re.findall(r"(\d+\.\d)%", stored))
    assert share == pytest.approx(1, abs=0.3)
    even, better = map(float, re.findall(r"(\d+\.\d)%", balanced))
    assert even == pytest.approx(25, abs=1)
    assert better > recall + 20


@pytest.mark.slow
def test_two_ranks_of_torchrun_share_every_step(folder):
    torch = pytest.importorskip("torch")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this torch has no gloo")
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    said = run(folder, *words, EXAMPLES / "ranks.py").splitlines()
    assert [line.partition(", loss")[0] for line in said] == [
        f"epoch {epoch}: {40_000 // 256 * 256} rows by 2 ranks, 0 of them twice" for epoch in (0, 1)
    ]


def test_activations_in_bfloat16_are_read_shuffled(folder, warm):
    pytest.importorskip("ml_dtypes")
    said = warm.run(folder, folder / "said", EXAMPLES / "activations.py")
    assert said.count("torch.bfloat16") == 2
    assert accuracies(said)[-1] > 0.7


@pytest.mark.slow
def test_scikit_learn_learns_batch_by_batch(folder):
    pytest.importorskip("sklearn")
    scores = accuracies(run(folder, EXAMPLES / "partial_fit.py"))
    assert len(scores) == 3 and scores[-1] > 0.8
