"""Finds a Python with headers for each ABI, and compiles those that this machine lacks."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sources import CPYTHON, Source
from steps import ROOT, Step
from targets import Abi

BUILT = ROOT / ".dev" / "python"

PROBE = """
import json, os, sys, sysconfig
json.dump({
    "version": sys.version_info[:2],
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "cpython": sys.implementation.name == "cpython",
    "header": os.path.join(sysconfig.get_path("include"), "Python.h"),
}, sys.stdout)
"""


def candidates(abi: Abi) -> Iterator[Path]:
    """Where a Python of this ABI may be: what the user names first, ours last."""
    for entry in filter(None, os.environ.get("LOWTIDE_PYTHONS", "").split(":")):
        path = Path(entry)
        yield path / "bin" / abi.python if path.is_dir() else path
    if found := shutil.which(abi.python):
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    version = "{}.{}".format(*abi.version)
    for folder in sorted(pyenv.glob(f"{version}*"), reverse=True):
        yield folder / "bin" / abi.python
    yield BUILT / abi.name / "bin" / abi.python


def fits(python: Path, abi: Abi) -> bool:
    """Whether it runs, is of this ABI and has its headers."""
    try:
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
        found = json.loads(done.stdout)
    except (OSError, ValueError):  # not there; a pyenv shim without a version behind it
        return False
    return (
        found["cpython"]
        and tuple(found["version"]) == abi.version
        and found["free_threaded"] == abi.free_threaded
        and Path(found["header"]).is_file()
        and not includes_by_machine(Path(found["header"]).with_name("pyconfig.h"))
    )


def includes_by_machine(pyconfig: Path) -> bool:
    """Debian's pyconfig.h only includes another one, which no cross compiler finds."""
    return "linux-gnu" in pyconfig.read_text(errors="replace")


def find(abi: Abi) -> Path | None:
    return next((python for python in candidates(abi) if fits(python, abi)), None)


def how_to_provide(abi: Abi) -> str:
    version = "{}.{}".format(*abi.version)
    kind = f"a free-threaded CPython {version}" if abi.free_threaded else f"CPython {version}"
    return (
        f"{abi.name}: no interpreter; not built. Install {kind} with its headers, for example with "
        f"pyenv install {version}{'t' * abi.free_threaded}, and put it on PATH or name it in "
        f"LOWTIDE_PYTHONS."
    )


def provide(abi: Abi) -> Path | None:
    """A Python of this ABI; None, after a word about it, where there is none."""
    if python := find(abi):
        return python
    reason = "no source is known for it"
    if source := CPYTHON.get(abi.version):
        try:
            build(abi, source)
            return find(abi)
        except (SystemExit, OSError) as failure:
            reason = str(failure)
    print(f"{how_to_provide(abi)}\n  Not built from source either: {reason}")
    return None


def unpack(source: Source, folder: Path, step: Step) -> Path:
    """The sources below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    step.run("tar", "-xf", source.fetch(), cwd=folder)
    return folder / source.name


def options(abi: Abi, prefix: Path) -> list[str]:
    """For configure. Nothing is tuned: this Python builds and tests wheels, nothing else."""
    free_threaded = ["--disable-gil"] * abi.free_threaded
    return [
        "-q",
        f"--prefix={prefix}",
        "--disable-test-modules",
        "--without-ensurepip",
        *free_threaded,
    ]


def build(abi: Abi, source: Source) -> None:
    """With the machine's compiler."""
    with Step(f"{source.name} as {abi.python}") as step:
        tree = unpack(source, BUILT / "src", step)
        step.run("./configure", *options(abi, BUILT / abi.name), "CFLAGS=-O2", cwd=tree)
        step.run("make", "-s", f"-j{os.environ.get('JOBS', '2')}", cwd=tree)
        step.run("make", "-s", "install", cwd=tree)
        shutil.rmtree(tree)
