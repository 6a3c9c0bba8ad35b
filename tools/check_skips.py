#!/usr/bin/env python3
"""Which tests were skipped, why, and whether this machine could have run them: then it fails.

check_skips.py SUMMARY LOG...   reads what ctest (LastTest.log) or pytest (-ra) wrote
check_skips.py --sum SUMMARY... prints what the summaries say together

Every reason to skip is in the table below, with what a machine must lack for it. What a machine has
is found out by trying.
"""

from __future__ import annotations

import collections
import ctypes
import ctypes.util
import functools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

Probe = Callable[[], bool]


def never() -> bool:
    """For what no machine of this kind runs."""
    return False


def root() -> bool:
    return os.geteuid() == 0


def program(name: str) -> Probe:
    return lambda: shutil.which(name) is not None


def module(name: str) -> Probe:
    def found() -> bool:
        run = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True)
        return run.returncode == 0

    return found


def io_uring() -> bool:
    """io_uring_setup is system call 425 everywhere; without parameters it cannot succeed."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(425, 1, None)
    return ctypes.get_errno() not in (1, 38)  # EPERM, ENOSYS


def libcurl() -> bool:
    """What a build with http needs, and what it loads."""
    code = "#if !__has_include(<curl/curl.h>)\n#error\n#endif\n"
    words = [os.environ.get("CXX", "c++"), "-E", "-x", "c++", "-"]
    header = subprocess.run(words, input=code.encode(), capture_output=True).returncode == 0
    return header and ctypes.util.find_library("curl") is not None


def object_servers() -> bool:
    folder = os.environ.get("LOWTIDE_SERVERS", "")
    path = os.pathsep.join([folder, os.environ.get("PATH", "")])
    return all(shutil.which(name, path=path) for name in ("moto_server", "weed", "rclone"))


def nginx() -> bool:
    path = os.pathsep.join([os.environ.get("LOWTIDE_SERVERS", ""), os.environ["PATH"], "/usr/sbin"])
    return shutil.which("nginx", path=path) is not None


def cachestat() -> bool:
    """System call 451 since Linux 6.5, which root may always use."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(451, -1, None, None, 0)
    return ctypes.get_errno() != 38


def free_disk() -> bool:
    return shutil.disk_usage(tempfile.gettempdir()).free > 8 << 30


def cli11() -> bool:
    code = "#if !__has_include(<CLI/CLI.hpp>)\n#error\n#endif\n"
    words = [os.environ.get("CXX", "c++"), "-E", "-x", "c++", "-"]
    return subprocess.run(words, input=code.encode(), capture_output=True).returncode == 0


def disk() -> bool:
    """Temporary files are on a file system with a page cache that can be emptied, not in memory."""
    run = subprocess.run(["stat", "-f", "-c", "%T", tempfile.gettempdir()], capture_output=True)
    return run.stdout.strip() not in (b"tmpfs", b"ramfs", b"overlayfs", b"")


def mounts() -> bool:
    run = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"])
    return run.returncode == 0


def cgroups() -> bool:
    scenarios = Path(__file__).resolve().parent.parent / "bench" / "scenarios"
    code = f"import sys; sys.path.insert(0, {str(scenarios)!r}); import cgroup"
    code += "; sys.exit(cgroup.why_unavailable() is not None)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def clear_refs() -> bool:
    """The kernel can reset the peak of a process (CONFIG_PROC_PAGE_MONITOR)."""
    return os.access("/proc/self/clear_refs", os.W_OK)


def seccomp() -> bool:
    return "Seccomp_filters" in Path("/proc/self/status").read_text(encoding="utf-8")


def accelerator() -> bool:
    code = "import sys, torch; sys.exit(not torch.accelerator.is_available())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def free_threaded() -> bool:
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


