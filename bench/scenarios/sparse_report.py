"""The bars of the benchmark `sparse`."""

from __future__ import annotations

import report

RATIO_BARS: tuple[report.RatioBar, ...] = (
    ("h5ad, cold", "cold-h5ad-lowtide", "cold-h5ad-fio", 0.9),
    ("SCDL folder, cold", "cold-scdl-lowtide", "cold-h5ad-fio", 0.9),
    ("zarr, cold", "cold-zarr-lowtide", "cold-h5ad-fio", 0.9),
    ("SCDL folder, cold", "cold-scdl-lowtide", "cold-scdl-bionemo", 50.0),
    ("h5ad, cold", "cold-h5ad-lowtide", "cold-h5ad-annloader", 100.0),
    ("fully random against blocks, cold", "cold-h5ad-batches", "cold-annbatch-blocks", 1.0),
    ("fully random, cold", "cold-h5ad-batches", "cold-annbatch-random", 5.0),
    ("dense columns, ours reads too", "hot-few-dense", "hot-few-scipy", 5.0),
    ("dense columns, both read", "hot-few-dense", "hot-few-loader", 5.0),
    ("safetensors, hot", "hot-safetensors-lowtide", "hot-safetensors-own", 1.0),
    ("npz, hot", "hot-npz-lowtide", "hot-npz-own", 1.0),
    ("fbin, hot", "hot-fbin-lowtide", "hot-fbin-own", 1.0),
    ("safetensors, hot, with as much memory", "hot-safetensors-held", "hot-safetensors-own", 1.0),
    ("npz, hot, with as much memory", "hot-npz-held", "hot-npz-own", 1.0),
    ("fbin, hot, with as much memory", "hot-fbin-held", "hot-fbin-own", 1.0),
    ("safetensors, cold", "cold-safetensors-lowtide", "cold-safetensors-own", 5.0),
    ("npz, cold", "cold-npz-lowtide", "cold-npz-own", 5.0),
    ("fbin, cold", "cold-fbin-lowtide", "cold-fbin-own", 5.0),
)
FILL_BAR: report.RatioBar = ("dense columns, CPU of both", "hot-few-dense", "hot-few-scipy", 5.0)


def add_fill_rates(found: report.Rounds) -> None:
    """Adds `fill_rows_per_s`: rows per second of CPU that become dense, without reading them.

    What Lowtide does beside that is what it does for sparse batches of the same cells.
    """
    both = zip(found.get("hot-few-dense", []), found.get("hot-few-sparse", []), strict=False)
    for dense, sparse in both:
        if report.is_good(dense) and report.is_good(sparse) and dense["cpu_us"] > sparse["cpu_us"]:
            dense["fill_rows_per_s"] = 1e6 / (dense["cpu_us"] - sparse["cpu_us"])
    for one in found.get("hot-few-scipy", []):
        if report.is_good(one):
            one["fill_rows_per_s"] = 1e6 / one["cpu_us"]
