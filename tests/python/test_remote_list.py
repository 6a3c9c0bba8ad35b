"""Patterns and folders of buckets: the objects that paths of the same form would name."""

from __future__ import annotations

import pickle

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core
from range_server import SECRET, RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)

NAMES = ["b-2.npy", "b-10.npy", "a & <b>.npy", "b-é.npy", ".hidden.npy"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bucket")
    for number, name in enumerate(NAMES):
        np.save(folder / name, np.full((3, 2), number))
    np.save(folder / "b-[x]*.npy", np.full((1, 2), 99))
    with RangeServer(folder) as server:
        yield folder, server


@pytest.fixture
def bucket(served, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", served[1].url("").rstrip("/"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    return served


def names_of(a):
    return [path.removeprefix("s3://bucket/") for path in a.paths]


@pytest.mark.parametrize("pattern", ["*.npy", "b-*.npy", "b-?.npy", "b-[0-9]*.npy", "*<b>*", ".h*"])
def test_a_pattern_names_what_it_names_in_a_folder(bucket, pattern):
    folder, _ = bucket
    local = lt.open(folder / pattern)
    remote = lt.open(f"s3://bucket/{pattern}")
    assert [f"{folder}/{name}" for name in names_of(remote)] == local.paths
    np.testing.assert_array_equal(remote[:], local[:])


def test_a_folder_stands_for_its_arrays(bucket):
    folder, _ = bucket
    remote = lt.open("s3://bucket/")
    assert [f"{folder}/{name}" for name in names_of(remote)] == lt.open(folder).paths
    assert pickle.loads(pickle.dumps(remote)).paths == remote.paths


def test_an_object_whose_name_looks_like_a_pattern_is_meant_itself(bucket):
    assert names_of(lt.open("s3://bucket/b-[x]*.npy")) == ["b-[x]*.npy"]
    assert names_of(lt.open(["s3://bucket/b-[x]*.npy"])) == ["b-[x]*.npy"]


def test_nothing_that_matches_is_an_error(bucket):
    for pattern in ["c*.npy", "none/*", "none/"]:
        with pytest.raises(FileNotFoundError, match="no object") as caught:
            lt.open(f"s3://bucket/{pattern}")
        assert f"s3://bucket/{pattern}" in str(caught.value)
    with pytest.raises(lt.FormatError):
        lt.tokens("s3://bucket/")  # arrays, not tokens


def test_a_server_without_lists_is_refused_at_once(bucket):
    _, server = bucket
    before = len(server.requests)
    for call, path in [(lt.open, "*.npy"), (lt.tokens, "*.npy"), (lt.tokens, "folder/")]:
        with pytest.raises(ValueError, match="does not list its objects") as caught:
            call(server.url(f"{path}?key={SECRET}"))
        assert SECRET not in str(caught.value)
    assert len(server.requests) == before
    with pytest.raises(ValueError, match="does not list its objects") as caught:
        lt.open(server.url(f"folder/?key={SECRET}"))  # what could be in it is asked for by name
    assert SECRET not in str(caught.value)
    assert all("folder/" in path for path, _ in server.requests[before:])


class Store:
    """Signs and lists as a tool of a cloud would."""

    def __init__(self, server, names):
        self.server, self.names, self.asked = server, names, []

    def __call__(self, address):
        return self.server.url(address.rpartition("/")[2]), None, None

    def list(self, beginning):
        self.asked.append(beginning)
        return (f"s3://any/{name}" for name in self.names)


def test_a_store_lists(bucket):
    _, server = bucket
    store = Store(server, [*reversed(NAMES), "deep/b-1.npy", "b-/"])
    a = lt.open("s3://any/b-*.npy", store=store)
    assert [path.removeprefix("s3://any/") for path in a.paths] == [
        "b-10.npy",
        "b-2.npy",
        "b-é.npy",
    ]
    assert store.asked == ["s3://any/b-"]
    with pytest.raises(ValueError, match="store cannot list objects"):
        lt.open("s3://any/*.npy", store=lambda address: store(address))
    store.list = lambda beginning: [5]
    with pytest.raises(TypeError, match="every address that list returns must be a str, not int"):
        lt.open("s3://any/*.npy", store=store)

    def fails(beginning):
        raise LookupError(beginning)

    store.list = fails
    with pytest.raises(LookupError, match="s3://any/"):
        lt.open("s3://any/*.npy", store=store)


@pytest.mark.slow
def test_ten_thousand_objects_are_one_stream(tmp_path, monkeypatch):
    count = 10_000
    for number in range(count):
        np.array([number, 1], "<u2").tofile(tmp_path / f"shard-{number:05}.bin")
    with RangeServer(tmp_path) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url("").rstrip("/"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
        t = lt.tokens("s3://bucket/shard-*.bin", dtype="u2", format="nanogpt", memory="16MiB")
        assert len(t) == 2 * count and len(t.paths) == count
        pages = {path for path, _ in server.requests if "list-type=2" in path}
        assert len(pages) == 10  # of a thousand each; a slow server is asked for one of them twice
        np.testing.assert_array_equal(t[::2][-5:], np.arange(count - 5, count))