# What the reason says, what a machine that could run the test has, and how that is called.
RULES: list[tuple[str, Probe, str]] = [
    # Cases of a parametrised test that one of the engines does not have.
    (r"the memory engine needs room|the data is not to be held", never, "not for this engine"),
    (r"the data does not fit so small a budget", never, "not for this engine"),
    (r"an engine by name was asked for|the fault is one of pread", never, "not for this engine"),
    # The same tests run in the build without a sanitizer.
    (r"sanitizer|a child of this build cannot allocate", never, "not under a sanitizer"),
    (r"accelerator|CUDA|cuda", accelerator, "no accelerator"),
    (r"root", root, "not root"),
    (r"uring", io_uring, "no io_uring"),
    (r"no http", libcurl, "no libcurl"),
    (r"no server (moto_server|weed|rclone)", object_servers, "no servers of objects"),
    (r"no server nginx", nginx, "no nginx"),
    (r"group", cgroups, "no memory groups"),
    (r"seccomp|under another filter", seccomp, "no filters of system calls"),
    (r"before Linux 6.5|cachestat|does not tell|tells anybody", cachestat, "no cachestat"),
    (r"keeps its cache|keeps pages|page cache of this file", disk, "temporary files not on a disk"),
    (r"tmpfs|no O_DIRECT|no direct I/O", disk, "temporary files not on a disk"),
    (r"notes no access|no file of 256 GiB", disk, "temporary files not on a disk"),
    (r"no extended attributes", disk, "temporary files not on a disk"),
    (r"VmHWM cannot be reset", clear_refs, "no peak of a process"),
    (r"cannot be mounted", mounts, "no mounts"),
    (r"pages cannot be locked|mlock", root, "no locked pages"),
    (r"/proc.* hidden|a chroot", root, "/proc is hidden"),
    (r"bash is missing", program("bash"), "no bash"),
    (r"fish is missing", program("fish"), "no fish"),
    (r"zsh is missing", program("zsh"), "no zsh"),
    (r"groff is missing", program("groff"), "no groff"),
    (r"ldd is missing", program("ldd"), "no ldd"),
    (r"setpriv is missing", program("setpriv"), "no setpriv"),
    (r"no C\+\+ compiler", program("c++"), "no compiler"),
    (r"chromium", program("chromium"), "no chromium"),
    (r"no static libraries", program("c++"), "no compiler"),
    (r"GiB free", free_disk, "a full disk"),
    (r"command (lowtide )?(is|was) not installed", cli11, "no CLI11"),
    (r"has the GIL always", free_threaded, "a Python with the GIL"),
    (r"deb.debian.org cannot be reached", never, "no network"),
    (r"needs cmake, ninja", program("cmake"), "no cmake"),
    # Heavy packages, in an environment of their own.
    (r"in the interpreter of LOWTIDE_READERS", never, "no foreign readers"),
    (r"in .dev/peers or LOWTIDE_PEERS", never, "no peers"),
    (r"only with LOWTIDE_BIGFILES=1", never, "files of many GiB"),
    # Where the tests stand, and how other packages were built.
    (
        r"nobody cannot run the command|folder here that only this user",
        never,
        "the place of the tests",
    ),
    (r"the temporary folder is too deep|no /dev/shm|no terminal", never, "the place of the tests"),
    (r"without its tests|sqlite was built without", never, "how another package was built"),
    # By chance, not by what the machine has: another process was faster.
    (r"the process id did not come round", never, "by chance"),
    (r"the machine took the mapped pages|the machine evicts page cache", never, "by chance"),
]
RULES += [
    (rf"could not import '{name}|^{name} is not installed", module(name), f"no {name}")
    for name in (
        *("dask", "distributed", "h5py", "joblib", "memory_profiler", "ml_dtypes", "mprof"),
        *("obstore", "pyarrow", "rattler_build", "ray", "safetensors", "scipy", "sklearn"),
        *("torch", "torchdata"),
    )
]


@functools.cache
def judged(reason: str) -> tuple[bool, str]:
    """Whether this machine could have run it, and why it did not."""
    for pattern, probe, lack in RULES:
        if re.search(pattern, reason):
            return probe(), lack
    return True, "not in the table of tools/check_skips.py"


def skips_in(log: str) -> list[str]:
    """The reasons, one for each skipped test, of a log of ctest or pytest."""
    reasons = re.findall(r": Skipped\n(.*)\n", log)
    for count, reason in re.findall(r"^SKIPPED \[(\d+)\] \S+: (.*)$", log, re.MULTILINE):
        reasons += [reason] * int(count)
    return reasons


def check(summary: Path, logs: list[Path]) -> int:
    counts: collections.Counter[str] = collections.Counter()
    failed = False
    for log in logs:
        for reason in skips_in(log.read_text(encoding="utf-8", errors="replace")):
            could, why = judged(reason)
            if could:
                print(f"ERROR: skipped, though this machine could run it: {reason} ({why})")
                failed = True
            counts[why] += 1
    summary.parent.mkdir(parents=True, exist_ok=True)
    summary.write_text("".join(f"{count} {why}\n" for why, count in counts.items()))
    return 1 if failed else 0


def add_up(summaries: list[Path]) -> int:
    counts: collections.Counter[str] = collections.Counter()
    for summary in summaries:
        for line in summary.read_text().splitlines():
            count, _, why = line.partition(" ")
            counts[why] += int(count)
    told = ", ".join(f"{count} {why}" for why, count in counts.most_common())
    print(f"{'skipped tests':<28}{sum(counts.values())}{': ' + told if told else ''}")
    return 0


if __name__ == "__main__":
    first, *rest = sys.argv[1:]
    paths = [Path(word) for word in rest]
    sys.exit(add_up(paths) if first == "--sum" else check(Path(first), paths))
