"""Compiles Pythons of other platforms, to test wheels that nothing else here can load.

The compilers are Debian's: zig, which builds the wheels, takes minutes for a configure script.

They have what pip needs to unpack and what the tests import, and no TLS: pip of this machine
downloads for them.
"""

import os
import shutil
from pathlib import Path

import zig
from pythons import BUILT, options, provide, unpack
from sources import CPYTHON, LIBRARIES, Source
from steps import STATE, VENV, Step
from targets import Abi, Platform

# What configure cannot find out by running a program.
ANSWERS = ["ac_cv_file__dev_ptmx=yes", "ac_cv_file__dev_ptc=no", "ac_cv_buggy_getaddrinfo=no"]

# The platforms of wheels that such a Python loads, as projects name them.
TAGS = {
    "glibc": ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"),
    "musl": ("musllinux_1_2", "musllinux_1_1"),
}


def compiler(of: Platform) -> str:
    return "musl-gcc" if of.libc == "musl" else f"{of.machine}-linux-gnu-gcc"


def tools(of: Platform) -> dict[str, str]:
    """The environment of a build for this platform."""
    libraries = BUILT / of.name / "libraries"
    return {
        "PATH": f"{no_multiarch(of)}:{os.environ['PATH']}",
        "CC": str(wrapper(of)),
        "AR": f"{of.machine}-linux-gnu-ar",
        "RANLIB": f"{of.machine}-linux-gnu-ranlib",
        "CFLAGS": "-O1 -fPIC",
        "CPPFLAGS": f"-I{libraries / 'include'}",
        "LDFLAGS": f"-L{libraries / 'lib'}",
        "PKG_CONFIG_LIBDIR": str(libraries / "lib" / "pkgconfig"),
    }


def wrapper(of: Platform) -> Path:
    """The compiler, which keeps to itself that Debian's musl-gcc takes itself for one of glibc."""
    script = BUILT / of.name / "cc"
    script.parent.mkdir(parents=True, exist_ok=True)
    silence = "case $1 in -print-multiarch | --print-multiarch) exit ;; esac"
    script.write_text(f'#!/bin/sh\n{silence}\nexec {compiler(of)} "$@"\n')
    script.chmod(0o755)
    return script


def no_multiarch(of: Platform) -> Path:
    """A folder in which dpkg-architecture fails.

    If the compiler names no folder, Python before 3.12 asks it, and gets the headers of glibc.
    """
    script = BUILT / of.name / "programs" / "dpkg-architecture"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    return script.parent


def make(step: Step, tree: Path, env: dict[str, str], *targets: str) -> None:
    step.run("make", "-s", f"-j{os.environ.get('JOBS', '2')}", *targets, cwd=tree, env=env)


def build_library(source: Source, of: Platform, step: Step) -> None:
    prefix = BUILT / of.name / "libraries"
    stamp = prefix / source.name
    if stamp.is_file():
        return
    tree = unpack(source, BUILT / of.name / "src", step)
    env = tools(of)
    arguments = [f"--prefix={prefix}"]
    if source.name.startswith("zlib"):  # its configure is written by hand
        arguments += ["--static"]
    else:
        arguments += ["--disable-shared", "--disable-docs", "--disable-multi-os-directory"]
        arguments += ["--disable-exec-static-tramp"]  # which does not compile without glibc
        arguments += ["-q", f"--host={of.soabi}"]
    step.run("./configure", *arguments, cwd=tree, env=env)
    make(step, tree, env, "install")
    stamp.touch()


def find(abi: Abi, of: Platform) -> Path | None:
    """A Python of this platform, compiled if it is not there; None, after a word, without one."""
    python = BUILT / of.name / abi.name / "bin" / abi.python
    if python.is_file():
        return python
    # As on a machine with musl: its programs run here. crypt is that of glibc.
    how = [f"--build={of.soabi}", "py_cv_module__crypt=n/a"]
    if of.libc != "musl":
        builder = provide(abi)
        if builder is None:
            return None
        how = [f"--build={zig.host().soabi}", f"--host={of.soabi}", *ANSWERS]
        how += [f"--with-build-python={builder}"] * (abi.version > (3, 10))
    try:
        with Step(f"{abi.python} for {of.name}") as step:
            for library in LIBRARIES:
                build_library(library, of, step)
            build(abi, of, how, step)
    except (SystemExit, OSError) as failure:
        print(failure)
        return None
    return python


def build(abi: Abi, of: Platform, how: list[str], step: Step) -> None:
    tree = unpack(CPYTHON[abi.version], BUILT / of.name / "src", step)
    env = tools(of)
    arguments = options(abi, BUILT / of.name / abi.name)
    step.run("./configure", *arguments, *how, cwd=tree, env=env)
    make(step, tree, env)
    make(step, tree, env, "install")
    shutil.rmtree(tree)


def download(abi: Abi, of: Platform, packages: list[str], step: Step) -> Path:
    """The folder with the wheels of `packages` and all they need, for that Python."""
    folder = STATE / "downloads" / f"{abi.name}-{of.name}"
    step.run(
        *(VENV / "bin" / "pip", "download", "--only-binary=:all:", "--dest", folder),
        *(f"--platform={tag}_{of.machine}" for tag in TAGS[of.libc]),
        *("--implementation=cp", "--python-version={}.{}".format(*abi.version)),
        *(f"--abi={tag}" for tag in (abi.abi_tag, "abi3", "none")),
        *packages,
    )
    return folder
