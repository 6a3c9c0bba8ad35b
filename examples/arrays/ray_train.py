"""Trains one model with Ray Train: each worker reads its own share of every step.

After a failure, Ray Train starts the workers again, and they go on from the last checkpoint.

python data.py
python ray_train.py
"""

from __future__ import annotations

import os
import tempfile

import lowtide as lt
import ray
import ray.train.torch
import torch
from ray.train import Checkpoint


def train(config: dict) -> None:
    """Runs in every worker."""
    context = ray.train.get_context()
    features = lt.open(os.path.join(config["folder"], "features.npy"), memory="16MiB")
    labels = lt.open(os.path.join(config["folder"], "labels.npy"))
    loader = lt.Loader(
        {"features": features, "label": labels},
        batch_size=128,
        seed=1,
        epochs=config["epochs"],
        rank=context.get_world_rank(),
        world_size=context.get_world_size(),
    )
    torch.manual_seed(0)
    model = ray.train.torch.prepare_model(torch.nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            saved = torch.load(os.path.join(folder, "state.pt"))
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
    while rows := [learn(model, optimizer, batch) for batch in loader]:
        save(model, loader, [row for step in rows for row in step])


def learn(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: lt.Batch) -> list[int]:
    features, label = map(torch.from_numpy, batch)
    loss = torch.nn.functional.cross_entropy(model(features), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return batch.index.tolist()


def save(model: torch.nn.Module, loader: lt.Loader, rows: list[int]) -> None:
    """Reports what all workers have read in this epoch, with a checkpoint of the first one."""
    shares = [None] * loader.world_size
    torch.distributed.all_gather_object(shares, rows)
    read = [row for share in shares for row in share]
    facts = {"ranks": loader.world_size, "rows": len(read), "twice": len(read) - len(set(read))}
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if loader.rank == 0:
            state = {"model": model.state_dict(), "loader": loader.state_dict()}
            torch.save(state, os.path.join(folder, "state.pt"))
            checkpoint = Checkpoint.from_directory(folder)
        ray.train.report(facts, checkpoint=checkpoint)


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"folder": os.getcwd(), "epochs": 2},
        scaling_config=ray.train.ScalingConfig(num_workers=2, use_gpu=False),
        run_config=ray.train.RunConfig(storage_path=os.path.join(os.getcwd(), "ray_results")),
    )
    for _, facts in trainer.fit().best_checkpoints:
        told = "{rows} rows by {ranks} ranks, {twice} of them twice"
        print("an epoch:", told.format(**facts))
    ray.shutdown()
