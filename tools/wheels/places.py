"""Tests each wheel of dist/ where it can run: in bare Debians, in Pythons of this machine, and in
Pythons that are compiled for the platforms of which this machine has none."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import foreign
import pythons
from steps import BUILD, DIST, ROOT, STATE, VENV, Step, make_venv, setup_tools
from targets import Abi, Target

HERE = Path(__file__).resolve().parent
SOURCES = Path("/lowtide")  # where a Debian sees ROOT
SUITE = ["pip", "numpy", "pytest", "pytest-xdist", "hypothesis"]
# The Debians whose own Python loads a wheel of ours, and which one.
SYSTEMS = {
    "bookworm": ("Debian 12", "cp311"),
    "trixie": ("Debian 13", "cp312-abi3"),
    "forky": ("Debian testing", "cp312-abi3"),
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian calls them

MIRROR = "http://deb.debian.org/debian"
SCRIPT = (
    "/usr/share/debootstrap/scripts/sid"  # for all of them: an old debootstrap knows no new name
)


@dataclass(frozen=True)
class Place:
    """Where a wheel is tested: the Debian `suite`, or this machine where it is empty.

    The Python is the Debian's own; or `python`, of this machine; or one that is compiled for `abi`.
    """

    name: str
    target: Target
    abi: Abi | None = None
    python: Path | None = None
    suite: str = ""

    @property
    def emulated(self) -> bool:
        return self.target.platform.machine != platform.machine()

    @property
    def compiled(self) -> bool:
        return self.python is None and self.abi is not None

    @property
    def folder(self) -> str:
        return f"{self.target.name} {self.name}".replace(" ", "-")


def places(targets: list[Target]) -> Iterator[Place]:
    yield from in_debian(targets)
    for target in targets:
        if target.platform.name == f"manylinux_{platform.machine()}":
            yield from on_this_machine(target)
        elif target.platform.libc == "musl":
            abi = exact(target.abi)
            yield Place(f"{abi.python} compiled for musl", target, abi)
        elif target.abi.name not in [abi for _, abi in SYSTEMS.values()]:
            abi = target.abi
            name = f"{abi.python} compiled for Debian 12 {target.platform.machine}"
            yield Place(name, target, abi, suite="bookworm")


def exact(abi: Abi, minor: int | None = None) -> Abi:
    """One of the Pythons that load wheels of this ABI."""
    if not abi.stable:
        return abi
    minor = minor or abi.version[1]
    return Abi(f"cp3{minor}", (3, minor))


def in_debian(targets: list[Target]) -> Iterator[Place]:
    by_name = {target.name: target for target in targets}
    for suite, (system, abi) in SYSTEMS.items():
        for machine in ARCHITECTURES:
            if target := by_name.get(f"{abi}-manylinux_{machine}"):
                yield Place(f"{system} {machine}", target, suite=suite)


def on_this_machine(target: Target) -> Iterator[Place]:
    minor = target.abi.version[1]
    for abi in [exact(target.abi, m) for m in range(minor, 20 if target.abi.stable else minor + 1)]:
        if python := pythons.find(abi):
            yield Place(f"{abi.python} of this machine", target, abi, python)


def whole_suite(python: list[str | Path], step: Step, tests: Path, env: dict[str, str]) -> None:
    pytest = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    workers = ["-n", os.environ.get("JOBS", "2"), "--dist", "loadfile", "--no-loadscope-reorder"]
    step.run(*pytest, *workers, tests / "tests" / "python", cwd=BUILD, env=env)
    step.note = last_line(step)


def last_line(step: Step) -> str:
    return step.log.read_text(errors="replace").splitlines()[-1].strip("= ")


def test_here(place: Place, wheel: Path, python: Path, step: Step) -> None:
    packages = ["--only-binary=:all:", str(wheel), *SUITE]
    if place.compiled:
        packages += downloaded(place, SUITE, step, ROOT)
    folder = STATE / "places" / place.folder
    python = make_venv(python, folder, packages, step)
    env = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    if place.target.abi.free_threaded:
        env["PYTHON_GIL"] = "0"
    smoke = BUILD / "smoke" / place.folder
    shutil.rmtree(smoke, ignore_errors=True)
    smoke.mkdir(parents=True)
    step.run(python, HERE / "smoke.py", *certificate(place, step), cwd=smoke)
    step.note = last_line(step)
    if not place.compiled:
        whole_suite([python], step, ROOT, env)


def downloaded(place: Place, packages: list[str], step: Step, root: Path) -> list[str]:
    """Options by which pip finds `packages` in a Python that cannot download."""
    assert place.abi is not None
    folder = foreign.download(place.abi, place.target.platform, packages, step)
    return ["--no-index", f"--find-links={root / folder.relative_to(ROOT)}"]


def certificate(place: Place, step: Step) -> list[Path]:
    """For 127.0.0.1, with its key in the same file; none where Python cannot serve https."""
    file = STATE / "certificate.pem"
    if place.compiled or shutil.which("openssl") is None:
        return []
    if not file.is_file():
        request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"]
        name = ["-subj", "/CN=lowtide", "-addext", "subjectAltName=IP:127.0.0.1"]
        step.run(*request, *name, "-keyout", file, "-out", STATE / "certificate.crt")
        file.write_text(file.read_text() + (STATE / "certificate.crt").read_text())
    return [file]


def debian(place: Place, step: Step) -> Path:
    """The root folder of a Debian with Python and without a compiler, made once."""
    architecture = ARCHITECTURES[place.target.platform.machine]
    root = STATE / "debian" / f"{place.suite}-{architecture}"
    stamp = root / "etc" / "lowtide-complete"
    if not stamp.is_file():
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", f"--arch={architecture}"]
        step.run(*command, "--include=python3,python3-venv", place.suite, root, MIRROR, SCRIPT)
        for folder in ("lowtide", "wheels"):
            (root / folder).mkdir()
        stamp.touch()
    return root


def test_in_debian(place: Place, wheel: Path, python: Path, step: Step) -> None:
    """In an environment /t, by the Debian's pip or, for a compiled Python, by that of our tools."""
    root = debian(place, step)

    def inside(*command: str | Path) -> list[str | Path]:
        enter = ["unshare", "--mount", "--propagation", "private", HERE / "enter.sh"]
        return [*enter, root, ROOT, DIST, "env", f"PATH=/t/bin:{os.defpath}:/usr/sbin", *command]

    wanted = ["numpy"] if place.emulated else SUITE
    pip: list[str | Path] = ["-m", "pip", "install"]
    venv = ["-m", "venv", "--clear"]
    if place.compiled:
        runner = next(VENV.glob("lib/python*/site-packages/pip/__pip-runner__.py"))
        pip = [SOURCES / runner.relative_to(ROOT), "install"]
        pip += downloaded(place, wanted, step, SOURCES)
        venv += ["--without-pip"]
        python = SOURCES / python.relative_to(ROOT)
    step.run(*inside(python, *venv, "/t"))
    packages = [Path("/wheels") / wheel.name, *wanted]
    step.run(*inside("/t/bin/python", *pip, "--no-compile", "--only-binary=:all:", *packages))
    step.run(*inside("sh", "-c", "! command -v cc c++ gcc clang"))
    smoke = [HERE / "smoke.py", *certificate(place, step)]
    arguments = [SOURCES / file.relative_to(ROOT) for file in smoke]
    step.run(*inside("env", "--chdir=/tmp", "/t/bin/python", *arguments))
    step.note = last_line(step)
    if not place.emulated:
        whole_suite(inside("/t/bin/python"), step, SOURCES, {})


