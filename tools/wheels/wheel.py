"""Builds the sdist, and each wheel from what the sdist contains."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import curl
import zig
from steps import BUILD, DIST, ROOT, STATE, VENV, Step, make_venv
from targets import Platform, Target

SDIST = BUILD / "sdist"  # the sdist, unpacked
FETCHED = BUILD / "fetched"  # the sources of what is linked in, fetched once for all wheels
MAN_PAGE = BUILD / "lowtide.1"
LICENCES = BUILD / "licences"

# Called without pip, so that a Python that builds needs none.
HOOK = "import json, sys; import scikit_build_core.build as b; b.build_{}({})"


def requirement(name: str) -> str:
    """nanobind==3.1.0, as pinned for the tools."""
    lines = (Path(__file__).parent / "requirements.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(name + "=="))


def plain_tree() -> Path:
    """A copy of the sources. The backend looks at every file, of which .dev may have very many."""
    tree = BUILD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    left_out = [".dev", ".git", "build", "dist"]
    shutil.copytree(ROOT, tree, ignore=lambda at, _: left_out if Path(at) == ROOT else [])
    return tree


def sdist() -> Path:
    with Step("sdist") as step:
        DIST.mkdir(exist_ok=True)
        for old in DIST.glob("*.tar.gz"):
            old.unlink()
        tree = plain_tree()
        step.run(VENV / "bin" / "python", "-c", HOOK.format("sdist", f"{str(DIST)!r}"), cwd=tree)
        made = next(DIST.glob("*.tar.gz"))
        unpack(made, step)
        step.note = f"{made.stat().st_size / 1e6:.2f} MB"
    return made


def unpack(made: Path, step: Step) -> None:
    """Into SDIST. A file that is as it was keeps its age, so that it is not compiled again."""
    fresh = BUILD / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    step.run("tar", "-xzf", made, "-C", fresh)
    (top,) = fresh.iterdir()
    files = {file.relative_to(top) for file in top.rglob("*") if file.is_file()}
    for file in files:
        kept = SDIST / file
        if not kept.is_file() or kept.read_bytes() != (top / file).read_bytes():
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(top / file, kept)
    for kept in [file for file in SDIST.rglob("*") if file.is_file()]:
        if kept.relative_to(SDIST) not in files:
            kept.unlink()


def build_folder(of: Platform) -> Path:
    """One for all Pythons of a platform, so that the library and the command are compiled once.

    Without what the Python before has left, CMake asks again what depends on Python, and the
    backend does not throw all objects away; ninja keeps those whose commands stay the same.
    """
    folder = BUILD / of.name
    for left in ("CMakeCache.txt", ".skbuild-info.json"):
        (folder / left).unlink(missing_ok=True)
    return folder


def man_page() -> None:
    """A command for this machine writes the page that every wheel gets."""
    with Step("man page and licences") as step:
        curl.sources(step)
        folder = build_folder(zig.host())
        step.run(
            *(VENV / "bin" / "cmake", "-S", SDIST, "-B", folder, "-G", "Ninja"),
            *("--toolchain", zig.toolchain(zig.host())),
            *(f"-DCMAKE_MAKE_PROGRAM={VENV / 'bin' / 'ninja'}", "-DLOWTIDE_WERROR=ON"),
            f"-DFETCHCONTENT_BASE_DIR={FETCHED}",
        )
        step.run(VENV / "bin" / "cmake", "--build", folder, "--target", "lowtide_command")
        page = subprocess.run([folder / "cli" / "lowtide", "--man"], stdout=subprocess.PIPE)
        page.check_returncode()
        MAN_PAGE.write_bytes(page.stdout)
        gather_licences()


def gather_licences() -> None:
    """Those of everything whose code is in a wheel, beside our own."""
    compiler = zig.program().parent
    packages = compiler.parent
    shutil.rmtree(LICENCES, ignore_errors=True)
    LICENCES.mkdir()
    for name, text in {
        "CLI11": FETCHED / "cli11-src" / "LICENSE",
        "liburing": FETCHED / "liburing-src" / "LICENSE",
        "libc++": compiler / "lib" / "libcxx" / "LICENSE.TXT",
        "musl": compiler / "lib" / "libc" / "musl" / "COPYRIGHT",
        **curl.licences(),
        "nanobind": next(packages.glob("nanobind-*.dist-info/licenses/LICENSE")),
    }.items():
        shutil.copyfile(text, LICENCES / f"LICENSE.{name}")
    header = packages / "nanobind" / "ext" / "robin_map" / "include" / "tsl" / "robin_map.h"
    comment = header.read_text().partition("*/")[0].splitlines()[1:]  # its licence is its head
    (LICENCES / "LICENSE.robin_map").write_text("\n".join(t.lstrip(" *") for t in comment) + "\n")


def builder(target: Target, python: Path, step: Step) -> Path:
    """The Python that builds: one environment an ABI, kept."""
    wanted = [requirement("nanobind"), requirement("scikit-build-core")]
    folder = STATE / "builders" / target.abi.name
    stamp = folder / "requirements"
    key = json.dumps([str(python), *wanted])
    if not stamp.is_file() or stamp.read_text() != key:
        make_venv(python, folder, wanted, step)
        stamp.write_text(key)
    return folder / "bin" / "python"


def build(target: Target, python: Path, step: Step) -> Path:
    """One wheel, tagged linux_<machine>: auditwheel gives it the tag of its platform."""
    raw = BUILD / "raw" / target.name
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    settings = {
        "build-dir": str(build_folder(target.platform)),
        "cmake.args": f"--toolchain={zig.toolchain(target.platform)}",
        "cmake.define.LOWTIDE_WERROR": "ON",
        "cmake.define.LOWTIDE_MAN_PAGE": str(MAN_PAGE),
        "cmake.define.LOWTIDE_LICENCES": str(LICENCES),
        "cmake.define.FETCHCONTENT_BASE_DIR": str(FETCHED),
        "cmake.define.LOWTIDE_CURL": str(curl.provide(target.platform, step)),
    }
    env = {
        "PATH": f"{VENV / 'bin'}:{os.environ['PATH']}",
        "_PYTHON_HOST_PLATFORM": f"linux-{target.platform.machine}",
        "SETUPTOOLS_EXT_SUFFIX": target.extension_suffix,
        "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("JOBS", "2"),
    }
    step.run(
        *(builder(target, python, step), "-c"),
        HOOK.format("wheel", f"{str(raw)!r}, json.loads(sys.argv[1])"),
        json.dumps(settings),
        cwd=SDIST,
        env=env,
    )
    return next(raw.glob("*.whl"))
