"""What `./dev bench hotpaths` makes of perf's samples, and the floors of `rows` and `tokens`."""

from __future__ import annotations

import shutil

import pytest

SAMPLES = """\
# Overhead|Shared Object       |Symbol
 40.00%  |[kernel.kallsyms]   |[k] rep_movs_alternative            |-      -
 10.00%  |[kernel.kallsyms]   |[k] filemap_get_read_batch          |-      -
  5.50%  |[virtio_blk]        |[k] virtio_queue_rqs                |-      -
  4.50%  |[kernel.kallsyms]   |[k] clear_page_erms                 |-      -
  3.00%  |[kernel.kallsyms]   |[k] entry_SYSCALL_64                |-      -
 20.00%  |_core.abi3.so       |[.] 0x0000000000123456              |-      -
  7.00%  |libc.so.6           |[.] __memmove_avx_unaligned_erms    |-      -
 10.00%  |python3.11          |[.] _PyEval_EvalFrameDefault        |-      -
"""


def test_samples_are_summed_by_what_they_are_spent_on(bench_module):
    shares = bench_module("hotpaths").shares(SAMPLES)
    assert shares == pytest.approx(
        {
            "copy": 0.47,
            "lookup": 0.1,
            "disk": 0.055,
            "fault": 0.045,
            "kernel": 0.03,
            "lowtide": 0.2,
            "python": 0.1,
        }
    )


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_every_floor_reads_until_its_time_is_over(bench_module, tmp_path):
    floor = bench_module("floor")
    path = tmp_path / "data"
    path.write_bytes(bytes(648 * 5_000))
    for kind, *numbers in (
        ("rows", 648, 648 * 1_000, 0),
        ("rows", 648, 648 * 1_000, 64 << 10),
        ("held", 648),
        ("windows", 1024),
    ):
        found = floor.run(kind, str(path), *numbers, seconds=0.05)
        assert found["done"] > 0 and found["seconds"] >= 0.05, (kind, found)
    missing = floor.run("rows", str(tmp_path / "none"), 648, 648_000, 0, seconds=0.05)
    assert "No such file" in missing["error"] and str(tmp_path) not in missing["error"]
