"""lt.profile: what it records, reports and writes."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import lowtide as lt
import numpy as np
import pytest

MIB = 1 << 20
KINDS = {
    "flat",
    "heap-leak",
    "mapped-files",
    "page-cache",
    "page-tables",
    "shared-twice",
    "too-short",
}


def read_until(p: lt.Profile, more: int = 3) -> None:
    """Waits for `more` further readings, or for a minute."""
    wanted, end = p.readings + more, time.monotonic() + 60
    while p.readings < wanted:
        assert time.monotonic() < end, "no readings came"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def seen() -> lt.Profile:
    with lt.profile(interval=0.01) as p:
        read_until(p)
        # Not by malloc, which may have as much that other tests left behind.
        held = mmap.mmap(-1, 64 * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        held.write(b"1" * len(held))
        p.mark("held")
        read_until(p)
        held.close()
    return p


LEAKING_WORKER = """
import os, time
import lowtide as lt, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

kept = []

class Items(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        time.sleep(0.015)
        leaks = get_worker_info().id == 1
        if leaks:
            kept.append(torch.ones(64 << 10))  # 256 KiB
        return os.getpid() if leaks else 0

with lt.profile(interval=0.02) as p:
    pid = max(int(batch.max()) for batch in DataLoader(Items(), batch_size=4, num_workers=2))
    time.sleep(0.3)  # the workers have ended
print(pid, p.verdict.kind, p.growth["anon"] > 0, p.verdict, sep="\\n")
"""


def test_a_data_loader_worker_that_leaks_is_named_though_it_ends_before_its_parent() -> None:
    pytest.importorskip("torch")
    run = subprocess.run(
        [sys.executable, "-c", LEAKING_WORKER], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    pid, kind, grew, headline = run.stdout.splitlines()
    assert kind == "heap-leak", run.stdout
    assert f"(pid {pid}) grows by" in headline
    assert grew == "True"


def test_peak_shows_what_was_allocated(seen: lt.Profile) -> None:
    peak, columns = seen.peak, json.loads(seen.json())["readings"]
    anon = [value for value in columns["anon"] if value is not None]
    assert peak["anon"] is not None and peak["anon"] >= anon[0] + 60 * MIB
    assert peak["anon"] == max(anon)
    assert peak["rss"] is not None and peak["rss"] >= peak["anon"]


def test_verdict_is_words_and_numbers(seen: lt.Profile) -> None:
    verdict = seen.verdict
    assert verdict.kind in KINDS
    assert str(verdict) == verdict.headline and verdict.headline
    assert isinstance(verdict.evidence, tuple)


def test_mapped_pages_are_told_apart_from_the_heap(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    np.ones(64 * MIB, np.uint8).tofile(path)
    with lt.profile(interval=0.01) as p:
        read_until(p)
        mapped = np.memmap(path, np.uint8, "r")
        assert mapped.sum() == 64 * MIB
        read_until(p)
    first = json.loads(p.json())["readings"]
    assert p.peak["file"] is not None and p.peak["file"] >= first["file"][0] + 60 * MIB
    assert p.growth["file"] is not None


def test_writes_every_suffix(seen: lt.Profile, tmp_path: Path) -> None:
    for suffix in ("html", "svg", "json", "dat", "trace"):
        seen.save(tmp_path / f"m.{suffix}")
    assert "<html" in (tmp_path / "m.html").read_text()
    assert ElementTree.parse(tmp_path / "m.svg").getroot().tag.endswith("svg")
    told = json.loads((tmp_path / "m.json").read_text())
    assert {key: told["peak"][key] for key in ("rss", "anon")} == {
        key: seen.peak[key] for key in ("rss", "anon")
    }
    for name in ("m.trace", "m.json"):
        again = lt.Profile.load(tmp_path / name)
        assert again.peak == seen.peak and again.verdict == seen.verdict
        assert again.at_start == seen.at_start and again.at_end == seen.at_end
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"m.{suffix}" for suffix in ("dat", "html", "json", "svg", "trace")
    ], "and nothing else"


def test_mprof_reads_the_dat(seen: lt.Profile, tmp_path: Path) -> None:
    mprof = pytest.importorskip("mprof")
    seen.save(tmp_path / "m.dat")
    read = mprof.read_mprofile_file(str(tmp_path / "m.dat"))
    total = dict(zip(read["timestamp"], read["mem_usage"]))
    for child in read["children"].values():  # another test may have left one that still ends
        for memory, at in child:
            total[at] += memory
    rss = seen.peak["rss"]
    assert rss is not None
    assert max(total.values()) == pytest.approx(rss / MIB, abs=0.01)


def test_plot_gives_and_writes_the_picture(seen: lt.Profile, tmp_path: Path) -> None:
    assert seen.plot(tmp_path / "m.svg") == (tmp_path / "m.svg").read_text()
    assert seen.plot().startswith("<svg") and "<svg" in seen._repr_html_()
    small = seen.plot(tmp_path / "s.svg", memory=1 << 40, seconds=3600, small=True)
    assert small == (tmp_path / "s.svg").read_text()
    assert ">1 TiB<" in small and ">1 h<" in small and "read from disk" not in small
    with pytest.raises(ValueError, match="seconds"):
        seen.plot(seconds=-1)
    with pytest.raises(ValueError, match=r"plot writes \.svg"):
        seen.plot(tmp_path / "m.png")


def test_bad_places_and_names(seen: lt.Profile, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.html"):
        seen.save(tmp_path / "m.png")
    with pytest.raises(FileNotFoundError):
        seen.save(tmp_path / "nowhere" / "m.html")
    with pytest.raises(FileNotFoundError):
        lt.Profile.load(tmp_path / "none.trace")
    (tmp_path / "no.trace").write_text("hello\n")
    with pytest.raises(lt.FormatError):
        lt.Profile.load(tmp_path / "no.trace")


def test_invalid_names(seen: lt.Profile, tmp_path: Path) -> None:
    for use in (seen.save, seen.plot, lt.Profile.load, lambda name: lt.profile(trace=name)):
        with pytest.raises(ValueError, match="null byte"):
            use(str(tmp_path / "m\0.svg"))
    assert not list(tmp_path.iterdir())


def test_odd_names_are_names_like_others(seen: lt.Profile, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/a b\n\xff.trace"
    seen.save(name)
    assert lt.Profile.load(name).peak == seen.peak


def test_a_watched_file_is_reported_though_nobody_maps_it(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(bytes(MIB))
    for watch in (path, [path]):
        with lt.profile(watch=watch) as p:
            read_until(p)
        rows = {row["path"]: row for row in json.loads(p.json())["files"]}
        assert rows[str(path)]["size"] == MIB and rows[str(path)]["peak_mapped"] == 0


def test_cut_and_newer_traces(seen: lt.Profile, tmp_path: Path) -> None:
    path = tmp_path / "m.trace"
    seen.save(path)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    cut = lt.Profile.load(path)
    assert 0 < cut.readings < seen.readings
    assert any("how the run ended" in words for words in cut.verdict.unknown)
    path.write_text(text.replace("lowtide-trace 1", "lowtide-trace 2"))
    with pytest.raises(
        lt.FormatError, match=r"newer lowtide \(format 2; this version reads format 1\)"
    ):
        lt.Profile.load(path)


def test_a_trace_that_cannot_end_leaves_what_was_seen(tmp_path: Path) -> None:
    code = (
        "import lowtide as lt, resource, time\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))\n"  # as a full disk
        "try:\n"
        f"    with lt.profile(trace={os.fspath(tmp_path / 'm.trace')!r}, interval=0.001) as p:\n"
        "        while p.readings < 200: time.sleep(0.01)\n"
        "except OSError as error:\n"
        "    print(error.filename, p.readings >= 200, p.peak['rss'] > 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == f"{tmp_path / 'm.trace'} True True\n", run.stdout + run.stderr
    assert 0 < lt.Profile.load(tmp_path / "m.trace").readings < 200


@pytest.mark.parametrize("arguments", [{"pid": 0}, {"pid": -3}, {"interval": 0}, {"interval": -1}])
def test_bad_arguments(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        lt.profile(**arguments)  # type: ignore[call-overload]


def test_life_of_a_profile() -> None:
    p = lt.profile()
    assert repr(p) == "<lowtide.Profile not started>"
    assert p._repr_html_() == "<p>&lt;lowtide.Profile not started&gt;</p>"
    with pytest.raises(RuntimeError, match="not been started"):
        _ = p.peak
    with pytest.raises(RuntimeError, match="not running"):
        p.mark("x")
    with p:
        assert repr(p) == "<lowtide.Profile running>"
        with pytest.raises(RuntimeError, match="already running"):
            p.start()
    p.stop()
    assert repr(p).startswith("<lowtide.Profile peak ")
    with p:
        assert p.readings >= 0
    assert p.seconds >= 0 and p.readings >= 1


def test_decorator_watches_each_call(capfd: pytest.CaptureFixture[str]) -> None:
    @lt.profile
    def grow(size: int) -> int:
        """Grows."""
        if size > 1:
            return grow(size - 1)
        return len(np.ones(32 * MIB, np.uint8))

    assert grow(3) == 32 * MIB
    assert grow.__doc__ == "Grows."
    text = capfd.readouterr().err
    assert text.count("grow: peak ") == 1, text
    first = grow.profile  # type: ignore[attr-defined]
    grow(1)
    assert grow.profile is not first  # type: ignore[attr-defined]


def test_decorator_lets_errors_through(capfd: pytest.CaptureFixture[str]) -> None:
    @lt.profile(interval=0.01)
    def fails() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails()
    assert "fails: peak " in capfd.readouterr().err


def test_decorator_reports_why_it_cannot_start(tmp_path: Path) -> None:
    @lt.profile(trace=tmp_path / "none" / "m.trace")
    def never() -> None:
        raise AssertionError

    with pytest.raises(FileNotFoundError):
        never()


def test_watches_another_process_and_its_children() -> None:
    code = (
        "import subprocess, sys\n"
        "held = bytearray(b'x') * (48 << 20)\n"
        "child = subprocess.Popen([sys.executable, '-c',"
        " 'held = bytearray(b\"x\") * (48 << 20); print(flush=True); input()'],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(flush=True); input()\n"
        "child.communicate(b'\\n')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with lt.profile(pid=other.pid, interval=0.01) as p:
            read_until(p)
        with lt.profile(pid=other.pid, interval=0.01, children=False) as root:
            read_until(root)
        other.communicate(b"\n")
    assert p.peak["anon"] is not None and p.peak["anon"] >= 96 * MIB
    assert root.peak["anon"] is not None and 48 * MIB <= root.peak["anon"] < 90 * MIB


def test_trace_survives_a_kill(tmp_path: Path) -> None:
    trace = tmp_path / "run.trace"
    code = (
        "import lowtide as lt, time\n"
        f"with lt.profile(trace={os.fspath(trace)!r}, interval=0.01) as p:\n"
        "    while p.readings < 5: time.sleep(0.01)\n"
        "    print(flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()
        run.send_signal(signal.SIGKILL)
    read = lt.Profile.load(trace)
    assert read.readings >= 4
    assert read.peak["rss"] is not None


def test_a_forked_child_is_not_disturbed() -> None:
    with lt.profile(interval=0.01) as p:
        read_until(p)
        child = os.fork()
        if child == 0:
            p.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        read_until(p)
    assert p.verdict.kind in KINDS


def test_loader_marks_epochs(tmp_path: Path) -> None:
    np.arange(4001, dtype="uint16").tofile(tmp_path / "t.bin")
    with lt.tokens(tmp_path / "t.bin", memory="2MiB") as t, lt.profile(interval=0.01) as p:
        loader = lt.Loader(t, batch_size=2, block_size=100, epochs=2, seed=0)
        for _ in range(2):
            for _ in loader:
                pass
        p.mark("done")
    marks = [mark["text"] for mark in json.loads(p.json())["marks"]]
    assert [mark for mark in marks if mark.startswith("epoch")] == ["epoch 0", "epoch 1"]
    assert marks[-1] == "done"
