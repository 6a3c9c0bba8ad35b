"""zig as the compiler of a platform: cc, c++, ar, ranlib and a toolchain file for CMake."""

import platform
from pathlib import Path

from steps import STATE, VENV
from targets import PLATFORMS, Platform

# What a wheel links is compiled along with it, for its platform, and never taken from this machine.
# Checks of CMake are not linked: zig would compile another libc++ for them.
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {machine})
set(CMAKE_C_COMPILER {folder}/cc)
set(CMAKE_CXX_COMPILER {folder}/c++)
set(CMAKE_AR {folder}/ar)
set(CMAKE_RANLIB {folder}/ranlib)
set(CMAKE_STRIP true)
set(CMAKE_SKIP_RPATH ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-pie{dynamic}")
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
set(LOWTIDE_CCACHE OFF CACHE STRING "ninja keeps the objects of a platform")
set(CMAKE_DISABLE_FIND_PACKAGE_CLI11 ON)
set(CMAKE_DISABLE_FIND_PACKAGE_CurlHeader ON)
set(CMAKE_DISABLE_FIND_PACKAGE_Liburing ON)
"""

# For projects in C that find out by linking what the C library has.
LINKING = """\
include({folder}/toolchain.cmake)
set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE)
"""


# Before all other flags, so that every link finds the libc++ that the first one had zig compile.
# -s: zig has no strip that CMake could call afterwards.
FLAGS = "-O3 -fPIC -s"


def program() -> Path:
    return next(VENV.glob("lib/python*/site-packages/ziglang/zig"))


def toolchain(of: Platform) -> Path:
    """Writes the folder and gives its toolchain file."""
    folder = STATE / "zig" / of.name
    folder.mkdir(parents=True, exist_ok=True)
    cache = STATE / "zig-cache"
    for name, words in {
        "cc": f"cc -target {of.zig} {FLAGS}",
        "c++": f"c++ -target {of.zig} {FLAGS}",
        "ar": "ar",
        "ranlib": "ranlib",
    }.items():
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR="{cache}"\nexec "{program()}" {words} "$@"\n'
        )
        script.chmod(0o755)
    file = folder / "toolchain.cmake"
    # For musl, zig links programs statically, and a static one cannot load the module.
    dynamic = " -dynamic" if of.libc == "musl" else ""
    file.write_text(TOOLCHAIN.format(machine=of.machine, folder=folder, dynamic=dynamic))
    return file


def compiler(of: Platform) -> Path:
    return toolchain(of).with_name("cc")


def linking_toolchain(of: Platform) -> Path:
    folder = toolchain(of).parent
    file = folder / "linking.cmake"
    file.write_text(LINKING.format(folder=folder))
    return file


def host() -> Platform:
    """The platform whose programs this machine runs."""
    found = [p for p in PLATFORMS if p.machine == platform.machine()]
    if not found:
        raise SystemExit(f"./dev wheels runs on x86_64 and aarch64, not on {platform.machine()}")
    return found[0]
