"""Trains a classifier on two columns, and resumes from its last checkpoint.

python data.py              # features.npy and labels.npy
python classifier.py        # kill it whenever you like, then run it again
"""

from __future__ import annotations

import os

import lowtide as lt
import numpy as np
import torch

EPOCHS = 3

x = lt.open("features.npy", memory="16MiB")
y = lt.open("labels.npy")
rows = np.random.default_rng(0).permutation(len(x))  # the same split in every run
held_out, rest = np.split(rows, [len(x) // 10])
train = lt.torch.Loader((x, y), batch_size=256, seed=1, rows=rest, epochs=EPOCHS)
validation = lt.torch.Loader(
    (x, y), batch_size=1024, order="sequential", rows=held_out, drop_last=False
)

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def save() -> None:
    """Writes a new file and renames it, so that there is always a complete checkpoint."""
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "data": train.state_dict(),
        },
        "checkpoint.new",
    )
    os.replace("checkpoint.new", "checkpoint.pt")


@torch.no_grad()
def accuracy() -> float:
    right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in validation)
    return right / len(held_out)


if os.path.exists("checkpoint.pt"):
    found = torch.load("checkpoint.pt", weights_only=True)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    train.load_state_dict(found["data"])
    print(f"resuming in epoch {train.epoch} at step {train.step}", flush=True)

while train.steps_left:
    for batch in train:  # the rest of the current epoch
        xb, yb = batch
        loss = torch.nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch.step % 50 == 49:
            save()
            print(f"epoch {batch.epoch} step {batch.step} loss {loss.item():.6f}", flush=True)
    print(f"epoch {batch.epoch} accuracy {accuracy():.4f}", flush=True)
save()
