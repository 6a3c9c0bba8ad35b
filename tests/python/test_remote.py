"""Objects on servers are read like files: the same rows, orders, states and errors."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import signal
import time

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core
from range_server import SECRET, RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)

ROWS, WIDTH = 5000, 37


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder with an array, its labels and tokens, and a server of it."""
    folder = tmp_path_factory.mktemp("served")
    data = np.random.default_rng(0).integers(0, 1 << 30, (ROWS, WIDTH)).astype("<i4")
    np.save(folder / "m.npy", data)
    np.save(folder / "a b+c%41é.npy", data[:10])
    np.save(folder / "labels.npy", np.arange(ROWS))
    np.random.default_rng(1).integers(0, 50257, 300_000).astype("uint16").tofile(folder / "t.bin")
    (folder / "empty.npy").write_bytes(b"")
    with RangeServer(folder) as server:
        yield folder, server, data


def test_an_array_has_the_same_rows_by_any_index(served):
    _, server, data = served
    with lt.open(server.url("m.npy"), memory="300KiB") as a:
        assert a.shape == data.shape and a.dtype == data.dtype
        assert a.paths == [server.url("m.npy")]
        for index in [0, -1, slice(10, 20), slice(None, None, -7), [3, 3, 4999], data[:, 0] > 1e9]:
            np.testing.assert_array_equal(a[index], data[index])
        np.testing.assert_array_equal(a[5:900, 3], data[5:900, 3])
        np.testing.assert_array_equal(a.sum(axis=0), data.sum(axis=0))
        assert a.stats()["engine"] == "http"


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
@pytest.mark.parametrize("memory", ["256KiB", "16MiB"])
def test_batches_come_in_the_order_of_the_local_file(served, order, memory):
    folder, server, data = served
    local = lt.open(folder / "m.npy", memory=memory)
    remote = lt.open(server.url("m.npy"), memory=memory)
    options = {"order": order, "seed": 5, "epoch": 2}
    seen = 0
    for (i, rows), (j, same) in zip(
        local.batches(64, **options), remote.batches(64, **options), strict=True
    ):
        np.testing.assert_array_equal(i, j)
        np.testing.assert_array_equal(rows, same)
        np.testing.assert_array_equal(rows, data[i])
        seen += len(i)
    assert seen == ROWS


def test_a_shuffled_epoch_takes_far_fewer_requests_than_rows(served):
    _, server, data = served
    with lt.open(server.url("m.npy"), memory="512KiB") as a:
        before = len(server.requests)
        for idx, rows in a.batches(64, seed=1):
            np.testing.assert_array_equal(rows, data[idx])
        assert len(server.requests) - before < ROWS / 20


