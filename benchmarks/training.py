"""Two networks with the training step that every side repeats: for Comgra, memory, start-up, disk and statistics.

Only plain torch is imported here, so that the same file runs unchanged in a peer's own environment.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

BATCHES = 64  # of the data: too many samples with random targets to be learned by heart in a benchmark
TOKENS = 64
VOCABULARY = 256  # bytes


class Classifier(nn.Module):
    """Four hidden layers of 512 units: little arithmetic for many parameters, so what a recorder adds is seen."""

    def __init__(self, width: int = 512, hidden_layers: int = 4, classes: int = 10) -> None:
        super().__init__()
        hidden = [module for _ in range(hidden_layers) for module in (nn.Linear(width, width), nn.ReLU())]
        self.layers = nn.Sequential(*hidden)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layers(x))
        return logits


class Block(nn.Module):
    """Attention and a feed-forward network, each normalised before and added after."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU()
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.project(self._attend(self.qkv(self.norm1(x))))
        out: Tensor = x + self.down(self.gelu(self.up(self.norm2(x))))
        return out

    def _attend(self, qkv: Tensor) -> Tensor:
        batch, tokens, _ = qkv.shape
        query, key, value = qkv.view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return heads.transpose(1, 2).reshape(batch, tokens, -1)


class Transformer(nn.Module):
    """A language model over bytes, four layers."""

    def __init__(self, width: int = 256, tokens: int = TOKENS, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.position = nn.Parameter(0.02 * torch.randn(tokens, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(self.blocks(self.embed(tokens) + self.position)))
        return logits


class Training:
    """A model, its optimizer and data with a batch for every step.

    One batch that is learned again and again is known by heart after thirty steps: the loss is zero, gradients fade to
    subnormal numbers, and what is timed then is no training.
    """

    def __init__(self, model: nn.Module, inputs: Tensor, targets: Tensor, batch: int) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self._batches = itertools.cycle(list(zip(inputs.split(batch), targets.split(batch), strict=True)))
        self.inputs, self.targets = next(self._batches)

    def loss(self) -> Tensor:
        logits: Tensor = self.model(self.inputs)
        return functional.cross_entropy(logits.flatten(0, -2), self.targets.flatten())

    def update(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.inputs, self.targets = next(self._batches)

    def step(self) -> None:
        self.loss().backward()
        self.update()


@dataclass(frozen=True)
class TrainingCase:
    """What is trained, and for how many steps in a row one sample of the clock lasts."""

    name: str
    build: Callable[[], nn.Module]
    make_data: Callable[[int], tuple[Tensor, Tensor]]
    batch: int
    steps: int  # in a sample of recorded steps: enough for the writer's work to meet the next steps

    def make(self) -> Training:
        """Model, optimizer and data, the same numbers on every call."""
        torch.manual_seed(0)
        return Training(self.build(), *self.make_data(BATCHES * self.batch), self.batch)


def _features(samples: int, width: int) -> tuple[Tensor, Tensor]:
    return torch.randn(samples, width), torch.randint(0, 10, (samples,))


def _texts(samples: int, tokens: int) -> tuple[Tensor, Tensor]:
    texts = torch.randint(0, VOCABULARY, (samples, tokens + 1))
    return texts[:, :-1], texts[:, 1:]


CASES = (
    TrainingCase(
        "MLP",
        Classifier,
        lambda samples: _features(samples, 512),
        batch=128,
        steps=10,
    ),
    TrainingCase(
        "transformer",
        Transformer,
        lambda samples: _texts(samples, TOKENS),
        batch=16,
        steps=3,
    ),
)


def select(names: str | None) -> tuple[TrainingCase, ...]:
    """The cases whose name contains one of the comma-separated words; all of them without any word."""
    words = [word.strip().lower() for word in (names or "").split(",")]
    chosen = tuple(case for case in CASES if any(word in case.name.lower() for word in words))
    if not chosen:
        raise SystemExit(f"no model is called {names!r}; there are: {', '.join(case.name for case in CASES)}")
    return chosen
