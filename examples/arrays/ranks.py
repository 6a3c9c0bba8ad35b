"""Trains one model in two processes, each on its own share of every step.

python data.py
torchrun --nproc_per_node=2 ranks.py
"""

from __future__ import annotations

import lowtide as lt
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
columns = {"features": lt.open("features.npy", memory="16MiB"), "label": lt.open("labels.npy")}
loader = lt.torch.Loader(columns, batch_size=128, seed=1, epochs=2)  # finds its rank by itself

torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    seen = []
    for batch in loader:
        loss = torch.nn.functional.cross_entropy(model(batch["features"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += batch.index.tolist()
    shares = [None] * loader.world_size
    dist.all_gather_object(shares, seen)
    rows = [row for share in shares for row in share]
    if loader.rank == 0:
        print(f"epoch {epoch}: {len(rows)} rows by {loader.world_size} ranks", end=", ")
        print(f"{len(rows) - len(set(rows))} of them twice, loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
