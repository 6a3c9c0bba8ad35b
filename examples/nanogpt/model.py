"""A small GPT: token and position embeddings, pre-norm blocks, an output tied to the embedding."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes of a model."""

    block_size: int = 64
    vocabulary: int = 128
    layers: int = 3
    heads: int = 4
    width: int = 128
    dropout: float = 0.1


class Attention(nn.Module):
    """Each position attends to itself and to earlier positions."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.mix_in = nn.Linear(config.width, 3 * config.width)
        self.mix_out = nn.Linear(config.width, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        # (batch, time, 3 * width) -> three of (batch, heads, time, width / heads)
        parts = self.mix_in(x).view(batch, time, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        seen = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, dropout_p=dropout
        )
        return self.mix_out(seen.transpose(1, 2).reshape(batch, time, width))


class Block(nn.Module):
    """Attention, then an MLP at each position; both add to the residual stream."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.network = nn.Sequential(
            nn.LayerNorm(config.width),
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.before_attention(x)))
        return x + self.dropout(self.network(x))


class GPT(nn.Module):
    """Scores for the next token at every position."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Embedding(config.block_size, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width)
        self.score = nn.Linear(config.width, config.vocabulary, bias=False)
        self.score.weight = self.token.weight
        self.apply(_start_small)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        passed = self.dropout(self.token(x) + self.position(places))
        return self.score(self.norm(self.blocks(passed)))

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Returns the mean cross-entropy of the targets `y`, in nats."""
        return functional.cross_entropy(self(x).flatten(0, 1), y.flatten())

    @torch.no_grad()
    def generate(self, start: torch.Tensor, count: int) -> torch.Tensor:
        """Returns `start`, of shape (batch, time), followed by `count` sampled tokens."""
        found = start
        for _ in range(count):
            scores = self(found[:, -self.config.block_size :])[:, -1]
            drawn = torch.multinomial(functional.softmax(scores, dim=-1), 1)
            found = torch.cat((found, drawn), dim=1)
        return found


def _start_small(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
