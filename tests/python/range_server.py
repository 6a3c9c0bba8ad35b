"""A server of objects on loopback, for tests: ranges, ETags, and faults that the path asks for.

The objects are the files in and below a folder. A path may begin with faults, each with a value:
`/late=20/x.npy` answers after 20 ms, `/fail=0.1/x.npy` answers one of ten requests with 503,
`/cut=0.1/` resets one of ten in mid-body, `/stall=0.01/` sends nothing for two seconds in mid-body
of one of a hundred. `/whole/` answers 200 and the whole object, `/lie/` another range than asked,
`/deny/` 403, `/skew/` and `/expired/` the same as S3 says it of a wrong clock and of an old
signature, `/proxy/` 407, `/moved/` redirects to the same path without it, `/signed/` wants
`?key=...`, `/basic/` wants user:SECRET. A query with `list-type=2` lists all objects, in pages of
1000, as a bucket would. Faults are drawn by the number of the request, so a run repeats.
"""

from __future__ import annotations

import base64
import random
import socket
import ssl
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

SECRET = "SESAME-OPEN"
REFUSALS = {"skew": "RequestTimeTooSkewed", "expired": "ExpiredToken"}


class RangeServer:
    """Serves `folder` until it is closed, with a context by https.

    `requests` is a list of (path, range or None).
    """

    def __init__(self, folder: Path, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, str | None]] = []
        self.versions: dict[str, int] = {}  # a name -> what is added to its ETag
        self.flying = self.most = 0
        self.key = SECRET  # what /signed/ wants
        self.open_gate = threading.Event()  # cleared: no request is answered
        self.open_gate.set()
        self.lock = threading.Lock()
        server = self

        class Handler(_Handler):
            root = folder
            owner = server

        class Server(ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, *_: object) -> None:  # a client that went away
                pass

        self.http = Server(("127.0.0.1", 0), Handler)
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.scheme = "http" if context is None else "https"
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def url(self, path: str, user: str = "") -> str:
        return f"{self.scheme}://{user}127.0.0.1:{self.port}/{path}"

    def close(self) -> None:
        self.open_gate.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def __enter__(self) -> RangeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path
    owner: RangeServer

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        owner = self.owner
        with owner.lock:
            number = len(owner.requests)
            owner.requests.append((self.path, self.headers.get("Range")))
            owner.flying += 1
            owner.most = max(owner.most, owner.flying)
        try:
            owner.open_gate.wait(60)
            self.answer(number)
        finally:
            with owner.lock:
                owner.flying -= 1

    def answer(self, number: int) -> None:
        parts = urlsplit(self.path)
        words = parts.path.lstrip("/").split("/")
        faults: dict[str, float] = {}
        while len(words) > 1 and not (self.root / unquote(words[0])).is_dir():
            name, _, value = words[0].partition("=")
            faults[name] = float(value or 1)
            words.pop(0)
        name = unquote("/".join(words))
        chance = random.Random(number)
        if "late" in faults:
            time.sleep(faults["late"] / 1000)
        if "moved" in faults:
            rest = self.path.replace("/moved", "", 1)
            if "plain" in faults:
                return self.refuse(302, Location=f"http://127.0.0.1:{self.owner.port}{rest}")
            return self.refuse(
                302, Location=f"{self.owner.scheme}://localhost:{self.owner.port}{rest}"
            )
        if "deny" in faults or ("signed" in faults and parts.query != f"key={self.owner.key}"):
            return self.refuse(403)
        for fault, code in REFUSALS.items():
            if fault in faults:
                return self.refuse(403, f"<Error><Code>{code}</Code></Error>")
        if "proxy" in faults:
            return self.refuse(407)
        login = "Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode()
        if "basic" in faults and self.headers.get("Authorization") != login:
            return self.refuse(401)
        if chance.random() < faults.get("fail", 0):
            return self.refuse(503)
        query = parse_qs(parts.query, keep_blank_values=True)
        if query.get("list-type") == ["2"]:
            return self.send_list(query)
        file = self.root / name
        if not file.is_file():
            return self.refuse(404)
        self.send_object(file, faults, chance)

    def send_list(self, query: dict[str, list[str]]) -> None:
        prefix, after = query["prefix"][0], query.get("continuation-token", [""])[0]
        files = [file for file in self.root.rglob("*") if file.is_file()]
        names = sorted(file.relative_to(self.root).as_posix().encode() for file in files)
        left = [
            name for name in names if name.startswith(prefix.encode()) and name.decode() > after
        ]
        page = [f"<Contents><Key>{escape(name.decode())}</Key></Contents>" for name in left[:1000]]
        more = f"<IsTruncated>{'true' if len(left) > 1000 else 'false'}</IsTruncated>"
        if len(left) > 1000:
            token = escape(left[999].decode())
            more += f"<NextContinuationToken>{token}</NextContinuationToken>"
        body = f"<ListBucketResult>{''.join(page)}{more}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, body: str = "no", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def send_object(self, file: Path, faults: dict[str, float], chance: random.Random) -> None:
        size = file.stat().st_size
        etag = f'"{quote(file.name)}-{size}-{self.owner.versions.get(file.name, 0)}"'
        if self.headers.get("If-Match", etag) != etag:
            return self.refuse(412)
        first, last = 0, size - 1
        asked = self.headers.get("Range")
        if asked is not None and "whole" not in faults:
            first, last = (int(word) for word in asked.removeprefix("bytes=").split("-"))
            if first >= size:
                return self.refuse(416, **{"Content-Range": f"bytes */{size}"})
            last = min(last, size - 1)
            self.send_response(206)
            shift = 1 if "lie" in faults else 0
            range_sent = f"bytes {first + shift}-{last + shift}/{size + shift}"
            self.send_header("Content-Range", range_sent)
        else:
            self.send_response(200)
        with file.open("rb") as opened:
            opened.seek(first)
            body = memoryview(opened.read(last + 1 - first))
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if chance.random() < faults.get("cut", 0):
            self.wfile.write(body[: len(body) // 2])
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True
            return
        if chance.random() < faults.get("stall", 0):
            self.wfile.write(body[: len(body) // 2])
            time.sleep(2)
            body = body[len(body) // 2 :]
        self.wfile.write(body)
