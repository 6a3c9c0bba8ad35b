#!/usr/bin/env python3
"""A server of ranges on loopback with latency and faults: one thread over epoll and sendfile.

It prints its port and serves the files of a folder until its input ends. A path may begin with
faults, each with a value: `/late=20/x.npy` answers 20 ms after the request, `/fail=0.01/` answers
one of a hundred requests with 503, `/cut=0.01/` resets the connection in mid-body, `/stall=0.01/`
pauses for two seconds in mid-body. Which requests fail is drawn from their number.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import select
import socket
import struct
import sys
import time
from typing import Any

STALL_S = 2.0
TURN_BYTES = 1 << 20  # of one connection, then the others have their turn
_RESET = struct.pack("ii", 1, 0)


def draw(number: int, salt: int) -> float:
    """A number between 0 and 1 that depends on the request only (splitmix64)."""
    value = (number * 0x9E3779B97F4A7C15 + salt * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & (2**64 - 1)
    return (value ^ value >> 31) / 2**64


class Connection:
    def __init__(self, server: Server, sock: socket.socket) -> None:
        self.server, self.sock = server, sock
        self.received = b""
        self.busy = False  # with one request; clients of ours send the next one after the answer
        self.head = b""
        self.file, self.at, self.end = -1, 0, 0  # what is left of the body
        self.pause_at = self.cut_at = -1
        self.writing = False
        self.closed = False

    def readable(self) -> None:
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.close()
        self.received += data
        self.begin()

    def begin(self) -> None:
        if self.busy or b"\r\n\r\n" not in self.received:
            return
        request, _, self.received = self.received.partition(b"\r\n\r\n")
        self.busy = True
        lines = request.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")[1].lstrip("/").split("/")
        faults: dict[str, float] = {}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            faults[name] = float(value)
        asked = next((line[6:] for line in lines if line[:6].lower() == "range:"), "")
        self.prepare("/".join(words), asked.strip(), faults)
        late_s = faults.get("late", 0) / 1000
        if late_s > 0:
            self.server.at(late_s, self)
        else:
            self.writable()

    def prepare(self, name: str, asked: str, faults: dict[str, float]) -> None:
        server = self.server
        server.number += 1
        number = server.number
        found = server.open(name)
        self.pause_at = self.cut_at = -1
        if found is None:
            return self.say(404)
        self.file, size, etag = found
        first, _, last = asked[6:].partition("-") if asked else ("0", "", "")
        # "-n" are the last n bytes.
        self.at = int(first) if first else max(0, size - int(last))
        self.end = min(int(last) + 1, size) if first and last else size
        if draw(number, 1) < faults.get("fail", 0):
            return self.say(503)
        middle = (self.at + self.end) // 2
        if draw(number, 2) < faults.get("cut", 0):
            self.cut_at = middle
        if draw(number, 3) < faults.get("stall", 0):
            self.pause_at = middle
        status = "206 Partial Content" if asked else "200 OK"
        self.head = (
            f"HTTP/1.1 {status}\r\nContent-Range: bytes {self.at}-{self.end - 1}/{size}\r\n"
            f"Content-Length: {self.end - self.at}\r\nETag: {etag}\r\n\r\n"
        ).encode()

    def say(self, status: int) -> None:
        self.at = self.end = 0
        self.head = f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()

    def writable(self) -> None:
        try:
            if self.head:
                more = socket.MSG_MORE if self.at < self.end else 0
                self.head = self.head[self.sock.send(self.head, more) :]
            turn = TURN_BYTES
            while not self.head and self.at < self.end and turn > 0:
                stop = self.pause_at if self.pause_at >= 0 else self.cut_at
                stop = stop if stop >= 0 else self.end
                if self.at >= stop:
                    return self.interrupt()
                sent = os.sendfile(
                    self.sock.fileno(), self.file, self.at, min(turn, stop - self.at)
                )
                self.at += sent
                turn -= sent
        except BlockingIOError:
            pass
        except OSError:
            return self.close()
        done = not self.head and self.at >= self.end
        self.wait_for_room(not done)
        if done:
            self.busy = False
            self.begin()

    def interrupt(self) -> None:
        if self.pause_at >= 0:
            self.pause_at = -1
            self.wait_for_room(False)
            return self.server.at(STALL_S, self)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close()

    def wait_for_room(self, wanted: bool) -> None:
        if wanted != self.writing and not self.closed:
            self.writing = wanted
            events = select.EPOLLIN | (select.EPOLLOUT if wanted else 0)
            self.server.poll.modify(self.sock.fileno(), events)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.server.forget(self.sock.fileno())
            self.sock.close()


class Server:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.number = 0
        self.poll = select.epoll()
        self.connections: dict[int, Connection] = {}
        self.files: dict[str, tuple[int, int, str]] = {}
        self.timers: list[tuple[float, int, Connection]] = []
        self.timed = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.poll.register(self.listener.fileno(), select.EPOLLIN)

    def open(self, name: str) -> tuple[int, int, str] | None:
        if name not in self.files:
            try:
                file = os.open(os.path.join(self.folder, os.path.basename(name)), os.O_RDONLY)
            except OSError:
                return None
            about = os.fstat(file)
            self.files[name] = file, about.st_size, f'"{about.st_size}-{about.st_mtime_ns}"'
        return self.files[name]

    def at(self, after_s: float, connection: Connection) -> None:
        self.timed += 1
        heapq.heappush(self.timers, (time.monotonic() + after_s, self.timed, connection))

    def forget(self, fd: int) -> None:
        self.poll.unregister(fd)
        del self.connections[fd]

    def accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self.listener.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections[sock.fileno()] = Connection(self, sock)
                self.poll.register(sock.fileno(), select.EPOLLIN)

    def serve(self) -> None:
        """Until the parent closes our input."""
        self.poll.register(0, select.EPOLLIN | select.EPOLLHUP)
        while True:
            wait_s = max(0.0, self.timers[0][0] - time.monotonic()) if self.timers else None
            for fd, events in self.poll.poll(wait_s):
                if fd == 0:
                    return
                if fd == self.listener.fileno():
                    self.accept()
                    continue
                connection = self.connections.get(fd)
                if connection is None:
                    continue
                if events & ~select.EPOLLOUT:
                    connection.readable()
                if events & select.EPOLLOUT and not connection.closed:
                    connection.writable()
            now_s = time.monotonic()
            while self.timers and self.timers[0][0] <= now_s:
                due: Any = heapq.heappop(self.timers)[2]
                if not due.closed:
                    due.writable()


def main(folder: str) -> None:
    server = Server(folder)
    print(server.port, flush=True)
    server.serve()


if __name__ == "__main__":
    main(sys.argv[1])
