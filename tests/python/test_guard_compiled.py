"""`lowtide guard` around programs made for it: static ones, ones that go past libc, a stress."""

from __future__ import annotations

import os
import re

import pytest
from guarded import HERE, LIMIT, MIB, SIZE, compiled, guard, needs_command, peak_of, write_pages

pytestmark = needs_command


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = write_pages(tmp_path_factory.mktemp("guard") / "data.bin")
    yield path
    path.unlink()


def test_a_static_program_is_refused_by_name(tmp_path):
    source = tmp_path / "idle.cc"
    source.write_text("int main() { return 0; }\n")
    path = compiled(tmp_path, source, "-static")
    result = guard("--", path)
    assert result.returncode == 1
    assert f"{path} is statically linked" in result.stderr
    assert "MemoryHigh=64M " in result.stderr


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
        r"not covered: past held \d+ MiB of \S+data.bin: .*mapped without libc", result.stderr
    )


@pytest.mark.parametrize("way", ["raw", "memory"], ids=["mprotect past libc", "proc self mem"])
def test_writes_into_a_private_map_that_no_hook_saw_are_kept(tmp_path, data, way):
    path = compiled(tmp_path, HERE / "guard_private.cc")
    result = guard("--", path, way, data)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("0 of 586 lost,"), result.stdout
    assert peak_of(result.stderr)[1] > 0, result.stderr


def test_maps_are_held_after_calls_on_them_that_failed(tmp_path, data):
    """An mremap, munmap and mmap that the kernel refuses leave the maps as they were."""
    path = compiled(tmp_path, HERE / "guard_private.cc")
    result = guard("--", path, "failed", data)
    assert result.returncode == 0, result.stderr
    assert int(re.search(r"(\d+) MiB", result.stdout)[1]) * MIB < 2 * LIMIT, result.stderr
    assert peak_of(result.stderr)[1] > 5, result.stderr


SANDBOXES = {
    "all_threads": "a filter for all threads by seccomp",
    "prctl": "a filter by prctl",
    "strict": "strict mode; the process ends with its last thread",
    "exec": "a filter that a child hands to the program it becomes",
}


@pytest.mark.parametrize("way", SANDBOXES, ids=SANDBOXES.get)
def test_a_program_that_restricts_its_system_calls_lives_and_is_named(tmp_path, data, way):
    path = compiled(tmp_path, HERE / "guard_sandbox.cc")
    result = guard("--", path, way, data, timeout_s=60)
    if result.returncode == 77:
        pytest.skip("strict mode is not to be had under another filter")
    assert (result.returncode, result.stdout) == (0, "good\n"), result.stderr
    assert peak_of(result.stderr)[1] > 0, result.stderr  # before the filter it was held
    assert "a process from the moment it restricted its system calls (seccomp)" in result.stderr


def test_a_filter_that_the_kernel_refuses_changes_nothing(tmp_path, data):
    path = compiled(tmp_path, HERE / "guard_sandbox.cc")
    result = guard("--", path, "refused", data)
    assert (result.returncode, result.stdout) == (0, "good\n"), result.stderr
    assert result.stderr.endswith("not covered: nothing\n")
    peak, trims = peak_of(result.stderr)
    assert peak <= 2 * LIMIT
    assert trims >= 2 * (SIZE // LIMIT - 1), result.stderr  # the second reading was held as well


@pytest.mark.slow
def test_memory_that_took_the_place_of_a_map_is_never_touched(tmp_path, data):
    path = compiled(tmp_path, HERE / "guard_stress.cc")
    seconds = os.environ.get("LOWTIDE_STRESS_SECONDS", "60")
    result = guard("--", path, seconds, data, limit="4MiB", timeout_s=int(seconds) + 300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "good\n"
    assert peak_of(result.stderr)[1] > 10, result.stderr