def test_tokens_have_the_same_windows_and_resume_on_either_copy(served):
    folder, server, _ = served
    local = lt.tokens(folder / "t.bin", memory="1MiB")
    remote = lt.tokens(server.url("t.bin"), memory="1MiB")
    assert len(local) == len(remote) == 300_000
    starts = np.random.default_rng(2).integers(0, 300_000 - 65, 50)
    for ours, theirs in zip(local.windows(starts, 64), remote.windows(starts, 64), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    here = lt.Loader(local, 8, 64, seed=3)
    there = lt.Loader(remote, 8, 64, seed=3)
    for _ in range(20):
        for ours, theirs in zip(here.next(), there.next(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    state = here.state_dict()
    assert state == there.state_dict(), "the fingerprint is of the data, not of its place"
    again = lt.Loader(remote, 8, 64, seed=3)
    again.load_state_dict(state)
    np.testing.assert_array_equal(again.next()[0], here.next()[0])


def test_columns_may_be_remote_and_local(served):
    folder, server, data = served
    x = lt.open(server.url("m.npy"), memory="4MiB")
    y = lt.open(folder / "labels.npy")
    seen = []
    for xb, yb in lt.Loader((x, y), 100, seed=0, epochs=1):
        np.testing.assert_array_equal(xb, data[yb])
        seen.extend(yb.tolist())
    assert sorted(seen) == list(range(ROWS))


def test_several_objects_are_joined(served):
    folder, server, data = served
    with lt.open([server.url("m.npy"), str(folder / "m.npy"), server.url("empty.npy")]) as a:
        assert a.shape == (2 * ROWS, WIDTH)
        np.testing.assert_array_equal(a[ROWS - 2 : ROWS + 2], np.vstack([data[-2:], data[:2]]))


def test_names_with_any_character_are_found(served):
    _, server, data = served
    for name in ["a b+c%41é.npy", "a%20b%2Bc%2541%C3%A9.npy"]:
        quoted = name if "%20" in name else name.replace("%", "%25")
        np.testing.assert_array_equal(lt.open(server.url(quoted))[:], data[:10])


@pytest.mark.parametrize(
    ("path", "kind", "text"),
    [
        ("none.npy", FileNotFoundError, "404"),
        ("deny/m.npy", PermissionError, "403"),
        ("signed/m.npy?key=WRONG-SECRET", PermissionError, "403"),
        ("whole/m.npy", OSError, "ignores ranges"),
        ("lie/m.npy", OSError, "different range"),
        ("empty.npy", lt.FormatError, "empty"),
    ],
)
def test_what_a_server_refuses_is_an_error_that_says_so(served, path, kind, text):
    _, server, _ = served
    with pytest.raises(kind) as caught:
        lt.open(server.url(path))
    assert text in str(caught.value)
    assert "WRONG-SECRET" not in repr(caught.value)
    assert path.partition("?")[0] in str(caught.value)


def test_no_such_host_or_server_is_an_error_soon():
    for address in ["http://no-such-host.invalid/x.npy", "http://127.0.0.1:9/x.npy"]:
        with pytest.raises(OSError) as caught:
            lt.open(address)
        assert address in str(caught.value)


@pytest.mark.parametrize("address", ["http://", "http://h:x/a", "s3://b", "http://a b/c"])
def test_a_malformed_address_is_a_value_error(address):
    with pytest.raises(ValueError):
        lt.open(address)


def test_an_object_that_changes_is_an_error_and_never_other_bytes(served):
    _, server, data = served
    a = lt.open(server.url("m.npy"), memory="300KiB")
    np.testing.assert_array_equal(a[:5], data[:5])
    server.versions["m.npy"] = 1
    try:
        with pytest.raises(OSError, match="replaced or rewritten"):
            a[100:200]
        with pytest.raises(OSError, match="replaced or rewritten"):
            for _ in a.batches(64):
                pass
    finally:
        server.versions.clear()


@pytest.mark.slow
def test_an_epoch_over_a_bad_line_is_complete_and_exact(served):
    _, server, data = served
    with lt.open(server.url("fail=0.05/cut=0.05/m.npy"), memory="300KiB", gap=0) as a:
        seen = []
        for idx, rows in a.batches(50, seed=4):
            np.testing.assert_array_equal(rows, data[idx])
            seen.extend(idx.tolist())
    assert sorted(seen) == list(range(ROWS))


def test_requests_bounds_what_is_in_flight(served):
    _, server, data = served
    server.most = 0
    with lt.open(server.url("late=5/m.npy"), memory="300KiB", gap=0, requests=2) as a:
        np.testing.assert_array_equal(a.take(np.arange(0, 4000, 50)), data[0:4000:50])
    assert server.most <= 2 + 2, "and a hedge for one in twenty"
    for wrong in [0, -1, 5000]:
        with pytest.raises(ValueError, match="requests"):
            lt.open(server.url("m.npy"), requests=wrong)


def test_no_secret_is_ever_shown(served):
    _, server, data = served
    for address in [server.url(f"signed/m.npy?key={SECRET}"),
                    server.url("basic/m.npy", user=f"user:{SECRET}@")]:  # fmt: skip
        a = lt.open(address, memory="300KiB")
        np.testing.assert_array_equal(a[:3], data[:3])
        np.testing.assert_array_equal(a.reopen()[:3], data[:3])
        loader = lt.Loader(a, 16, seed=0)
        next(iter(loader))
        t = lt.tokens(address.replace("m.npy", "t.bin"))
        shown = [repr(a), str(a.paths), str(a.stats()), repr(loader), str(loader.state_dict()),
                 repr(t), str(t.paths), str(t.stats())]  # fmt: skip
        for one in (a, t, loader):
            with pytest.raises(TypeError) as caught:
                pickle.dumps(one)
            shown.append(str(caught.value))
        a.close()
        with pytest.raises(ValueError, match="closed") as closed:
            a[0]
        with pytest.raises(FileNotFoundError) as missing:
            lt.open(address.replace(".npy", ".no"))
        shown += [str(closed.value), str(missing.value), repr(missing.value)]
        assert not [text for text in shown if SECRET in text]


def test_a_pickle_opens_the_object_again(served):
    _, server, data = served
    a = pickle.loads(pickle.dumps(lt.open(server.url("m.npy"), memory="300KiB")))
    np.testing.assert_array_equal(a[7], data[7])
    t = pickle.loads(pickle.dumps(lt.tokens(server.url("t.bin"))))
    assert len(t) == 300_000


def test_a_forked_child_reads_with_connections_of_its_own(served):
    _, server, data = served
    a = lt.open(server.url("m.npy"), memory="300KiB")
    np.testing.assert_array_equal(a[:5], data[:5])
    child = os.fork()
    if child == 0:
        try:
            same = (a[100:110] == data[100:110]).all()
            os._exit(0 if same and sum(len(i) for i, _ in a.batches(500)) == ROWS else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, 9)
    assert ended == (child, 0)
    np.testing.assert_array_equal(a[5:9], data[5:9])


def test_a_redirect_is_followed_and_the_password_stays_behind(served):
    _, server, data = served
    a = lt.open(server.url("moved/m.npy"), memory="300KiB")
    np.testing.assert_array_equal(a[:5], data[:5])
    assert a.paths == [server.url("moved/m.npy")]
    with pytest.raises(PermissionError):
        lt.open(server.url("moved/basic/m.npy", user=f"user:{SECRET}@"))


@contextlib.contextmanager
def interrupted():
    """Presses Ctrl-C after a tenth of a second, and again until somebody hears it."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.1, 5)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_ends_every_wait_for_a_silent_server(served):
    _, server, data = served
    a = lt.open(server.url("m.npy"), memory="300KiB")
    t = lt.tokens(server.url("t.bin"), memory="300KiB")
    loader = lt.Loader(t, 8, 64, seed=0)
    server.open_gate.clear()
    try:
        calls = [
            lambda: lt.open(server.url("labels.npy")),
            lambda: a[1000:1010],
            lambda: a.take([1, 2, 4000]),
            lambda: next(a.batches(16)),
            lambda: t[5:100],
            lambda: t.windows([5, 7], 64),
            loader.next,
        ]
        for call in calls:
            began = len(server.requests)
            with interrupted():
                call()
            assert len(server.requests) > began, "it did wait for the server"
    finally:
        server.open_gate.set()
    np.testing.assert_array_equal(a[1000:1010], data[1000:1010])
    assert loader.next()[0].shape == (8, 64)


class Store:
    """Signs as a tool of a cloud would, and counts."""

    def __init__(self, server, valid=3600.0):
        self.server, self.valid, self.asked = server, valid, []

    def __call__(self, address):
        self.asked.append(address)
        name = address.rpartition("/")[2]
        url = self.server.url(f"signed/{name}?key={self.server.key}")
        return url, {"X-Test": "yes"}, time.time() + self.valid if self.valid else None


def test_a_store_signs_and_is_asked_once_while_its_answer_is_valid(served):
    _, server, data = served
    store = Store(server)
    with lt.open("s3://bucket/m.npy", memory="300KiB", store=store) as a:
        for idx, rows in a.batches(64, seed=2):
            np.testing.assert_array_equal(rows, data[idx])
        assert a.paths == ["s3://bucket/m.npy"]
        shown = [repr(a), str(a.stats())]
    assert store.asked == ["s3://bucket/m.npy"]
    assert not [text for text in shown if SECRET in text]


def test_a_store_is_asked_again_before_its_answer_expires_and_when_refused(served):
    _, server, data = served
    for valid in (3600.0, 30.0):  # renewed a minute before: at once
        store = Store(server, valid)
        a = lt.open("s3://bucket/m.npy", memory="300KiB", store=store, gap=0)
        seen = []
        try:
            for idx, rows in a.batches(50, seed=1):
                np.testing.assert_array_equal(rows, data[idx])
                seen.extend(idx.tolist())
                if len(seen) == 1000:
                    server.key = "ANOTHER-KEY"
        finally:
            server.key = SECRET
        assert sorted(seen) == list(range(ROWS))
        assert len(store.asked) > 1


def test_what_a_store_does_wrong_is_an_error_when_it_is_opened(served):
    _, server, _ = served

    def fails(address):
        raise LookupError(f"no key for {address}")

    with pytest.raises(LookupError, match=r"no key for s3://bucket/m\.npy"):
        lt.open("s3://bucket/m.npy", store=fails)
    url = server.url("m.npy")
    for answer, kind, text in [
        (url, TypeError, "must return a tuple of url, headers and expires, not str"),
        ((url, {}), TypeError, "a tuple of url, headers and expires, not of 2 items"),
        ((5, {}, None), TypeError, "the url must be a str, not int"),
        ((url, [], None), TypeError, "headers must be a dict or None, not list"),
        ((url, {3: "a"}, None), TypeError, "the name of a header must be a str, not int"),
        ((url, {"X": b"a"}, None), TypeError, "the header X must be a str, not bytes"),
        ((url, {}, "soon"), TypeError, "must be seconds since 1970 or None, not str"),
        ((url, {"X": "a\r\nY: b"}, None), ValueError, "a header is empty or contains a line"),
        (("file:///etc/passwd", {}, None), ValueError, "must begin with http"),
        ((url, {}, 1.0), OSError, "has already expired"),
    ]:
        with pytest.raises(kind, match=text):
            lt.open("s3://bucket/m.npy", store=lambda _, answer=answer: answer)
    with pytest.raises(
        TypeError, match=r"store must be a store of obstore or a callable .* not int"
    ):
        lt.open("s3://bucket/m.npy", store=7)


def sign_plainly(address):
    return os.environ["LOWTIDE_TEST_SERVER"] + address.rpartition("/")[2], None, None


def test_an_array_with_a_store_pickles_without_what_it_signed(served, monkeypatch):
    _, server, data = served
    monkeypatch.setenv("LOWTIDE_TEST_SERVER", server.url("late=0/"))
    pickled = pickle.dumps(lt.open("s3://bucket/m.npy", memory="300KiB", store=sign_plainly))
    assert b"127.0.0.1" not in pickled
    np.testing.assert_array_equal(pickle.loads(pickled)[3], data[3])


def test_what_examines_local_files_refuses_an_address_without_showing_its_secret():
    address = f"http://user:{SECRET}@127.0.0.1:9/m.npy?key={SECRET}"
    for call in (lt.info, lt.check, lt.doctor):
        with pytest.raises(OSError, match="only local files") as caught:
            call(address)
        assert SECRET not in str(caught.value) and SECRET not in repr(caught.value)


def test_what_maps_writes_or_rewrites_files_refuses_an_address(served, tmp_path, monkeypatch):
    _, server, _ = served
    monkeypatch.chdir(tmp_path)
    address = f"http://user:{SECRET}@127.0.0.1:9/m.npy?key={SECRET}"
    remote = lt.open(server.url(f"signed/m.npy?key={SECRET}"))
    calls = [
        lambda: lt.memmap(address),
        lambda: lt.create(address, dtype="f4"),
        lambda: lt.TokenWriter(address.replace(".npy", ".bin"), "nanogpt", "u2"),
        lambda: np.save(address, remote),
        lambda: remote.map(lambda rows: rows, address),
        lambda: lt.jobs.shuffle(address, "out.npy"),
        lambda: lt.jobs.shuffle(remote, "out.npy"),
        lambda: lt.jobs.convert(lt.tokens(server.url("t.bin")), "out.bin", "nanogpt"),
        lambda: lt.jobs.merge([remote, remote], "out.npy"),
        lambda: lt.jobs.check(remote),
        lambda: lt.jobs.shuffle(local(tmp_path), address),
        lambda: lt.shuffle(local(tmp_path), address),
        lambda: lt.convert(local(tmp_path), address, "raw"),
        lambda: lt.merge([local(tmp_path)], address),
    ]
    for call in calls:
        with pytest.raises(OSError, match="local file") as caught:
            call()
        assert caught.value.errno == errno.ENOTSUP
        assert SECRET not in str(caught.value) and SECRET not in repr(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["local.npy"]


def local(folder):
    np.save(folder / "local.npy", np.arange(100))
    return folder / "local.npy"
