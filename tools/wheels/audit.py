"""What every wheel must pass before it is in dist/."""

import subprocess
import zipfile
from pathlib import Path

from steps import BUILD, DIST, VENV, Step
from targets import Target

LARGEST_BYTES = 3_000_000

CONTENTS = (
    "lowtide/__init__.py",
    "lowtide/_core.pyi",
    "lowtide/py.typed",
    "/scripts/lowtide",
    "/data/share/man/man1/lowtide.1",
    "/data/lib/lowtide/liblowtide_guard.so",
    "/data/lib/lowtide/liblowtide_curl.so",
    ".dist-info/licenses/LICENSE",
    ".dist-info/licenses/LICENSE.CLI11",
    ".dist-info/licenses/LICENSE.Mbed-TLS",
    ".dist-info/licenses/LICENSE.curl",
    ".dist-info/licenses/LICENSE.libc++",
    ".dist-info/licenses/LICENSE.liburing",
    ".dist-info/licenses/LICENSE.nanobind",
    ".dist-info/licenses/LICENSE.robin_map",
)


# auditwheel offers the platforms of the machine that it runs on, though it knows all others.
AUDITWHEEL = """
import sys
from auditwheel.architecture import Architecture
from auditwheel.libc import Libc
machine, libc = Architecture(sys.argv.pop(1)), Libc[sys.argv.pop(1)]
Architecture.detect = staticmethod(lambda **_: machine)
Libc.detect = staticmethod(lambda: libc)
from auditwheel.main import main
sys.exit(main())
"""


# zig links to musl as libc.so; Alpine and auditwheel know it by the name of the machine.
NAME_MUSL = """
import pathlib, subprocess, sys
from auditwheel.wheeltools import InWheelCtx
raw, named, machine = sys.argv[1:]
with InWheelCtx(pathlib.Path(raw), pathlib.Path(named)) as content:
    root = pathlib.Path(content.path)
    for file in (*root.rglob("*.so"), *root.rglob("scripts/lowtide")):
        new = f"libc.musl-{machine}.so.1"
        subprocess.run(["patchelf", "--replace-needed", "libc.so", new, file], check=True)
"""


def repair(target: Target, raw: Path, step: Step) -> Path:
    """Checks that the wheel needs only what its platform promises, and names it so."""
    tools = {"PATH": f"{VENV / 'bin'}:/usr/bin:/bin"}
    out = BUILD / "repaired" / target.name
    libc = target.platform.libc.upper()
    if libc == "MUSL":
        named = BUILD / "named" / raw.name
        named.parent.mkdir(exist_ok=True)
        python = VENV / "bin" / "python"
        step.run(python, "-c", NAME_MUSL, raw, named, target.platform.machine, env=tools)
        raw = named
    auditwheel = [VENV / "bin" / "python", "-c", AUDITWHEEL, target.platform.machine, libc]
    step.run(
        *(*auditwheel, "repair", "--plat", target.platform.tag, "--only-plat"),
        *("--wheel-dir", out, raw),
        env=tools,
    )
    repaired = next(out.glob(f"*-{target.file_tags}.whl"))
    step.run(*auditwheel, "show", repaired, env=tools)
    if grafted := [n for n in names(repaired) if n.startswith("lowtide.libs/")]:
        raise SystemExit(f"failed: not everything is linked statically: {grafted}")
    return repaired


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as content:
        return content.namelist()


def check(target: Target, wheel: Path, step: Step) -> None:
    held = names(wheel)
    suffix = ".abi3.so" if target.abi.stable else target.extension_suffix
    for wanted in (*CONTENTS, f"lowtide/_core{suffix}"):
        if not any(name.endswith(wanted) for name in held):
            raise SystemExit(f"failed: {wheel.name} lacks {wanted}")
    if target.abi.stable:
        step.run(VENV / "bin" / "abi3audit", "--strict", "--report", wheel)
    step.run(VENV / "bin" / "twine", "check", "--strict", wheel)


def keep(target: Target, wheel: Path) -> Path:
    """Into dist/, in the place of an older one of the same tags."""
    for old in DIST.glob(f"*-{target.file_tags}.whl"):
        old.unlink()
    return wheel.rename(DIST / wheel.name)


def too_large(wheel: Path) -> bool:
    return wheel.stat().st_size >= LARGEST_BYTES


def check_sdist(made: Path) -> None:
    done = subprocess.run(
        [VENV / "bin" / "twine", "check", "--strict", made], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"twine check {made.name}:\n{done.stdout}")
