"""Reads token files with the tools that they are for. Run by the interpreter that has these tools.

foreign_readers.py READER ARGUMENTS (JSON) prints what the reader found, as JSON. Exit 77: no such
package.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np


def megatron(prefix: str) -> dict[str, Any]:
    """megatron-core, with both of its ways to read the data."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    found: dict[str, Any] = {}
    for mmap in (True, False):
        data = IndexedDataset(prefix, mmap=mmap)
        documents = [data.get(i) for i in range(len(data))]
        now = {
            "documents": [document.tolist() for document in documents],
            "dtype": sorted({document.dtype.name for document in documents}),
            "document_indices": data.document_indices.tolist(),
            "lengths": data.sequence_lengths.tolist(),
        }
        assert not found or found == now
        found = now
    return found


def datatrove(path: str, block: int, token_size: int) -> dict[str, Any]:
    from datatrove.utils.dataset import DatatroveFileDataset

    data = DatatroveFileDataset(path, block, token_size, return_positions=True)
    rows = [data[i] for i in range(len(data))]
    return {
        "windows": [row["input_ids"].tolist() for row in rows],
        "positions": [row["positions"].tolist() for row in rows],
    }


def olmo(path: str, block: int, dtype: str, eos: int) -> dict[str, Any]:
    from olmo_core.data.numpy_dataset import NumpyFSLDataset
    from olmo_core.data.utils import iter_document_indices

    kind = np.dtype(dtype).type
    data = NumpyFSLDataset(
        path, sequence_length=block, pad_token_id=0, eos_token_id=eos, vocab_size=1 << 16,
        dtype=kind,
    )  # fmt: skip
    data.prepare()
    ends = [int(end) for _, end in iter_document_indices(path, eos_token_id=eos, dtype=kind)]
    rows = [data[i]["input_ids"].tolist() for i in range(len(data))]
    return {"windows": rows, "ends": ends}


if __name__ == "__main__":
    reader = {"megatron": megatron, "datatrove": datatrove, "olmo": olmo}[sys.argv[1]]
    try:
        found = reader(**json.loads(sys.argv[2]))
    except ModuleNotFoundError as error:
        if error.name in ("megatron", "datatrove", "olmo_core"):
            sys.exit(77)
        raise
    print(json.dumps(found))
