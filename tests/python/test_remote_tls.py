"""Servers must prove who they are, and a redirect never leads from https to http."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core
from range_server import RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """A server of one array with a certificate of our own, and that certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    np.save(folder / "m.npy", np.arange(1000))
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=lowtide", "-addext", names]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with RangeServer(folder, context) as server:
        yield server, certificate


def test_a_certificate_of_ones_own_is_accepted_when_it_is_named(secure, monkeypatch):
    server, certificate = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    a = lt.open(server.url("m.npy"), memory="64KiB")
    np.testing.assert_array_equal(a[::-3], np.arange(1000)[::-3])


def test_an_unknown_certificate_is_refused(secure, monkeypatch):
    server, _ = secure
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(OSError, match="certificate"):
        lt.open(server.url("m.npy"))


def test_without_a_file_of_authorities_the_error_says_so(secure, monkeypatch, tmp_path):
    server, _ = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(OSError, match=r"CA certificates cannot be read.*set SSL_CERT_FILE"):
        lt.open(server.url("m.npy"))


def test_a_redirect_keeps_to_https(secure, monkeypatch):
    server, certificate = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    np.testing.assert_array_equal(lt.open(server.url("moved/m.npy"))[:5], np.arange(5))
    with pytest.raises(OSError, match="redirects"):
        lt.open(server.url("moved/plain/m.npy"))


NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log stderr;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate}; ssl_certificate_key {key};
    root {root};
    location /plain/ {{ return 302 http://127.0.0.1:9/m.npy; }}
  }}
}}
"""


@pytest.fixture
def nginx(secure, tmp_path, monkeypatch):
    """The address of an nginx with the same certificate and files."""
    _, certificate = secure
    places = os.pathsep.join([os.environ.get("LOWTIDE_SERVERS", ""), os.environ["PATH"]])
    program = shutil.which("nginx", path=places + os.pathsep + "/usr/sbin")
    if program is None:
        pytest.skip("no server nginx: install it and name its folder in LOWTIDE_SERVERS")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    root = certificate.parent
    (tmp_path / "nginx.conf").write_text(
        NGINX.format(
            folder=tmp_path, port=port, certificate=certificate, key=root / "key.pem", root=root
        )
    )
    process = subprocess.Popen(
        [program, "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", "stderr"],
        stderr=subprocess.PIPE,
    )
    try:
        for _ in range(200):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        yield f"https://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.communicate()


def test_nginx_gives_the_same_rows_by_https(nginx, secure, monkeypatch):
    """A server that others run: ranges, versions, lists that it does not have, its redirects."""
    a = lt.open(f"{nginx}m.npy", memory="64KiB")
    np.testing.assert_array_equal(a[::-3], np.arange(1000)[::-3])
    for index, rows in a.batches(64, seed=1):
        np.testing.assert_array_equal(rows, index)
    with pytest.raises(FileNotFoundError, match="404"):
        lt.open(f"{nginx}none.npy")
    with pytest.raises(OSError, match="redirects"):
        lt.open(f"{nginx}plain/m.npy")
    file = secure[1].parent / "m.npy"
    before, other = file.read_bytes(), lt.open(f"{nginx}m.npy")
    try:
        np.save(file, np.arange(1000) + 1)
        os.utime(file, (1e9, 1e9))
        with pytest.raises(OSError, match="replaced or rewritten"):
            other[500:]
    finally:
        file.write_bytes(before)
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(OSError, match="certificate"):
        lt.open(f"{nginx}m.npy")
