"""The libcurl that wheels carry, so that they read http:// and s3:// where no libcurl is installed.

HTTP and HTTPS only, with Mbed TLS inside: one library, loaded when the first object is opened.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import zig
from pythons import unpack
from sources import CURL, MBEDTLS
from steps import BUILD, STATE, VENV, Step
from targets import Platform

HERE = Path(__file__).resolve().parent / "curl"
TREES = BUILD / "curl"
NAME = "liblowtide_curl.so"

OF_MBEDTLS = ("ENABLE_PROGRAMS=OFF", "ENABLE_TESTING=OFF", "GEN_FILES=OFF")

ABSENT = (
    *("ALTSVC", "COOKIES", "DOH", "FORM_API", "GETOPTIONS", "HSTS", "INSTALL", "IPFS"),
    *("KERBEROS_AUTH", "MIME", "NEGOTIATE_AUTH", "NETRC", "PROGRESS_METER", "WEBSOCKETS"),
)
OF_CURL = (
    *("HTTP_ONLY=ON", "CURL_USE_MBEDTLS=ON", "CURL_USE_OPENSSL=OFF", "CURL_USE_PKGCONFIG=OFF"),
    *("BUILD_SHARED_LIBS=OFF", "BUILD_STATIC_LIBS=ON", "BUILD_CURL_EXE=OFF", "BUILD_TESTING=OFF"),
    *("BUILD_EXAMPLES=OFF", "BUILD_LIBCURL_DOCS=OFF", "BUILD_MISC_DOCS=OFF"),
    *("ENABLE_CURL_MANUAL=OFF", "ENABLE_UNIX_SOCKETS=OFF"),
    *("CURL_ZLIB=OFF", "CURL_BROTLI=OFF", "CURL_ZSTD=OFF", "USE_NGHTTP2=OFF", "USE_LIBIDN2=OFF"),
    *("CURL_USE_LIBPSL=OFF", "CURL_USE_LIBSSH2=OFF"),
    *("CURL_CA_BUNDLE=none", "CURL_CA_PATH=none"),  # found at run time: each system has another one
    *(f"CURL_DISABLE_{part}=ON" for part in ABSENT),
)


def sources(step: Step) -> None:
    """Unpacked into TREES, with our choice of what Mbed TLS contains at the end of its own."""
    for source in (CURL, MBEDTLS):
        if not (TREES / source.name).is_dir():
            unpack(source, TREES, step)
    config = TREES / MBEDTLS.name / "include" / "mbedtls" / "mbedtls_config.h"
    original = config.with_suffix(".original")
    if not original.is_file():
        shutil.copyfile(config, original)
    config.write_text(original.read_text() + (HERE / "mbedtls.h").read_text())


def licences() -> dict[str, Path]:
    return {"curl": TREES / CURL.name / "COPYING", "Mbed-TLS": TREES / MBEDTLS.name / "LICENSE"}


def made_from() -> str:
    """Changes whenever the library would."""
    recipe = [Path(__file__), Path(zig.__file__), *sorted(HERE.iterdir())]
    content = b"".join(file.read_bytes() for file in recipe)
    return hashlib.sha256(content + f"{CURL} {MBEDTLS}".encode()).hexdigest()


def provide(of: Platform, step: Step) -> Path:
    """The library for this platform, built once."""
    library = STATE / "curl" / of.name / NAME
    stamp = library.with_suffix(".from")
    if not (stamp.is_file() and stamp.read_text() == made_from()):
        library.parent.mkdir(parents=True, exist_ok=True)
        link(of, library, list(archives(of, step)), step)
        stamp.write_text(made_from())
    return library


def archives(of: Platform, step: Step) -> Iterator[Path]:
    """libcurl.a, then those of Mbed TLS, in the order in which they are linked."""
    tls = cmake_build(of, MBEDTLS.name, OF_MBEDTLS, step) / "library"
    parts = {name: tls / f"lib{name}.a" for name in ("mbedtls", "mbedx509", "mbedcrypto")}
    where = [f"{name.upper()}_LIBRARY={file}" for name, file in parts.items()]
    include = f"MBEDTLS_INCLUDE_DIR={TREES / MBEDTLS.name / 'include'}"
    yield cmake_build(of, CURL.name, (*OF_CURL, include, *where), step) / "lib" / "libcurl.a"
    yield from parts.values()


def cmake_build(of: Platform, name: str, choices: tuple[str, ...], step: Step) -> Path:
    folder = TREES / of.name / name
    cmake = VENV / "bin" / "cmake"
    step.run(
        *(cmake, "--fresh", "-S", TREES / name, "-B", folder, "-G", "Ninja", "-Wno-dev"),
        *("--toolchain", zig.linking_toolchain(of)),
        *(f"-DCMAKE_MAKE_PROGRAM={VENV / 'bin' / 'ninja'}", "-DCMAKE_BUILD_TYPE=MinSizeRel"),
        "-DCMAKE_C_FLAGS=-ffunction-sections -fdata-sections",
        *(f"-D{choice}" for choice in choices),
    )
    step.run(cmake, "--build", folder, "--parallel", os.environ.get("JOBS", "2"))
    return folder


def link(of: Platform, library: Path, parts: list[Path], step: Step) -> None:
    curl, *tls = parts
    options = ["--gc-sections", "-Bsymbolic", "-z,defs", "-z,now", f"-soname,{NAME}"]
    options += [f"--version-script={HERE / 'exports.map'}"]
    step.run(
        *(zig.compiler(of), "-shared", "-Os", "-std=c11", "-Wall", "-Wextra", "-Werror"),
        *(f"-I{TREES / CURL.name / 'include'}", f"-I{TREES / MBEDTLS.name / 'include'}"),
        *("-o", library, HERE / "authorities.c"),
        *("-Wl,--whole-archive", curl, "-Wl,--no-whole-archive", *tls),
        *(f"-Wl,{option}" for option in options),
        "-lpthread",
    )
