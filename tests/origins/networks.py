"""Models with a place in their middle where something can be planted.

Every model is called with the data and with one number per sample, `flaw`: 1 for samples that are all right, 0 for
those that the planted operation cannot bear.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

SAMPLES, FEATURES = 12, 16
Plant = Callable[[Tensor, Tensor], Tensor]


def nothing(h: Tensor, flaw: Tensor) -> Tensor:
    return h


class Chain(nn.Module):
    """Layers one behind the other; every block is five operations."""

    def __init__(self, plant: Plant = nothing, blocks: int = 12) -> None:
        super().__init__()
        self.plant = plant
        self.layers = nn.ModuleList(nn.Linear(FEATURES, FEATURES) for _ in range(blocks))
        self.head = nn.Linear(FEATURES, 3)

    def forward(self, x: Tensor, flaw: Tensor) -> Tensor:
        h = x
        for number, layer in enumerate(self.layers):
            h = functional.layer_norm(h + 0.5 * torch.tanh(layer(h)), (FEATURES,))
            if number == len(self.layers) // 2:
                h = self.plant(h, flaw)
        return self.head(h)


def long_chain(plant: Plant = nothing) -> Chain:
    """About a thousand operations."""
    return Chain(plant, blocks=198)


class Attention(nn.Module):
    """Attention by hand; the plant gets the scores, [samples, heads, places, places], or samples and heads in one."""

    def __init__(self, plant: Plant = nothing, merged: bool = False) -> None:
        super().__init__()
        self.plant, self.merged = plant, merged
        self.embed = nn.Linear(FEATURES, 4 * FEATURES)
        self.mix = nn.ModuleList(nn.Linear(FEATURES, 3 * FEATURES) for _ in range(2))
        self.head = nn.Linear(FEATURES, 3)

    def forward(self, x: Tensor, flaw: Tensor) -> Tensor:
        count = len(x)
        h = self.embed(x).reshape(count, 4, FEATURES)
        for mix in self.mix:
            query, key, value = (
                part.reshape(count, 4, 2, FEATURES // 2).transpose(1, 2) for part in mix(h).chunk(3, dim=-1)
            )
            if self.merged:
                query, key, value = (part.flatten(0, 1) for part in (query, key, value))
            scores = self.plant(query @ key.transpose(-1, -2) / FEATURES**0.5, flaw)
            mixed = torch.softmax(scores, -1) @ value
            h = h + mixed.reshape(count, 2, 4, FEATURES // 2).transpose(1, 2).reshape(count, 4, FEATURES)
        return self.head(h.mean(1))


def merged_attention(plant: Plant = nothing) -> Attention:
    return Attention(plant, merged=True)


class Recurrent(nn.Module):
    """A cell in a loop, with time as the first dimension; the plant gets the state at one time."""

    def __init__(self, plant: Plant = nothing, times: int = 40) -> None:
        super().__init__()
        self.plant, self.times = plant, times
        self.cell = nn.GRUCell(FEATURES, FEATURES)
        self.head = nn.Linear(FEATURES, 3)

    def forward(self, x: Tensor, flaw: Tensor) -> Tensor:
        inputs = torch.stack([x * (1 + time / self.times) for time in range(self.times)])
        state = torch.zeros_like(x)
        states = []
        for time in range(self.times):
            state = self.cell(inputs[time], state)
            if time == self.times // 2:
                state = self.plant(state, flaw)
            states.append(state)
        return self.head(torch.stack(states)[-3:].mean(0))


class Images(nn.Module):
    """Convolutions with residual connections; the plant gets [samples, channels, height, width]."""

    def __init__(self, plant: Plant = nothing) -> None:
        super().__init__()
        self.plant = plant
        self.first = nn.Conv2d(1, 6, 3, padding=1)
        self.second = nn.Conv2d(6, 6, 3, padding=1)
        self.third = nn.Conv2d(6, 6, 3, padding=1)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor, flaw: Tensor) -> Tensor:
        h = functional.gelu(self.first(x.reshape(len(x), 1, 4, 4)))
        h = h + functional.gelu(self.second(h))
        h = self.plant(h, flaw)
        h = h + functional.gelu(self.third(h))
        return self.head(h.mean((2, 3)))


class Words(nn.Module):
    """Embeddings of words; samples with the flaw contain word 7, others do not."""

    def __init__(self, plant: Plant = nothing) -> None:
        super().__init__()
        self.plant = plant
        self.embedding = nn.Embedding(40, FEATURES)
        self.layer = nn.Linear(FEATURES, FEATURES)
        self.head = nn.Linear(FEATURES, 3)

    def forward(self, x: Tensor, flaw: Tensor) -> Tensor:
        words = (x.abs() * 10).long().clamp(0, 31) + 8
        words = torch.where((flaw[:, None] == 0) & (torch.arange(FEATURES) == 5), 7, words)
        h = self.embedding(words)
        h = torch.relu(self.layer(self.plant(h, flaw)))
        return self.head(h.mean(1))


def batch(samples: tuple[int, ...], seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Data, flaws and targets; the given samples have the flaw."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(SAMPLES, FEATURES, generator=generator)
    flaw = torch.ones(SAMPLES)
    flaw[list(samples)] = 0.0
    return x, flaw, torch.randint(0, 3, (SAMPLES,), generator=generator)
