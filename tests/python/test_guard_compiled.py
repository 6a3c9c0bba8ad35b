"""`lowtide guard` around programs made for it: static ones, ones that go past libc, a stress."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from guarded import HERE, SIZE, guard, needs_command, peak_of, write_pages

pytestmark = needs_command


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = write_pages(tmp_path_factory.mktemp("guard") / "data.bin")
    yield path
    path.unlink()


def compiled(folder, source, *flags):
    compiler = shutil.which("c++") or pytest.skip("no C++ compiler")
    path = folder / (pathlib.Path(source).stem + "".join(flags))
    run = subprocess.run(
        [compiler, "-std=c++20", "-O2", str(source), "-o", str(path), "-pthread", *flags],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0 and "-static" in flags:
        pytest.skip("no static libraries to link with")
    assert run.returncode == 0, run.stderr
    return path


def test_a_static_program_is_refused_by_name(tmp_path):
    source = tmp_path / "idle.cc"
    source.write_text("int main() { return 0; }\n")
    path = compiled(tmp_path, source, "-static")
    result = guard("--", path)
    assert result.returncode == 1
    assert f"{path} is statically linked" in result.stderr
    assert "MemoryHigh=67108864" in result.stderr


def holder(folder, name, call, *flags):
    """A program that holds all of a file for a second, mapped by `call`."""
    source = folder / f"{name}.cc"
    source.write_text(
        "#include <fcntl.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        "int main(int, char** w) { long fd = open(w[1], O_RDONLY); int s = 0;"
        f" volatile char* p = (volatile char*){call}nullptr, {SIZE}L,"
        " PROT_READ, MAP_SHARED, fd, 0L);"
        f" for (long r = 0; r < 20; ++r) {{ for (long i = 0; i < {SIZE}; i += 4096) s += p[i];"
        " usleep(50000); } return s == 1; }\n"
    )
    return compiled(folder, source, *flags)


def test_a_static_program_below_the_guarded_one_is_named(tmp_path, data):
    path = holder(tmp_path, "holder", "mmap(", "-static")
    result = guard("--", "sh", "-c", f"{path} {data}; exit 3")
    assert result.returncode == 3
    assert re.search(
        r"not covered: holder-static held \d+ MiB of \S+data.bin: the guard's library was not",
        result.stderr,
    )


def test_a_program_that_maps_past_libc_is_named(tmp_path, data):
    path = holder(tmp_path, "past", "syscall(SYS_mmap, ")
    result = guard("--", path, data)
    assert result.returncode == 0
    assert re.search(
        r"not covered: past held \d+ MiB of \S+data.bin: .*mapped past libc", result.stderr
    )


@pytest.mark.slow
def test_memory_that_took_the_place_of_a_map_is_never_touched(tmp_path, data):
    path = compiled(tmp_path, HERE / "guard_stress.cc")
    seconds = os.environ.get("LOWTIDE_STRESS_SECONDS", "60")
    result = guard("--", path, seconds, data, limit="4MiB", timeout_s=int(seconds) + 300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "good\n"
    assert peak_of(result.stderr)[1] > 10, result.stderr
