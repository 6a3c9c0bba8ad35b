"""One rank of test_torch_ddp.py, started by torchrun: trains a little and writes what it saw."""

from __future__ import annotations

import json
import pathlib
import sys

import lowtide as lt
import torch
from torch.nn.parallel import DistributedDataParallel
from torch_files import BLOCK, open_tokens, window_of


def main() -> None:
    path, folder, state = sys.argv[1], pathlib.Path(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Embedding(5000, 8), torch.nn.Linear(8, 1))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with open_tokens(path) as tokens:
        loader = lt.torch.Loader(tokens, 6, BLOCK, seed=8)
        if state is not None:
            loader.load_state_dict(state)
        report = {"rank": loader.rank, "world": loader.world_size, "repr": repr(loader)}
        report |= {"steps": [], "losses": [], "gradients": [], "states": []}
        for batch in loader:
            x, y = batch
            loss = (model(x).squeeze(-1) - (y % 2)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            torch.distributed.all_reduce(mean)
            report["steps"].append(window_of(x))
            report["losses"].append(mean.item() / loader.world_size)
            report["gradients"].append(model.module[1].weight.grad.sum().item().hex())
            report["states"].append(loader.state_dict())
    (folder / f"rank{report['rank']}.json").write_text(json.dumps(report))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
