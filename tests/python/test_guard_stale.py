"""The library of `lowtide guard` in programs that outlived it, where its names mean other files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from command import copy_command
from guarded import COMMAND, LIMIT, MIB, SHIM, SIZE, guard, needs_command, write_pages

pytestmark = needs_command

SEALS = 0x2 | 0x4  # shrink, grow


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = write_pages(tmp_path_factory.mktemp("stale") / "data.bin")
    yield path
    path.unlink()


@pytest.fixture(scope="module")
def page_bytes():
    """The size of the page that guard shares."""
    inner = "import os; print(os.stat(os.environ['LOWTIDE_GUARD'].rpartition(':')[2]).st_size)"
    return int(guard("--", sys.executable, "-c", inner).stdout)


def shimmed(page, *words, number=12345, **more):
    """Runs a program with the library, as one that a daemon started when guard was gone."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(SHIM),
        "LOWTIDE_GUARD": f"{LIMIT}::9:{number}:{page}",
    }
    return subprocess.run(
        list(map(str, words)), env=environment, capture_output=True, text=True, timeout=120, **more
    )


def wait_for_program(child):
    """Until then it is a copy of us."""
    while "sleep" not in os.readlink(f"/proc/{child.pid}/exe"):
        time.sleep(0.01)


@contextlib.contextmanager
def stranger(descriptor):
    """Another process that holds the file under number 3."""

    def keep():
        os.dup2(descriptor, 3)
        os.set_inheritable(3, True)

    child = subprocess.Popen(["sleep", "600"], preexec_fn=keep, close_fds=False)
    try:
        wait_for_program(child)
        yield f"/proc/{child.pid}/fd/3"
    finally:
        child.kill()
        child.wait()


def memory_file(size, *, sealed):
    made = os.memfd_create("theirs", os.MFD_ALLOW_SEALING)
    os.ftruncate(made, size)
    if sealed:
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, SEALS)
    return made


def file_of(folder, size):
    path = folder / f"theirs-{size}"
    path.write_bytes(b"\x07" * size)
    return os.open(path, os.O_RDWR)


