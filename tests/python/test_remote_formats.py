"""Every format, order and kind of data gives from a server what it gives from the local files."""

from __future__ import annotations

import shutil
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from lowtide import _core
from range_server import RangeServer

if _core.why_no_http():
    pytest.skip(f"no http: {_core.why_no_http()}", allow_module_level=True)

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
GOLDEN_ARRAYS = sorted(path.name for path in (GOLDEN / "npy").glob("*.npy"))
GOLDEN_TOKENS = sorted(
    path.name for path in (GOLDEN / "tokens").iterdir() if path.suffix in (".bin", ".npy")
)
GOLDEN_FOLDERS = sorted(path.parent.name for path in GOLDEN.glob("tokens/folders/*/index.json"))
NAMES = {
    "nanogpt": "nanogpt.bin",
    "llmc": "llmc.bin",
    "megatron": "megatron.bin",
    "olmo": "olmo.npy",
    "datatrove": "datatrove.ds",
}
ARRAYS = ["c.npy", "f.npy", "raw.dat", "part-*.npy", "fields.npy"]
RAW = {"dtype": "<i4", "shape": (1500, 9)}
ROWS = 1500


def write_arrays(folder):
    data = np.random.default_rng(0).integers(0, 1 << 30, (ROWS, 9)).astype("<i4")
    np.save(folder / "c.npy", data)
    np.save(folder / "f.npy", np.asfortranarray(data))
    data.tofile(folder / "raw.dat")
    for number, part in enumerate(np.split(data, [10, 700])):
        np.save(folder / f"part-{number}.npy", part)
    fields = np.zeros(ROWS, [("a", "<f8"), ("b", "S3", (2,))])
    fields["a"] = data[:, 0]
    np.save(folder / "fields.npy", fields)
    np.save(folder / "offsets.npy", np.linspace(0, ROWS, 201).astype(np.int64))


def write_tokens(folder):
    chance = np.random.default_rng(1)
    for form, name in NAMES.items():
        with lt.TokenWriter(folder / name, form, "u2") as w:
            for length in chance.integers(1, 300, 200):
                w.append(chance.integers(0, 50257, length).astype("u2"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("formats")
    write_arrays(made)
    write_tokens(made)
    for path in [*(GOLDEN / "npy").iterdir(), *(GOLDEN / "tokens").iterdir()]:
        if path.is_file():
            (made / f"golden-{path.name}").write_bytes(path.read_bytes())
    shutil.copytree(GOLDEN / "tokens" / "folders", made / "folders")
    return made


@pytest.fixture
def places(folder, monkeypatch):
    """Where the same files are: in a folder, and in a bucket."""
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with RangeServer(folder) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url("").rstrip("/"))
        yield f"{folder}/", "s3://bucket/"


def both(places, opens, name, **options):
    return tuple(opens(place + name, **options) for place in places)


def array(places, name, **options):
    given = RAW if name == "raw.dat" else {}
    return both(places, lt.open, name, memory="256KiB", **given, **options)


def expect_same(ours, theirs):
    """Equal to the bit, with everything inside."""
    if isinstance(ours, (tuple, list)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            expect_same(one, other)
        return
    one, other = np.asarray(ours), np.asarray(theirs)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()


def outcome(call):
    try:
        return call()
    except (ValueError, TypeError) as error:  # FormatError is a ValueError
        return type(error)


@pytest.mark.parametrize("name", GOLDEN_ARRAYS)
def test_golden_arrays_are_read_or_refused_alike(places, name):
    local, remote = (
        outcome(lambda place=place: lt.open(f"{place}golden-{name}")) for place in places
    )
    if isinstance(local, type):
        assert remote is local
        return
    assert (remote.shape, remote.dtype, remote.order) == (local.shape, local.dtype, local.order)
    expect_same(local[...], remote[...])


@pytest.mark.parametrize("name", GOLDEN_TOKENS)
def test_golden_tokens_are_read_or_refused_alike(places, name):
    local, remote = (
        outcome(lambda place=place: lt.tokens(f"{place}golden-{name}")) for place in places
    )
    if isinstance(local, type):
        assert remote is local
        return
    assert (len(remote), remote.dtype, remote.format) == (len(local), local.dtype, local.format)
    expect_same(local[:], remote[:])
    if local.documents is not None:
        expect_same(list(local.documents), list(remote.documents))


@pytest.mark.parametrize("ending", ["/", "/index.json"])
@pytest.mark.parametrize("name", GOLDEN_FOLDERS)
def test_golden_folders_are_read_or_refused_alike(places, name, ending):
    dtype = "int64" if name == "mds_bytes" else None
    local, remote = (
        outcome(lambda place=place: lt.tokens(f"{place}folders/{name}{ending}", dtype=dtype))
        for place in places
    )
    if isinstance(local, type):
        assert remote is local
        assert name.startswith("refused_")
        return
    assert (len(remote), remote.dtype, remote.format) == (len(local), local.dtype, local.format)
    expect_same(local[:], remote[:])
    expect_same(list(local.documents), list(remote.documents))


def test_a_listed_name_does_not_become_a_query(folder, tmp_path):
    source = folder / "folders" / "mds_equal"
    shutil.copytree(source, tmp_path / "d")
    index = (source / "index.json").read_text()
    (tmp_path / "d" / "index.json").write_text(index.replace("shard.00000", "a?b#%41"))
    (tmp_path / "d" / "shard.00000.mds").rename(tmp_path / "d" / "a?b#%41.mds")
    with RangeServer(tmp_path) as server:
        found = lt.tokens(server.url("d/index.json"))
        expect_same(found[:], lt.tokens(source)[:])


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "options",
    [
        {"order": "shuffle", "seed": 3, "epoch": 1},
        {"order": "sequential"},
        {"order": np.arange(ROWS)[::-3]},
    ],
    ids=["shuffle", "sequential", "explicit"],
)
def test_batches_of_every_order_are_the_same(places, name, options):
    local, remote = array(places, name)
    for ours, theirs in zip(
        local.batches(64, **options), remote.batches(64, **options), strict=True
    ):
        expect_same(tuple(ours), tuple(theirs))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "options",
    [{"seed": 4}, {"rows": np.arange(0, ROWS, 4)}, {"weights": np.arange(ROWS) % 7}],
    ids=["all", "rows", "weights"],
)
def test_a_loader_of_arrays_resumes_on_the_other_copy_and_back(places, name, options):
    local, remote = array(places, name)
    whole = lt.Loader(local, 50, **options)
    state = None
    for turn in range(4):  # a few steps here, a few there, into the next epoch
        loader = lt.Loader((remote, local)[turn % 2], 50, **options)
        if state is not None:
            loader.load_state_dict(state)
        for _ in range(9):
            ours, theirs = whole.next(), loader.next()
            expect_same(ours.index, theirs.index)
            expect_same(tuple(ours), tuple(theirs))
        state = loader.state_dict()
    assert state == whole.state_dict()


