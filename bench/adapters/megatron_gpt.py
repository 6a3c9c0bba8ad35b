"""Megatron-Core: a GPTDataset over .idx and .bin, whose samples 2 workers read by number.

https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/datasets.html
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch.utils.data
from megatron.core.datasets import gpt_dataset, indexed_dataset
from megatron.core.datasets.utils import Split

from . import BLOCK, Data

NAME = "Megatron-Core GPTDataset, 2 workers"
PAGE = "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/datasets.html"
ENVIRONMENT = "torch"
PACKAGES = ("megatron-core", "torch")
SCENARIOS = {"tokens": "", "resume": ""}
TOKENIZER = SimpleNamespace(vocab_size=1 << 16, eod=-1, pad=-1, unique_identifiers={})


def prepare(data: Data) -> None:
    flat = data.view().base  # one document, so that no window crosses documents
    out = indexed_dataset.IndexedDatasetBuilder(f"{data.folder}/x.bin", dtype=np.uint16)
    out.add_document(flat, [len(flat)])
    out.finalize(f"{data.folder}/x.idx")
    _dataset(data)  # builds its index, as the first run of a training would


def _dataset(data: Data) -> gpt_dataset.GPTDataset:
    prefix = f"{data.folder}/x"
    config = gpt_dataset.GPTDatasetConfig(
        random_seed=data.seed, sequence_length=BLOCK, blend=([prefix], None), split="1,0,0",
        path_to_cache=f"{data.folder}/cache", tokenizer=TOKENIZER, reset_position_ids=False,
        reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False,
    )  # fmt: skip
    stored = gpt_dataset.GPTDataset.build_low_level_dataset(prefix, config)
    return gpt_dataset.GPTDataset(
        stored, prefix, np.arange(1, dtype=np.int32), None, Split.train, config
    )


def batches(data: Data) -> Iterator[Any]:
    stored = _dataset(data)
    consumed = range(data.state or 0, len(stored))
    loader = torch.utils.data.DataLoader(
        stored, data.batch_size, sampler=consumed, num_workers=2, drop_last=True
    )
    for batch in loader:
        yield batch["tokens"]


def save(data: Data, steps: int) -> Any:
    return steps * data.batch_size  # Megatron's checkpoint has the samples that were consumed
