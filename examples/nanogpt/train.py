"""Trains a small GPT on the token files of prepare.py, on the CPU, with reproducible losses.

--data memmap and --data lowtide give the same losses to the last bit. --data loader writes
checkpoints and resumes from the last one; its losses equal those of an uninterrupted run.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time
from typing import Any

import lowtide as lt
import torch
from data import WAYS, Data, open_data
from model import GPT, Config

VAL_WINDOWS = 256


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", choices=WAYS, default="loader")
    add("--folder", type=pathlib.Path, default=pathlib.Path("out"), help="has train.bin, val.bin")
    add("--steps", type=int, default=400)
    add("--batch-size", type=int, default=12)
    add("--block-size", type=int, default=64)
    add("--layers", type=int, default=3)
    add("--heads", type=int, default=4)
    add("--width", type=int, default=128)
    add("--dropout", type=float, default=0.1)
    add("--rate", type=float, default=2e-3, help="learning rate of AdamW")
    add("--seed", type=int, default=1337)
    add("--threads", type=int, default=1, help="threads of torch; may change the last bits")
    add("--log", type=pathlib.Path, help="one line per step: step, loss, loss in hexadecimal")
    add(
        "--checkpoint",
        type=pathlib.Path,
        help="checkpoint of --data loader (default: checkpoint.pt in FOLDER)",
    )
    add("--checkpoint-every", type=int, default=50, metavar="STEPS")
    return parser.parse_args()


class Checkpoint:
    """The whole state of a run in one file, which is always complete."""

    def __init__(self, path: pathlib.Path, model: GPT, optimizer: Any, data: Data) -> None:
        self.path, self.model, self.optimizer, self.data = path, model, optimizer, data

    def save(self, step: int) -> None:
        """Writes a new file and renames it, so that a kill leaves the old or the new checkpoint."""
        beside = self.path.with_suffix(".tmp")
        with beside.open("wb") as file:
            torch.save(
                {
                    "step": step,
                    "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                    "rng": torch.get_rng_state(),
                    "data": self.data.state_dict(),
                },
                file,
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)

    def load(self) -> int:
        """Returns the step to continue with; 0 if there is no checkpoint."""
        if not self.path.exists():
            return 0
        found = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])
        self.data.load_state_dict(found["data"])
        torch.set_rng_state(found["rng"])
        return int(found["step"])


class Log:
    """The losses so far; a run that resumes at `step` first removes later lines."""

    def __init__(self, path: pathlib.Path | None, step: int) -> None:
        self.file = None
        if path is None:
            return
        kept = path.read_text().splitlines(keepends=True)[:step] if step and path.exists() else []
        path.write_text("".join(kept))
        self.file = path.open("a")

    def add(self, step: int, loss: float) -> None:
        if self.file is not None:
            self.file.write(f"{step} {loss:.6f} {loss.hex()}\n")
            self.file.flush()


@torch.no_grad()
def val_loss(model: GPT, path: pathlib.Path) -> float:
    """Returns the mean loss over windows of val.bin, the same ones each time."""
    with lt.tokens(path) as tokens:
        block_size = model.config.block_size
        count = min(VAL_WINDOWS, (len(tokens) - 1) // block_size)
        x, y = lt.torch.windows(tokens, torch.arange(count) * block_size, block_size)
    model.eval()
    loss = model.loss(x, y).item()
    model.train()
    return loss


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    model = GPT(
        Config(
            block_size=options.block_size,
            layers=options.layers,
            heads=options.heads,
            width=options.width,
            dropout=options.dropout,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.99))
    path = options.folder / "train.bin"
    data = open_data(options.data, path, options.batch_size, options.block_size, options.seed)
    checkpoint, first = None, 0
    if options.data == "loader":
        where = options.checkpoint or options.folder / "checkpoint.pt"
        checkpoint = Checkpoint(where, model, optimizer, data)
        first = checkpoint.load()
        if first:
            print(f"resuming from step {first}; to start from scratch, remove {where}")
    log = Log(options.log, first)
    begin = time.perf_counter()
    for step in range(first, options.steps):
        x, y = data.next()
        loss = model.loss(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        log.add(step, loss.item())
        done = step + 1
        if step % 50 == 0 or done == options.steps:
            print(f"step {step:5}  loss {loss.item():.4f}  {time.perf_counter() - begin:6.1f} s")
        if checkpoint and (done % options.checkpoint_every == 0 or done == options.steps):
            checkpoint.save(done)
    print(f"loss on val.bin {val_loss(model, options.folder / 'val.bin'):.4f}")
    model.eval()
    said = model.generate(torch.tensor([[ord("\n")]]), 160)[0].tolist()
    print(bytes(said).decode("ascii", "replace").strip())


def main() -> None:
    options = parse()
    if options.checkpoint_every < 1:
        raise SystemExit("--checkpoint-every must be at least 1")
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    train(options)


if __name__ == "__main__":
    main()