def musl_version(machine: str) -> tuple[int, ...]:
    """Of the C library that runs programs for musl on this machine; empty without one."""
    try:
        told = subprocess.run([f"/lib/ld-musl-{machine}.so.1"], capture_output=True, text=True)
    except OSError:
        return ()
    found = re.search(r"^Version ([\d.]+)", told.stderr, re.MULTILINE)
    return tuple(map(int, found[1].split("."))) if found else ()


def why_not(place: Place) -> str:
    """Why a place is not there; empty where it is."""
    machine = place.target.platform.machine
    if place.suite and os.geteuid() != 0:
        return "a Debian of its own needs root"
    if place.suite and shutil.which("debootstrap") is None:
        return "debootstrap is not installed"
    if place.emulated and not any(Path("/proc/sys/fs/binfmt_misc").glob(f"*{machine}*")):
        return f"this machine runs no programs for {machine}: qemu-user-static"
    if place.target.platform.libc == "musl" and musl_version(machine) < (1, 2, 4):
        return "this machine lacks musl 1.2.4 (Debian's package musl), which NumPy's wheels need"
    if place.compiled and shutil.which(foreign.compiler(place.target.platform)) is None:
        return f"{foreign.compiler(place.target.platform)} is not installed"
    return ""


def test(place: Place, wheel: Path) -> bool:
    """Whether it passed; prints what did not."""
    title = f"{place.target.name} on {place.name}"
    python = place.python or Path("python3")
    if place.compiled:
        assert place.abi is not None
        found = foreign.find(place.abi, place.target.platform)
        if found is None:
            return False
        python = found
    try:
        with Step(title) as step:
            (test_in_debian if place.suite else test_here)(place, wheel, python, step)
    except SystemExit as failure:
        print(failure)
        return False
    return True


def test_all(targets: list[Target]) -> int:
    """Every wheel that is there, in every place that is there; what is left out is named."""
    setup_tools()
    wheels = {t: w for t in targets for w in DIST.glob(f"*-{t.file_tags}.whl")}
    passed, failed = set(), set()
    for place in places(list(wheels)):
        if reason := why_not(place):
            print(f"{place.target.name} on {place.name}: not tested: {reason}")
            continue
        (passed if test(place, wheels[place.target]) else failed).add(place.target)
    for target in targets:
        if target not in wheels:
            print(f"{target.name}: not in dist/")
        elif target not in passed | failed:
            print(f"{target.name}: not tested")
    return 1 if failed else 0
