"""Writes the activations of a model as bfloat16, then trains a probe on them in shuffled order.

python data.py
python activations.py       # needs ml_dtypes, which gives NumPy bfloat16
"""

from __future__ import annotations

import lowtide as lt
import ml_dtypes
import numpy as np
import torch

x, y = lt.open("features.npy", memory="16MiB"), lt.open("labels.npy")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 256), torch.nn.ReLU()).bfloat16()

with torch.no_grad():
    shape = (len(x), 256)
    out = np.lib.format.open_memmap("activations.npy", "w+", ml_dtypes.bfloat16, shape)
    first = 0
    for rows in x.iter_chunks(4096):
        activations = model(torch.from_numpy(rows).bfloat16())
        bits = activations.view(torch.uint16).numpy()  # torch has no bfloat16 for NumPy
        out[first : first + len(rows)] = bits.view(ml_dtypes.bfloat16)
        first += len(rows)
    out.flush()

# In a .npy file, bfloat16 is two bytes without a name: say what they are.
a = lt.open("activations.npy", dtype=ml_dtypes.bfloat16, memory="16MiB")
probe = torch.nn.Linear(256, 4)
optimizer = torch.optim.AdamW(probe.parameters(), lr=1e-3)
for epoch in range(2):
    right = 0
    loader = lt.torch.Loader((a, y), batch_size=256, seed=epoch, epochs=1)
    for ab, yb in loader:  # ab is torch.bfloat16
        logits = probe(ab.float())
        loss = torch.nn.functional.cross_entropy(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == yb).sum().item()
    print(f"epoch {epoch}: {ab.dtype}, accuracy {right / (len(loader) * 256):.4f}")
