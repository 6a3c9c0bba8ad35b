"""Servers must prove who they are, and a redirect never leads from https to http."""

from __future__ import annotations

import shutil
import ssl
import subprocess

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
    with pytest.raises(
        OSError, match=r"authorities cannot be read.*SSL_CERT_FILE names their file"
    ):
        lt.open(server.url("m.npy"))


def test_a_redirect_keeps_to_https(secure, monkeypatch):
    server, certificate = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    np.testing.assert_array_equal(lt.open(server.url("moved/m.npy"))[:5], np.arange(5))
    with pytest.raises(OSError, match="redirects"):
        lt.open(server.url("moved/plain/m.npy"))