@pytest.mark.parametrize("form", NAMES)
def test_a_loader_of_tokens_resumes_on_the_other_copy_and_back(places, form):
    local, remote = both(places, lt.tokens, NAMES[form], memory="512KiB")
    assert local.format == remote.format and len(local) == len(remote)
    expect_same(local[:], remote[:])
    options = {"batch_size": 8, "block_size": 32, "seed": 9}
    whole = lt.Loader(local, **options)
    state = None
    for turn in range(6):
        loader = lt.Loader((remote, local)[turn % 2], **options)
        if state is not None:
            loader.load_state_dict(state)
        for _ in range(9):
            expect_same(tuple(whole.next()), tuple(loader.next()))
        state = loader.state_dict()
    assert state == whole.state_dict()


@pytest.mark.parametrize("form", ["megatron", "datatrove"])
def test_documents_are_the_same(places, form):
    local, remote = both(places, lt.tokens, NAMES[form], memory="512KiB")
    expect_same(list(local.documents), list(remote.documents))
    options = {"batch_size": 16, "seed": 1, "epochs": 1}
    for ours, theirs in zip(
        lt.Loader(local.documents, **options), lt.Loader(remote.documents, **options), strict=True
    ):
        expect_same(tuple(ours), tuple(theirs))


def test_the_prefix_of_a_pair_names_it(places):
    local, remote = both(places, lt.tokens, "megatron")
    assert remote.paths == ["s3://bucket/megatron.bin"]
    expect_same(local[:], remote[:])
    with pytest.raises(FileNotFoundError, match="404"):
        lt.tokens("s3://bucket/no-such-prefix")


def test_columns_ragged_samples_and_mixtures_are_the_same(places):
    def loaders(place):
        x, fields = lt.open(place + "c.npy", memory="1MiB"), lt.open(place + "fields.npy")
        offsets = lt.open(place + "offsets.npy")
        samples = lt.ragged(lt.open(place + "c.npy", memory="1MiB"), offsets)
        t = [lt.tokens(place + NAMES[form]) for form in ("nanogpt", "llmc")]
        yield lt.Loader((x, fields), 40, seed=1, epochs=1)
        yield lt.Loader({"x": x, "f": fields}, 40, order="sequential", epochs=1)
        yield lt.Loader(samples, 16, seed=1, epochs=1)
        yield lt.Loader([(t[0], 0.7), (t[1], 0.3)], 8, 32, seed=2, epochs=1)

    for ours, theirs in zip(loaders(places[0]), loaders(places[1]), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            expect_same(_parts(one), _parts(other))


def _parts(batch):
    found = list(batch.values()) if hasattr(batch, "values") and callable(batch.values) else batch
    return [np.asarray(batch.index) if hasattr(batch, "index") else [], *found]
