"""Tests each wheel of dist/ where it can run: in bare Debians and in Pythons of this machine."""

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pythons
from steps import BUILD, DIST, ROOT, STATE, Step, make_venv, setup_tools
from targets import Abi, Target

HERE = Path(__file__).resolve().parent
SUITE = ["numpy", "pytest", "pytest-xdist", "hypothesis"]
SYSTEMS = {"bookworm": "Debian 12", "trixie": "Debian 13"}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Place:
    """Where a wheel is tested. `python` is a machine's Python; without one it is a Debian's own."""

    name: str
    target: Target
    python: Path | None = None
    suite: str = ""
    architecture: str = "amd64"

    @property
    def emulated(self) -> bool:
        return MACHINES[self.architecture] != platform.machine()


def places(targets: list[Target]) -> Iterator[Place]:
    by_name = {target.name: target for target in targets}
    for system, abi in (("bookworm", "cp311"), ("trixie", "cp312-abi3")):
        for architecture, machine in MACHINES.items():
            if target := by_name.get(f"{abi}-manylinux_{machine}"):
                name = f"{SYSTEMS[system]} {machine}"
                yield Place(name, target, suite=system, architecture=architecture)
    for target in targets:
        if target.platform.name != f"manylinux_{platform.machine()}":
            continue
        versions = [target.abi.version]
        if target.abi.stable:
            versions = [(3, minor) for minor in range(target.abi.version[1], 20)]
        for version in versions:
            abi = Abi("", version, target.abi.free_threaded)
            if target.abi.free_threaded:
                abi = target.abi
            if python := pythons.find(abi):
                yield Place(f"{abi.python} of this machine", target, python)


def whole_suite(python: list[str | Path], step: Step, tests: Path, env: dict[str, str]) -> None:
    step.run(
        *(
            *python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-n",
            os.environ.get("JOBS", "2"),
        ),
        *("--dist", "loadfile", tests / "tests" / "python"),
        cwd=BUILD,
        env=env,
    )
    step.note = step.log.read_text(errors="replace").splitlines()[-1].strip("= ")


def test_in_venv(place: Place, wheel: Path, step: Step) -> None:
    assert place.python is not None
    folder = STATE / "places" / place.name.replace(" ", "-")
    python = make_venv(place.python, folder, ["--only-binary=:all:", str(wheel), *SUITE], step)
    env = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    if place.target.abi.free_threaded:
        env["PYTHON_GIL"] = "0"
    smoke = BUILD / "smoke" / place.name.replace(" ", "-")
    shutil.rmtree(smoke, ignore_errors=True)
    smoke.mkdir(parents=True)
    step.run(python, HERE / "smoke.py", cwd=smoke)
    whole_suite([python], step, ROOT, env)


def debian(place: Place, step: Step) -> Path:
    """The root folder of a Debian with Python and without a compiler, made once."""
    root = STATE / "debian" / f"{place.suite}-{place.architecture}"
    stamp = root / "etc" / "lowtide-complete"
    if not stamp.is_file():
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", f"--arch={place.architecture}"]
        step.run(*command, "--include=python3,python3-venv", place.suite, root)
        for folder in ("lowtide", "wheels"):
            (root / folder).mkdir()
        stamp.touch()
    return root


def test_in_debian(place: Place, wheel: Path, step: Step) -> None:
    root = debian(place, step)

    def inside(*command: str | Path) -> list[str | Path]:
        enter = ["unshare", "--mount", "--propagation", "private", HERE / "enter.sh"]
        return [*enter, root, ROOT, DIST, "env", f"PATH=/t/bin:{os.defpath}:/usr/sbin", *command]

    step.run(*inside("python3", "-m", "venv", "--clear", "/t"))
    wanted = ["numpy"] if place.emulated else SUITE
    pip = ["/t/bin/python", "-m", "pip", "install", "--no-compile", "--only-binary=:all:"]
    step.run(*inside(*pip, Path("/wheels") / wheel.name, *wanted))
    step.run(*inside("sh", "-c", "! command -v cc c++ gcc clang"))
    step.run(*inside("sh", "-c", "cd /tmp && /t/bin/python /lowtide/tools/wheels/smoke.py"))
    step.note = step.log.read_text(errors="replace").splitlines()[-1]
    if not place.emulated:
        whole_suite(inside("/t/bin/python"), step, Path("/lowtide"), {})


def why_not(place: Place) -> str:
    """Why a place is not there; empty where it is."""
    if place.python is not None:
        return ""
    if os.geteuid() != 0:
        return "a Debian of its own needs root"
    if shutil.which("debootstrap") is None:
        return "debootstrap is not installed"
    if place.emulated:
        handlers = Path("/proc/sys/fs/binfmt_misc")
        if not any(handlers.glob(f"*{MACHINES[place.architecture]}*")):
            return f"this machine runs no {MACHINES[place.architecture]} programs: qemu-user-static"
    return ""


def test_all(targets: list[Target]) -> int:
    """Every wheel that is there, in every place that is there; what is left out is named."""
    setup_tools()
    wheels = {t: w for t in targets for w in DIST.glob(f"*-{t.file_tags}.whl")}
    untested = dict.fromkeys(target.name for target in wheels)
    failed = []
    for place in places(list(wheels)):
        title = f"{place.target.name} on {place.name}"
        if reason := why_not(place):
            print(f"{title}: not tested: {reason}")
            continue
        test = test_in_debian if place.python is None else test_in_venv
        try:
            with Step(title) as step:
                test(place, wheels[place.target], step)
        except SystemExit as failure:
            print(failure)
            failed.append(title)
            continue
        untested.pop(place.target.name, None)
    for name in untested:
        print(f"{name}: not tested")
    for target in targets:
        if target not in wheels:
            print(f"{target.name}: not in dist/")
    return 1 if failed else 0
