"""Sources of the libcurl in wheels, and of Pythons that a wheel needs and nobody offers."""

import hashlib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from steps import STATE

DEBIAN = "http://deb.debian.org/debian/pool/main"
UBUNTU = "http://archive.ubuntu.com/ubuntu/pool/main"


@dataclass(frozen=True)
class Source:
    """A release; `archives` are tried in turn for a file with this hash."""

    name: str
    sha256: str
    archives: tuple[str, ...]

    def fetch(self) -> Path:
        """The archive, downloaded once."""
        into = STATE / "sources" / f"{self.name}.tar"
        into.parent.mkdir(parents=True, exist_ok=True)
        if into.is_file() and hashlib.sha256(into.read_bytes()).hexdigest() == self.sha256:
            return into
        failures = []
        for url in self.archives:
            try:
                with urllib.request.urlopen(url, timeout=60) as answer:
                    content = answer.read()
            except (urllib.error.URLError, OSError) as failure:
                failures.append(f"{url}: {failure}")
                continue
            if (found := hashlib.sha256(content).hexdigest()) == self.sha256:
                into.write_bytes(content)
                return into
            failures.append(f"{url}: its SHA-256 is {found}, not {self.sha256}")
        raise OSError(f"{self.name} could not be downloaded\n    " + "\n    ".join(failures))


def debian(file: str, snapshot: str) -> tuple[str, ...]:
    """Where Debian has a file: its archive drops old releases, its snapshots stay."""
    return (
        f"{DEBIAN}/{file}",
        f"https://snapshot.debian.org/archive/debian/{snapshot}/pool/main/{file}",
    )


def cpython(version: str, sha256: str, distribution: str, ending: str = "tar.xz") -> Source:
    """Distributions drop old releases from their archives, python.org does not."""
    minor = version.rpartition(".")[0]
    ours = "tgz" if ending == "tar.gz" else ending
    return Source(
        f"Python-{version}",
        sha256,
        (
            f"https://www.python.org/ftp/python/{version}/Python-{version}.{ours}",
            f"{distribution}/p/python{minor}/python{minor}_{version}.orig.{ending}",
        ),
    )


CPYTHON = {
    (3, 10): cpython(
        "3.10.4", "80bf925f571da436b35210886cf79f6eb5fa5d6c571316b73568343451f77a19", UBUNTU
    ),
    (3, 11): cpython(
        "3.11.2",
        "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849",
        DEBIAN,
        "tar.gz",
    ),
    (3, 12): cpython(
        "3.12.3", "56bfef1fdfc1221ce6720e43a661e3eb41785dd914ce99698d8c7896af4bdaa1", UBUNTU
    ),
    (3, 13): cpython(
        "3.13.5", "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640", DEBIAN
    ),
    (3, 14): cpython(
        "3.14.4", "d923c51303e38e249136fc1bdf3568d56ecb03214efdef48516176d3d7faaef8", UBUNTU
    ),
}

# What pip and the tests need of a Python.
LIBRARIES = (
    Source(
        "zlib-1.3.1",
        "60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb",
        (f"{DEBIAN}/z/zlib/zlib_1.3.dfsg+really1.3.1.orig.tar.gz",),
    ),
    Source(
        "libffi-3.4.4",
        "d66c56ad259a82cf2a9dfc408b32bf5da52371500b84745f7fb8b645712df676",
        (f"{DEBIAN}/libf/libffi/libffi_3.4.4.orig.tar.gz",),
    ),
)

# Of a client of https, the newest release counts: look for one before each release of ours.
CURL = Source(
    "curl-8.22.0",
    "d54dd598bf05927a726deb38df31c6a255ba83ff1de57c5d1464dac3ed8f44a1",
    debian("c/curl/curl_8.22.0.orig.tar.gz", "20261101T000000Z"),
)
MBEDTLS = Source(
    "mbedtls-3.6.7",
    "a7e8bcbec0e6f761b4af24f25677626b35f762f68eef79c08677a363212d11f6",
    debian("m/mbedtls/mbedtls_3.6.7.orig.tar.bz2", "20261101T000000Z"),
)
