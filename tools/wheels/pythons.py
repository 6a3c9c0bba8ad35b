"""Finds a Python with headers for each ABI. Free-threaded ones, which are rare, are built."""

import hashlib
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Source:
    """A release of CPython; `archives` are tried in turn for a file with this hash."""

    version: str
    sha256: str
    archives: tuple[str, ...]


# Distributions drop old releases from their archives, python.org does not.
SOURCES = {
    "cp313t": Source(
        "3.13.5",
        "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640",
        (
            "https://www.python.org/ftp/python/3.13.5/Python-3.13.5.tar.xz",
            "http://deb.debian.org/debian/pool/main/p/python3.13/python3.13_3.13.5.orig.tar.xz",
        ),
    ),
    "cp314t": Source(
        "3.14.4",
        "d923c51303e38e249136fc1bdf3568d56ecb03214efdef48516176d3d7faaef8",
        (
            "https://www.python.org/ftp/python/3.14.4/Python-3.14.4.tar.xz",
            "http://archive.ubuntu.com/ubuntu/pool/main/p/python3.14/python3.14_3.14.4.orig.tar.xz",
            "http://deb.debian.org/debian/pool/main/p/python3.14/python3.14_3.14.4.orig.tar.xz",
        ),
    ),
}


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
    if source := SOURCES.get(abi.name):
        try:
            build(abi, source)
            return find(abi)
        except (SystemExit, OSError) as failure:
            reason = str(failure)
    print(f"{how_to_provide(abi)}\n  Not built from source either: {reason}")
    return None


def download(source: Source, into: Path) -> None:
    if into.is_file() and hashlib.sha256(into.read_bytes()).hexdigest() == source.sha256:
        return
    failures = []
    for url in source.archives:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                content = answer.read()
        except (urllib.error.URLError, OSError) as failure:
            failures.append(f"{url}: {failure}")
            continue
        if (found := hashlib.sha256(content).hexdigest()) == source.sha256:
            into.write_bytes(content)
            return
        failures.append(f"{url}: its SHA-256 is {found}, not {source.sha256}")
    raise OSError("could not be downloaded\n    " + "\n    ".join(failures))


def build(abi: Abi, source: Source) -> None:
    """Compiled with the machine's compiler, not tuned: it builds and tests wheels, nothing else."""
    with Step(f"python {source.version} free-threaded") as step:
        folder = BUILT / "src"
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"Python-{source.version}.tar.xz"
        download(source, archive)
        step.run("tar", "-xf", archive, cwd=folder)
        tree = folder / f"Python-{source.version}"
        step.run(
            *("./configure", "-q", f"--prefix={BUILT / abi.name}", "--disable-gil"),
            *("--disable-test-modules", "--with-ensurepip=no", "CFLAGS=-O2"),
            cwd=tree,
        )
        step.run("make", "-s", f"-j{os.environ.get('JOBS', '2')}", cwd=tree)
        step.run("make", "-s", "install", cwd=tree)
        shutil.rmtree(tree)
