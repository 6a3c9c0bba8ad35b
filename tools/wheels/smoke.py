"""What every wheel must do where the whole suite takes too long, as under an emulator.

Run by the Python that has the wheel, in an empty folder. Needs NumPy only. An argument is the file
of a certificate for 127.0.0.1 and its key, for https.
"""

import http.server
import json
import os
import subprocess
import sys
import sysconfig
import threading

import lowtide as lt
import numpy as np


def check_command() -> None:
    command = os.path.join(sysconfig.get_path("scripts"), "lowtide")
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    subprocess.run([command, "info", "m.npy"], check=True, capture_output=True)
    doctor = subprocess.run([command, "doctor", "--json"], check=True, capture_output=True)
    assert json.loads(doctor.stdout)["build"]["why_no_http"] == "", doctor.stdout
    assert lt.__version__ in version.stdout, version.stdout
    folder = sysconfig.get_path("data")
    for file in ("share/man/man1/lowtide.1", "lib/lowtide/liblowtide_guard.so"):
        assert os.path.getsize(os.path.join(folder, file)) > 1000, file


def check_guard() -> None:
    """Around this Python, whose C library is the one that the preloaded library was built for."""
    command = os.path.join(sysconfig.get_path("scripts"), "lowtide")
    program = "import numpy; assert numpy.load('m.npy', mmap_mode='r')[-1, -1] == 149999"
    guard = [command, "guard", "--limit", "64MiB", sys.executable, "-c", program]
    done = subprocess.run(guard, check=True, stderr=subprocess.PIPE, text=True)
    assert "preload" not in done.stderr, done.stderr


def check_epoch(data: np.ndarray) -> str:
    seen = np.zeros(len(data), int)
    with lt.open("m.npy", memory="4MiB") as array:
        for index, rows in array.batches(64, order="shuffle", seed=1):
            np.testing.assert_array_equal(rows, data[index])
            seen[index] += 1
        engine = array.stats()["engine"]
    assert (seen == 1).all()
    return engine


def check_loader(tokens: np.ndarray) -> None:
    starts = []
    with lt.tokens("t.bin", dtype="uint16", memory="4MiB") as source:
        for batch in lt.Loader(source, batch_size=8, block_size=64, seed=1, epochs=1):
            x, y = np.asarray(batch.x), np.asarray(batch.y)
            np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
            for row, last in zip(x, y[:, -1], strict=True):
                start = int(np.flatnonzero(tokens == row[0])[0])
                np.testing.assert_array_equal(tokens[start : start + 64], row)
                assert tokens[start + 64] == last
                starts.append(start)
    assert sorted(starts) == list(range(0, 64 * len(starts), 64)), "each window once"


class Ranges(http.server.BaseHTTPRequestHandler):
    """Answers ranges of the files in this folder."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with open(self.path.strip("/"), "rb") as file:
            whole = file.read()
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        part = whole[first : last + 1]
        self.send_response(206)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(whole)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        pass


def check_objects(data: np.ndarray, certificate: str | None) -> str:
    """Over http and, with a file of a certificate and its key, over https; which libcurl did it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    scheme = "http"
    if certificate is not None:
        import ssl  # which a Python that is compiled for other platforms lacks

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        os.environ["SSL_CERT_FILE"] = certificate
        scheme = "https"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"{scheme}://127.0.0.1:{server.server_port}/m.npy"
    with lt.open(url, memory="4MiB") as array:
        for index, rows in array.batches(64, order="shuffle", seed=1):
            np.testing.assert_array_equal(rows, data[index])
    server.shutdown()
    with open("/proc/self/maps") as maps:
        library = next(line.split("/")[-1].strip() for line in maps if "curl" in line)
    return f"{scheme} by {library}"


def main() -> None:
    data = np.arange(5000 * 30, dtype=np.float32).reshape(5000, 30)
    np.save("m.npy", data)
    tokens = np.random.default_rng(0).permutation(40_000).astype(np.uint16)
    tokens.tofile("t.bin")
    engine = check_epoch(data)
    check_loader(tokens)
    check_command()
    check_guard()
    objects = [check_objects(data, certificate) for certificate in (None, *sys.argv[1:])]
    if "free-threading" in sys.version:
        assert not sys._is_gil_enabled(), "importing lowtide turned the GIL on"
    print(f"epoch, loader, command and {', '.join(objects)} work; engine {engine}")


main()
