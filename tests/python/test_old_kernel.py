"""The tests of guard and of maps once more, as on a kernel that cannot scan the pages of a map."""

from __future__ import annotations

import subprocess
import sys

import pytest
from guarded import HERE, compiled

FILES = [
    "test_guard.py",
    "test_guard_compiled.py",
    "test_guard_stale.py",
    "test_memmap.py",
    "test_memmap_life.py",
    "test_memmap_memory.py",
    "test_memmap_write.py",
    "test_release.py",
]


@pytest.fixture(scope="module")
def old_kernel(tmp_path_factory):
    path = compiled(tmp_path_factory.mktemp("old"), HERE.parent / "support" / "old_kernel.cc")
    if subprocess.run([path, "true"], capture_output=True).returncode == 125:
        pytest.skip("filters of system calls (seccomp) are not to be had here")
    return path


def test_the_questions_that_an_old_kernel_does_not_know_are_refused(old_kernel):
    code = (
        "import errno, fcntl\n"
        "for path, request, size in (('pagemap', 0xC0606610, 96), ('maps', 0xC0686611, 104)):\n"
        "    with open(f'/proc/self/{path}', 'rb') as file:\n"
        "        try:\n"
        "            fcntl.ioctl(file, request, bytes(size))\n"
        "        except OSError as error:\n"
        "            print(error.errno == errno.ENOTTY)\n"
    )
    told = subprocess.run([old_kernel, sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout == "True\nTrue\n", told.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_they_pass_on_an_old_kernel(old_kernel, name):
    words = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    told = subprocess.run(
        [old_kernel, *words, str(HERE / name)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=HERE.parents[1],
    )
    assert told.returncode == 0, told.stdout[-4000:] + told.stderr[-1000:]
