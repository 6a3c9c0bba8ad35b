"""Write the files of tests/golden/sparse: sparse matrices of other tools, which Lowtide reads.

Usage: python make_sparse.py FOLDER

Run with Python 3.12, anndata 0.13.4, h5py 3.16.0, scipy 1.17 and bionemo-scdl 0.1.3 from PyPI.
expected.npy is the matrix as a dense array.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scipy.sparse
from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((40, 30)) < 0.2, rng.integers(1, 9, (40, 30)), 0).astype("f4")
    dense[7] = 0
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(np.arange(40) % 4 - 1, ["B", "Tä", "NK"]),
            "age": np.arange(40) * 0.5,
        },
        index=[f"cell{i}" for i in range(40)],
    )
    cells = anndata.AnnData(
        X=scipy.sparse.csr_matrix(dense),
        obs=obs,
        layers={"counts": scipy.sparse.csr_matrix((dense * 2).astype("i4"))},
    )
    cells.layers["columns"] = scipy.sparse.csc_matrix(dense)
    cells.write_h5ad(folder / "cells.h5ad")
    SingleCellMemMapDataset(str(folder / "scdl"), str(folder / "cells.h5ad"), use_X_not_raw=True)
    np.save(folder / "expected.npy", dense)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
