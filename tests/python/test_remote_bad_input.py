"""What servers, buckets and addresses can be wrong with: an error that says what, and soon."""

from __future__ import annotations

import errno
import os

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core
from range_server import SECRET, RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    np.save(folder / "m.npy", np.arange(20_000).reshape(-1, 4))
    (folder / "cut.npy").write_bytes((folder / "m.npy").read_bytes()[:100_000])
    (folder / "empty.bin").write_bytes(b"")
    (folder / "text.npy").write_bytes(b"<html>not an array</html>")
    with RangeServer(folder) as served:
        yield served


@pytest.fixture
def bucket(server, monkeypatch):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url("").rstrip("/"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    return server


REFUSED = [
    ("skew", PermissionError, "the clock of this machine"),
    ("expired", PermissionError, "has expired"),
    ("deny", PermissionError, "403"),
    ("proxy", ConnectionRefusedError, "the proxy"),
]
WRONG = [("whole", OSError, "ignores ranges"), ("lie", OSError, "different range")]


@pytest.mark.parametrize(("fault", "kind", "text"), REFUSED + WRONG)
def test_an_object_that_is_refused_is_an_error_that_says_why(bucket, fault, kind, text):
    shown = bucket.url(f"{fault}/m.npy")
    for path, name in [(f"{shown}?key={SECRET}", shown), (f"s3://{fault}/m.npy",) * 2]:
        with pytest.raises(kind) as caught:
            lt.open(path)
        assert text in str(caught.value) and SECRET not in repr(caught.value)
        assert caught.value.filename == name


@pytest.mark.parametrize(("fault", "kind", "text"), REFUSED)
def test_a_list_that_is_refused_is_an_error_that_says_why(bucket, fault, kind, text):
    with pytest.raises(kind) as caught:
        lt.tokens(f"s3://{fault}/x*.bin")
    assert text in str(caught.value) and caught.value.filename == f"s3://{fault}/x"


def test_objects_that_are_no_data_are_format_errors(bucket):
    for name, text in [("empty.bin", "empty"), ("text.npy", "text.npy"), ("cut.npy", "100000")]:
        for call in (lt.open, lt.tokens):
            if call is lt.tokens and name == "text.npy":
                continue  # any bytes can be tokens
            with pytest.raises(lt.FormatError, match=text):
                call(f"s3://data/{name}")


def test_a_bucket_without_a_region_says_what_to_set(monkeypatch):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for path in ("s3://data/m.npy", "s3://data/*.npy", "s3://data/"):
        with pytest.raises(OSError, match="AWS_REGION") as caught:
            lt.open(path)
        assert caught.value.errno == errno.EINVAL
    monkeypatch.setenv("AWS_REGION", "eu-west-1\r\nX: y")
    with pytest.raises(OSError, match="character"):
        lt.open("s3://data/m.npy")


def test_no_such_host_for_a_list_is_an_error(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://no-such-host.invalid")
    with pytest.raises(OSError, match="no such host"):
        lt.open("s3://data/*.npy")


@pytest.mark.parametrize("address", ["s3://", "s3:///m.npy", "s3://b", "s3://a b/c", "http:///x"])
def test_a_malformed_address_is_a_value_error_that_shows_no_secret(address):
    for call in (lt.open, lt.tokens):
        with pytest.raises(ValueError):
            call(address)
        with pytest.raises(ValueError) as caught:
            call(address.replace("://", f"://u:{SECRET}@"))
        assert SECRET not in str(caught.value)


def test_no_such_key_or_bucket_is_a_missing_file(bucket):
    for path in ("s3://data/none.npy", "s3://data/none.zarr", bucket.url("none.npy")):
        for call in (lt.open, lt.tokens):
            with pytest.raises(FileNotFoundError) as caught:
                call(path)
            assert caught.value.filename == path and "404" in str(caught.value)
    with pytest.raises(FileNotFoundError, match="no object matches"):
        lt.open("s3://data/none-*.npy")


def test_a_proxy_that_wants_a_password_is_an_error_that_says_so(bucket, monkeypatch):
    """The request is sent to the proxy, as its address in the environment asks."""
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://user:{SECRET}@127.0.0.1:{bucket.port}")
    before = len(bucket.requests)
    with pytest.raises(ConnectionRefusedError, match="the proxy") as caught:
        lt.open("http://data.example/proxy/m.npy")
    assert SECRET not in str(caught.value)
    assert bucket.requests[before][0] == "http://data.example/proxy/m.npy"
    a = lt.open("http://data.example/m.npy")  # one that lets it through
    np.testing.assert_array_equal(a[3], [12, 13, 14, 15])


def test_the_name_of_an_object_never_becomes_a_header(bucket):
    """Line ends in a key are encoded in the path, and refused in a URL."""
    for key in ("a\r\nX-Injected: yes.npy", "m.npy HTTP/1.1\r\nX-Injected: yes\r\n\r\n"):
        before = len(bucket.requests)
        with pytest.raises(FileNotFoundError):
            lt.open(f"s3://data/{key}")
        (path, _), *more = bucket.requests[before:]
        assert "%0D%0A" in path and not more
        with pytest.raises(ValueError, match="control character"):
            lt.open(bucket.url(key))
        assert len(bucket.requests) == before + 1