FILES = {
    "a file of another size": lambda folder, _: file_of(folder, 1 << 20),
    "a file of the same size": lambda folder, size: file_of(folder, size),
    "an empty file": lambda folder, _: file_of(folder, 0),
    "a memfd without seals": lambda _, size: memory_file(size, sealed=False),
    "a sealed memfd without the number": lambda _, size: memory_file(size, sealed=True),
    "an empty memfd": lambda _, size: memory_file(0, sealed=True),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_strangers_file_is_not_touched_and_the_limit_holds_alone(
    tmp_path, data, page_bytes, kind
):
    theirs = FILES[kind](tmp_path, page_bytes)
    size = os.fstat(theirs).st_size
    before, changed = os.pread(theirs, size, 0), os.fstat(theirs).st_mtime_ns
    inner = (
        "import sys, time, numpy as np; m = np.memmap(sys.argv[1], mode='r'); most = 0\n"
        "for at in range(0, len(m), 1 << 20):\n"
        "    m[at : at + (1 << 20) : 4096].sum(); time.sleep(0.001)\n"
        "    most = max(most, int(open('/proc/self/statm').read().split()[2]))\n"
        "print(most * 4096)"
    )
    with stranger(theirs) as page:
        assert shimmed(page, "/bin/true").returncode == 0
        result = shimmed(page, sys.executable, "-c", inner, data)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 2 * LIMIT + 32 * MIB < SIZE  # with the libraries of Python
    assert os.pread(theirs, size + 1, 0) == before
    assert os.fstat(theirs).st_mtime_ns == changed
    os.close(theirs)


def test_the_page_of_a_guard_that_runs_is_known_by_its_number(data):
    """The right memfd with a wrong number is a stranger's too."""
    inner = (
        "import mmap, os, subprocess, sys; fields = os.environ['LOWTIDE_GUARD'].split(':')\n"
        "file = open(sys.argv[1], 'rb')\n"
        "map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "fields[3] = str(int(fields[3]) ^ 1)\n"
        "wrong = {**os.environ, 'LOWTIDE_GUARD': ':'.join(fields)}\n"
        "subprocess.run(['/bin/true'], env=wrong, check=True)\n"
    )
    result = guard("--", sys.executable, "-c", inner, data)
    assert result.returncode == 0, result.stderr
    assert "in 1 process;" in result.stderr


def bring_round(pid, descriptor, number):
    """A process with this id that holds the file under this number; None where it does not come."""

    def keep():
        os.dup2(descriptor, number)
        os.set_inheritable(number, True)

    last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
    for _ in range(50):
        last.write_text(str(pid - 1))
        child = subprocess.Popen(["sleep", "600"], preexec_fn=keep, close_fds=False)
        if child.pid == pid:
            return child
        child.kill()
        child.wait()
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can say which process id comes next")
def test_a_process_that_got_guards_id_keeps_its_file(tmp_path, page_bytes):
    """A daemon that outlived guard hands on the path of the page, which names another file now."""
    mark = tmp_path / "environment"
    script = f"setsid sleep 600 < /dev/null > /dev/null 2>&1 & env > {mark}; echo $!"
    process = subprocess.Popen(
        [COMMAND, "guard", "--limit", "64MiB", "--", "sh", "-c", script], stdout=subprocess.PIPE
    )
    daemon = int(process.communicate(timeout=60)[0])
    try:
        lines = mark.read_text().splitlines()
        settings = next(line for line in lines if line.startswith("LOWTIDE_GUARD="))
        page = settings.rpartition(":")[2]
        assert page.startswith(f"/proc/{process.pid}/fd/")
        theirs = tmp_path / "theirs"
        theirs.write_bytes(bytes(page_bytes))
        held = os.open(theirs, os.O_RDWR)
        again = bring_round(process.pid, held, int(page.rpartition("/")[2]))
        if again is None:
            pytest.skip("the process id did not come round")
        wait_for_program(again)
        assert os.path.samefile(page, theirs)
        environment = {**os.environ, "LD_PRELOAD": str(SHIM)}
        environment["LOWTIDE_GUARD"] = settings.partition("=")[2]
        assert subprocess.run(["/bin/true"], env=environment, timeout=60).returncode == 0
        assert theirs.read_bytes() == bytes(page_bytes)
        again.kill()
        again.wait()
    finally:
        os.kill(daemon, signal.SIGKILL)


@pytest.fixture
def with_a_space(tmp_path):
    """The command under a path that LD_PRELOAD cannot name."""
    root = tmp_path / "My Programs: new"
    (root / "lib" / "lowtide").mkdir(parents=True)
    copy_command(root, ".")
    shutil.copy(SHIM, root / "lib" / "lowtide" / SHIM.name)
    return root


def run_in(root, *, runtime):
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "XDG_CACHE_HOME": "", "HOME": ""}
    inner = "import os; print(os.environ['LD_PRELOAD'])"
    return subprocess.run(
        [root / "bin" / "lowtide", "guard", "--limit", "64MiB", "--", sys.executable, "-c", inner],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root has a folder here that others cannot write"
)
def test_a_library_whose_path_has_a_space_is_named_by_a_link_that_stays(with_a_space):
    runtime = pathlib.Path("/run") / f"lowtide-test-{os.getpid()}"
    runtime.mkdir(mode=0o700)
    try:
        result = run_in(with_a_space, runtime=runtime)
        assert result.returncode == 0, result.stderr
        link = pathlib.Path(result.stdout.strip())
        assert link.parent == runtime / "lowtide"
        assert link.resolve() == with_a_space / "lib" / "lowtide" / SHIM.name
        assert "not covered: nothing" in result.stderr
        assert run_in(with_a_space, runtime=runtime).stdout == result.stdout
    finally:
        shutil.rmtree(runtime)


def test_such_a_library_is_refused_where_a_stranger_could_take_the_links_name(
    tmp_path, with_a_space
):
    result = run_in(with_a_space, runtime=tmp_path)  # below /tmp, which is everybody's
    assert result.returncode == 1
    assert "set XDG_RUNTIME_DIR" in result.stderr
    assert not (tmp_path / "lowtide").exists()
