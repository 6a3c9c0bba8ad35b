"""Forms of the matrix of the benchmark `sparse` that only the tools of others write.

    python sparse_peers.py FORM SOURCE.h5ad TARGET

runs in the interpreter of `--peers`. Each tool gets blocks small enough for a machine of 8 GiB.
"""

from __future__ import annotations

import sys

BLOCK_ROWS = 50_000
SHUFFLED_ROWS = 100_000  # annbatch shuffles within so many rows, drawn from the whole file


def scdl(source: str, target: str) -> None:
    """The folder of bionemo-scdl, in its way for large files."""
    from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset

    made = SingleCellMemMapDataset(
        target, h5ad_path=source, use_X_not_raw=True,
        paginated_load_cutoff=0, load_block_row_size=BLOCK_ROWS,
    )  # fmt: skip
    made.save()


def annbatch(source: str, target: str) -> None:
    """The pre-shuffled store of annbatch, with its defaults but for the rows in memory."""
    import numpy as np
    from annbatch import DatasetCollection

    DatasetCollection(target).add_adatas(
        [source], dataset_size=SHUFFLED_ROWS, rng=np.random.default_rng(0)
    )


def zarr(source: str, target: str) -> None:
    """A store as anndata lays it out, uncompressed, copied in blocks."""
    import h5py
    import zarr as z

    with h5py.File(source) as file:
        x = file["X"]
        root = z.open_group(target, mode="w", zarr_format=2)
        root.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        group = root.create_group("X")
        shape = [int(n) for n in x.attrs["shape"]]
        named = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape}
        group.attrs.update(named)
        for name in ("data", "indices", "indptr"):
            size = len(x[name])
            chunk = max(1, min(size, 1 << 20))
            array = group.create_array(
                name, shape=(size,), chunks=(chunk,), dtype=x[name].dtype, compressors=None
            )
            for first in range(0, size, chunk):
                array[first : first + chunk] = x[name][first : first + chunk]


if __name__ == "__main__":
    form, *paths = sys.argv[1:]
    {"scdl": scdl, "annbatch": annbatch, "zarr": zarr}[form](*paths)
