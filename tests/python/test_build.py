"""A build that lacks something downloads it, or fails and says what to do."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:9"  # the port "discard": nobody listens
LIBURING = "liburing_2.3.orig.tar.gz"
CLI11 = "cli11_2.1.2+ds.orig.tar.xz"
CURL = "curl_7.88.1.orig.tar.gz"
SUMS = {
    LIBURING: "2eac26f880125d83f75ba8641fde5d88226dd352d3cee95d45a9128758a8f1be",
    CLI11: "8143d20b688e98ccce8e24562d3b68e5f47c12e896c42c7ca8553dbde5bed55d",
    CURL: "cdb38b72e36bc5d33d5b8810f8018ece1baa29a8f215b4495e495ded82bbf3c7",
}

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "c++"))) or not (ROOT / "CMakeLists.txt").exists(),
    reason="needs cmake, ninja, a C++ compiler and the sources",
)


def configure(
    folder: pathlib.Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Configures the sources as on a machine that lacks all of them."""
    missing = ("CLI11", "CurlHeader", "Liburing")
    hidden = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in missing]
    hidden += ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DLOWTIDE_UNITY=OFF"]
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return subprocess.run(
        ["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *hidden, *options],
        env={**(kept if variables else os.environ), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def offline(folder: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    return configure(folder, *options, http_proxy=NOWHERE, https_proxy=NOWHERE)


def sources_of(folder: pathlib.Path) -> set[str]:
    """The names of the files that this build compiles."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    return {pathlib.Path(command["file"]).name for command in commands}


@pytest.fixture
def online() -> None:
    try:
        urllib.request.urlopen("https://deb.debian.org/debian/dists/stable/Release", timeout=10)
    except OSError as error:
        pytest.skip(f"deb.debian.org cannot be reached: {error}")


@pytest.fixture
def forger() -> Iterator[str]:
    """A proxy that answers every request with the same wrong bytes."""

    class Wrong(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"wrong")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wrong) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("online")
def test_what_is_missing_is_downloaded_and_compiled_in(tmp_path):
    done = configure(tmp_path)
    assert done.returncode == 0, done.stderr
    for name, sum_ in SUMS.items():
        found = hashlib.sha256((tmp_path / "_deps" / name).read_bytes()).hexdigest()
        assert found == sum_
    assert {"ring.cc", "setup.c", "main.cc", "curl.cc"} <= sources_of(tmp_path)
    again = offline(tmp_path)
    assert again.returncode == 0, "what was downloaded once is kept: " + again.stderr
    assert "downloading" not in again.stdout


@pytest.mark.parametrize(
    ("missing", "package", "option"),
    [
        ("CLI11", "libcli11-dev", "LOWTIDE_COMMAND"),
        ("Liburing", "liburing-dev", "LOWTIDE_URING"),
        ("curl", "libcurl4-openssl-dev", "LOWTIDE_HTTP"),
    ],
)
def test_a_build_that_cannot_download_fails_and_says_what_to_do(tmp_path, missing, package, option):
    # The others are left out by their options, whatever this machine has.
    others = {"LOWTIDE_COMMAND", "LOWTIDE_HTTP", "LOWTIDE_URING"} - {option}
    done = offline(tmp_path, *(f"-D{other}=OFF" for other in others))
    assert done.returncode != 0
    told = " ".join(done.stderr.split())
    assert f"{missing} is not installed and could not be downloaded".lower() in told.lower()
    assert f"apt-get install {package}" in told
    assert f"cmake -D{option}=OFF" in told
    # In full: the pip of Debian 12 does not know -C.
    assert f"pip install --config-settings=cmake.define.{option}=OFF ." in told


def test_options_leave_all_out_without_a_network(tmp_path):
    options = ["-DLOWTIDE_COMMAND=OFF", "-DLOWTIDE_URING=OFF", "-DLOWTIDE_HTTP=OFF"]
    done = offline(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert "built without io_uring, as LOWTIDE_URING=OFF asks" in done.stdout
    assert "built without http, as LOWTIDE_HTTP=OFF asks" in done.stdout
    sources = sources_of(tmp_path)
    assert "ring_absent.cc" in sources
    assert "transport_absent.cc" in sources
    assert not sources & {"ring.cc", "setup.c", "main.cc", "transport.cc", "curl.cc"}


def test_sources_that_are_at_hand_need_no_network(tmp_path):
    (tmp_path / "cli/include").mkdir(parents=True)
    at_hand = f"-DFETCHCONTENT_SOURCE_DIR_CLI11={tmp_path}/cli"
    done = offline(tmp_path / "build", "-DLOWTIDE_URING=OFF", "-DLOWTIDE_HTTP=OFF", at_hand)
    assert done.returncode == 0, done.stderr
    assert "main.cc" in sources_of(tmp_path / "build")


def test_a_file_with_another_hash_is_refused(tmp_path, forger):
    done = configure(tmp_path, "-DLOWTIDE_COMMAND=OFF", http_proxy=forger, https_proxy=NOWHERE)
    assert done.returncode != 0
    wrong = hashlib.sha256(b"wrong").hexdigest()
    told = " ".join(done.stderr.split())
    assert f"its SHA-256 is {wrong}, not {SUMS[LIBURING]}" in told
    assert not (tmp_path / "_deps" / LIBURING).exists()


def test_a_python_without_headers_is_named_with_its_package(tmp_path):
    nowhere = f"-DPython_INCLUDE_DIR={tmp_path}/nowhere"
    options = [
        "-DLOWTIDE_COMMAND=OFF",
        "-DLOWTIDE_URING=OFF",
        "-DLOWTIDE_HTTP=OFF",
        "-DLOWTIDE_PYTHON=ON",
    ]
    done = offline(tmp_path / "build", *options, nowhere)
    assert done.returncode != 0
    told = " ".join(done.stderr.split())
    assert "lowtide: the headers of Python 3." in told
    assert "apt-get install python3-dev" in told
