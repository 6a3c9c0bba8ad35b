"""lt.jobs: targets that exist, are folders or sources, cannot be written, or are on a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import lowtide as lt
import numpy as np
import pytest
from job_files import entries, matrix_file, require_notes, some_documents, write_documents

MANY_TASKS = "1MiB"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    matrix_file(tmp_path / "m.npy", rows=20_000)
    return tmp_path / "m.npy"


def test_an_existing_target_is_kept_unless_told(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out.npy"
    out.write_bytes(b"old")
    for plan in (
        lambda **more: lt.jobs.shuffle(source, out, **more),
        lambda **more: lt.jobs.convert(source, out, "npy", **more),
        lambda **more: lt.jobs.merge([source], out, **more),
    ):
        with pytest.raises(FileExistsError) as found:
            plan()
        assert found.value.filename == str(out)
        assert out.read_bytes() == b"old"
        plan(overwrite=True)  # a plan alone changes nothing
        assert out.read_bytes() == b"old"
        plan(overwrite=True).run()
        assert np.load(out).shape == (20_000, 37)
        out.write_bytes(b"old")
    (tmp_path / "t.idx").write_bytes(b"old index")
    documents = write_documents(tmp_path / "d.ds", "datatrove", some_documents())
    with pytest.raises(FileExistsError):
        lt.jobs.convert(documents, tmp_path / "t.bin", "megatron")


def test_a_job_recognises_its_own_result(tmp_path: Path, source: Path) -> None:
    require_notes(tmp_path)
    documents = write_documents(tmp_path / "d.bin", "megatron", some_documents())
    out, tokens, folder = tmp_path / "out.npy", tmp_path / "t.bin", tmp_path / "parts"
    for path, plan in (
        (out, lambda **more: lt.jobs.shuffle(source, out, **more)),
        (out, lambda **more: lt.jobs.convert(source, out, "npy", **more)),
        (out, lambda **more: lt.jobs.merge([source], out, **more)),
        (tokens, lambda **more: lt.jobs.convert(documents, tokens, "megatron", **more)),
        (tokens, lambda **more: lt.jobs.merge([documents], tokens, **more)),
        (tokens, lambda **more: lt.jobs.shuffle(documents, tokens, unit="document", **more)),
        (folder, lambda **more: lt.jobs.shuffle(source, folder, shards=3, **more)),
    ):
        plan().run()
        made = path.stat()
        again = plan()
        assert all(task.done() for task in again.tasks)
        again.run()
        again.tasks[0].run()
        assert path.stat() == made
        assert not [name for name in entries(tmp_path) if "lowtide" in name]
        if path.is_dir():
            os.utime(path / "part-00001-of-00003.npy")
        else:
            os.utime(path)  # as any change of its bytes would
        with pytest.raises(FileExistsError):
            plan()
        if path != folder:
            path.unlink()
        if path == tokens:
            (tmp_path / "t.idx").unlink()


def test_another_job_does_not_recognise_it(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out.npy"
    lt.shuffle(source, out, seed=1)
    for other in (
        lambda: lt.jobs.shuffle(source, out, seed=2),
        lambda: lt.jobs.convert(source, out, "npy"),
        lambda: lt.jobs.merge([source], out),
    ):
        with pytest.raises(FileExistsError):
            other()
    matrix_file(source, rows=20_000)  # equal bytes, but nobody compared them
    with pytest.raises(FileExistsError):
        lt.jobs.shuffle(source, out, seed=1)


def test_a_target_that_appears_after_planning_is_kept(tmp_path: Path, source: Path) -> None:
    plan = lt.jobs.shuffle(source, tmp_path / "out.npy")
    (tmp_path / "out.npy").write_bytes(b"another")
    with pytest.raises(FileExistsError):
        plan.run()
    assert (tmp_path / "out.npy").read_bytes() == b"another"
    assert entries(tmp_path) == ["m.npy", "out.npy"]


def test_a_folder_is_no_target_for_a_file(tmp_path: Path, source: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "folder.npy" / "mine.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(OSError):
            lt.jobs.shuffle(source, tmp_path / "folder.npy", overwrite=overwrite)
    # Nor is a folder with files that no job makes overwritten.
    with pytest.raises(OSError):
        lt.shuffle(source, tmp_path / "folder.npy", shards=2, overwrite=True)
    assert (tmp_path / "folder.npy" / "mine.txt").read_text() == "mine"
    with pytest.raises(OSError):
        lt.jobs.shuffle(source, tmp_path / "none" / "out.npy")


def test_the_source_is_no_target(tmp_path: Path, source: Path) -> None:
    before = source.read_bytes()
    (tmp_path / "link.npy").symlink_to(source)
    for target in (source, tmp_path / "link.npy"):
        with pytest.raises((OSError, ValueError)) as found:
            lt.jobs.shuffle(source, target, overwrite=True)
        assert not isinstance(found.value, FileExistsError)
    assert source.read_bytes() == before


@contextlib.contextmanager
def mounted(where: Path, options: str) -> Iterator[None]:
    """A file system of its own in a folder."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    words = ["mount", "-t", "tmpfs", "-o", options, "none", str(where)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(where)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    where = tmp_path / "small"
    where.mkdir()
    with mounted(where, "size=4m"):
        yield where


def test_a_target_that_cannot_be_written_is_refused(tmp_path: Path, source: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    # No mode stops root.
    with mounted(locked, "ro") if os.geteuid() == 0 else contextlib.nullcontext():
        with pytest.raises(OSError) as found:
            lt.jobs.shuffle(source, locked / "out.npy")
        assert found.value.errno in (errno.EACCES, errno.EROFS)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_is_an_error_and_leaves_nothing(
    tmp_path: Path, small_disk: Path, overwrite: bool
) -> None:
    matrix_file(tmp_path / "big.npy", rows=40_000)  # 5.6 MiB
    out = small_disk / "out.npy"
    if overwrite:
        out.write_bytes(b"old")
    plan = lt.jobs.shuffle(tmp_path / "big.npy", out, memory=MANY_TASKS, overwrite=overwrite)
    with pytest.raises(OSError) as full:
        plan.run()
    assert full.value.errno == errno.ENOSPC
    assert entries(small_disk) == (["out.npy"] if overwrite else [])
    if overwrite:
        assert out.read_bytes() == b"old"
    with pytest.raises(OSError) as full:
        lt.merge([tmp_path / "big.npy"], small_disk / "merged.npy")
    assert full.value.errno == errno.ENOSPC
    assert not (small_disk / "merged.npy").exists()
