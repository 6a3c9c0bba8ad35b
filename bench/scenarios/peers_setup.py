"""The environments of the peers, below .dev/peers: `./dev bench --peers setup`.

Packages that agree with each other share an environment. What does not install is reported in one
line, and the rest goes on; a measurement of such a peer gives the same reason.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import machine
from rounds import say

FOLDER = Path(__file__).parents[2] / ".dev" / "peers"
TORCH = "torch==2.13.0"
ENVIRONMENTS: dict[str, list[str]] = {
    "stores": [
        "tensorstore==0.1.86", "h5py==3.16.0", "zarr==3.1.6", "zarrs==0.2.3", "pylance==14.0.2",
        "datasets==5.2.0",  # streaming and it want different versions of huggingface_hub
    ],
    "grain": "grain==0.2.18 array_record==0.8.6".split(),
    "torch": [
        TORCH, "litdata==0.2.76", "mosaicml-streaming==0.13.0",
        "webdataset==1.0.2", "megatron-core==0.16.1",
    ],
    "dlio": [
        "mpi4py==4.1.2", "mpich==5.0.2", "tensorflow-cpu==2.21.0", "pydftracer==1.0.2",
        "hydra-core==1.3.8", "pandas==3.1.1", "psutil==7.2.2", "Pillow==13.0.0",
        "dlio-benchmark==2.0.0",
    ],
    "sparse": [
        "anndata==0.13.4", "annbatch==0.3.1", "bionemo-scdl==0.1.3", "safetensors==0.8.0",
        "zarrs==0.2.3", TORCH,
    ],
    "shufflers": [
        "datasets==5.2.0", "ray[data]==2.60.0",
        "dask[dataframe]==2026.8.0", "distributed==2026.8.0",
    ],
}  # fmt: skip
# DLIO requires nvidia-dali-cuda110, which PyPI does not have, and does not use it here.
ALONE = ("dlio-benchmark",)
SEE_OWN = ("dlio",)  # environments that also see the packages of the current one: our reader
NEEDS = {"sparse": (3, 12)}  # annbatch is not there for older Pythons


def python_of(environment: str, folder: Path = FOLDER) -> str:
    """The interpreter of an environment; the current one if it has not been made."""
    python = folder / environment / "bin" / "python"
    return str(python) if python.exists() else sys.executable


def why_missing(environment: str, package: str, folder: Path = FOLDER) -> str:
    """Why a package cannot be imported: what pip said, or that setup has not run."""
    noted = folder / environment / "failed.json"
    reasons = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
    if package in reasons:
        return f"does not install: {reasons[package]}"
    return f"{package} is not installed: ./dev bench --peers setup"


def _name(requirement: str) -> str:
    return re.split(r"[=<>!\[]", requirement)[0]


def _install(python: Path, requirements: list[str], *options: str) -> str:
    """Returns why pip failed, or nothing."""
    argv = [str(python), "-m", "pip", "install", "--quiet", *options, *requirements]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    last = (said or done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return last.removeprefix("ERROR: ")[:200] if done.returncode else ""


def _interpreter(needs: tuple[int, int]) -> str | None:
    """The current interpreter, or one of the version that a peer needs."""
    if sys.version_info >= needs:
        return sys.executable
    name = "python{}.{}".format(*needs)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    known = sorted(pyenv.glob(f"versions/*/bin/{name}"))
    return str(known[-1]) if known else shutil.which(name)


def _make(environment: str, requirements: list[str], folder: Path) -> dict[str, str]:
    """Makes an environment; returns the packages that do not install, and why."""
    interpreter = _interpreter(NEEDS.get(environment, (3, 0)))
    if interpreter is None:
        reason = "needs Python {}.{}, which is not on PATH".format(*NEEDS[environment])
        return {_name(requirement): reason for requirement in requirements}
    if not (folder / "bin" / "python").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    if environment in SEE_OWN:
        packages = next(folder.glob("lib/python*/site-packages"))
        own = sysconfig.get_path("purelib")
        (packages / "own.pth").write_text(f"{own}\n", encoding="utf-8")
    alone = [one for one in requirements if _name(one) in ALONE]
    requirements = [one for one in requirements if one not in alone]
    failed = {_name(one): _install(python, [one], "--no-deps") for one in alone}
    if not _install(python, requirements):
        return {name: reason for name, reason in failed.items() if reason}
    for one in requirements:  # one that is installed alone must not move the others
        pinned = folder / "pinned.txt"
        others = [other for other in requirements if other != one]
        pinned.write_text("\n".join(others) + "\n", encoding="utf-8")
        failed[_name(one)] = _install(python, [one], "--constraint", str(pinned))
    return {name: reason for name, reason in failed.items() if reason}


def setup(environments: dict[str, list[str]] = ENVIRONMENTS, folder: Path = FOLDER) -> None:
    for environment, requirements in environments.items():
        started_s = time.monotonic()
        say(f"{environment}: installing {' '.join(requirements)} ...")
        failed = _make(environment, requirements, folder / environment)
        names = [_name(requirement) for requirement in requirements]
        found = machine.versions(python_of(environment, folder), names)
        for name in names:
            print(f"{environment:8} {name:20} {failed.get(name) or found.get(name)}")
        noted = folder / environment / "failed.json"
        noted.parent.mkdir(parents=True, exist_ok=True)
        noted.write_text(json.dumps(failed) + "\n", encoding="utf-8")
        say(f"{environment}: {time.monotonic() - started_s:.0f} s")
