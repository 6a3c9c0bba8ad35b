"""Trains on classes of very different size: weights draw the rare one as often as the others.

python balance.py
"""

from __future__ import annotations

import data
import lowtide as lt
import numpy as np
import torch

data.write(rare=0.01)
x, y = lt.open("features.npy", memory="16MiB"), lt.open("labels.npy")
labels = y[:]  # one number per row: these fit into memory
counts = np.bincount(labels)
rare = counts.argmin()


def train(weights: np.ndarray | None) -> tuple[float, float]:
    """Returns the share of the rare class in the batches, and how much of it is recognised."""
    torch.manual_seed(0)
    model = torch.nn.Linear(x.shape[1], len(counts))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    seen = torch.zeros(len(counts))
    for xb, yb in lt.torch.Loader((x, y), batch_size=256, weights=weights, epochs=1):
        loss = torch.nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += torch.bincount(yb, minlength=len(counts))
    with torch.no_grad():
        found = model(torch.from_numpy(x[labels == rare])).argmax(1) == rare
    return (seen[rare] / seen.sum()).item(), found.float().mean().item()


for name, weights in (("as stored", None), ("balanced", 1 / counts[labels])):
    share, recall = train(weights)
    print(f"{name}: {share:.1%} of what was trained on is rare, {recall:.1%} of it is recognised")
