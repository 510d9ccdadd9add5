"""Small networks whose modules have names that can be pointed at."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn


def chain(**modules: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(modules))


def mlp(inputs: int = 64, width: int = 64, outputs: int = 10, activation: Any = nn.ReLU) -> nn.Sequential:
    return chain(
        first=nn.Linear(inputs, width),
        act1=activation(),
        second=nn.Linear(width, width),
        act2=activation(),
        last=nn.Linear(width, outputs),
    )


def deep(depth: int, activation: Any, width: int = 32, inputs: int = 64, outputs: int = 10) -> nn.Sequential:
    """Layers `in`, `layer1` … and `last`, an activation after each but the last."""
    parts: dict[str, nn.Module] = {"first": nn.Linear(inputs, width), "act0": activation()}
    for number in range(1, depth):
        parts[f"layer{number}"] = nn.Linear(width, width)
        parts[f"act{number}"] = activation()
    return chain(**parts, last=nn.Linear(width, outputs))


def cnn(channels: int = 8, outputs: int = 10, norm: Any = nn.Identity) -> nn.Sequential:
    return chain(
        conv1=nn.Conv2d(1, channels, 3, padding=1),
        norm1=norm(channels),
        relu1=nn.ReLU(),
        pool=nn.MaxPool2d(2),
        conv2=nn.Conv2d(channels, 2 * channels, 3, padding=1),
        norm2=norm(2 * channels),
        relu2=nn.ReLU(),
        flat=nn.Flatten(),
        head=nn.Linear(2 * channels * 16, outputs),
    )


def autoencoder(code: int = 16, activation: Any = nn.ReLU) -> nn.Sequential:
    return chain(
        encoder=nn.Linear(64, 48),
        act1=activation(),
        code=nn.Linear(48, code),
        decoder=nn.Linear(code, 48),
        act2=activation(),
        out=nn.Linear(48, 64),
    )


class Rnn(nn.Module):
    """Reads a picture row by row, again and again until `length` rows were read, with one cell."""

    def __init__(self, width: int = 32, length: int = 8, activation: Any = nn.Tanh) -> None:
        super().__init__()
        self.width, self.length = width, length
        self.read = nn.Linear(8, width)
        self.recur = nn.Linear(width, width)
        self.act = activation()
        self.head = nn.Linear(width, 10)

    def forward(self, rows: Tensor) -> Tensor:
        state = rows.new_zeros(rows.shape[0], self.width)
        for t in range(self.length):
            state = self.act(self.read(rows[:, t % rows.shape[1]]) + self.recur(state))
        return self.head(state)


class Recurrent(nn.Module):
    """A recurrent layer of torch, and a head on its last state."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.rnn = layer
        self.head = nn.Linear(width, 10)

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.rnn(rows)[0][:, -1])


class Attention(nn.Module):
    """One head; `softmax` is a module, so that its output is a node."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.softmax = nn.Softmax(-1)
        self.mix = nn.Linear(width, width)
        self.factor = width**-0.5

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(1, 2) * self.factor
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        return self.mix(self.softmax(scores) @ self.value(x))


class Block(nn.Module):
    def __init__(self, width: int, norm: Any = nn.LayerNorm) -> None:
        super().__init__()
        self.norm1, self.attention = norm(width), Attention(width)
        self.norm2 = norm(width)
        self.feed = chain(up=nn.Linear(width, 2 * width), act=nn.GELU(), down=nn.Linear(2 * width, width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.feed(self.norm2(x))


class Transformer(nn.Module):
    """The eight rows of a picture are eight tokens."""

    def __init__(self, width: int = 32, blocks: int = 2, norm: Any = nn.LayerNorm) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.place = nn.Parameter(0.1 * torch.randn(8, width))
        self.blocks = nn.ModuleList(Block(width, norm) for _ in range(blocks))
        self.norm = norm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, rows: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.embed(rows) + self.place
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x).mean(1))


class Residual(nn.Module):
    """Linear, then blocks `x + branch(x)`, then a head."""

    def __init__(self, width: int = 48, blocks: int = 2) -> None:
        super().__init__()
        self.first = nn.Linear(64, width)
        self.branches = nn.ModuleList(
            chain(up=nn.Linear(width, width), act=nn.ReLU(), down=nn.Linear(width, width)) for _ in range(blocks)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for branch in self.branches:
            x = x + branch(x)
        return self.head(x)


def generator(noise: int = 4, last: Any = nn.Identity) -> nn.Sequential:
    return chain(first=nn.Linear(noise, 32), act=nn.ReLU(), out=nn.Linear(32, 2), last=last())


def critic() -> nn.Sequential:
    return chain(first=nn.Linear(2, 32), act=nn.LeakyReLU(0.2), out=nn.Linear(32, 1))


class Function(nn.Module):
    """A function as a module, so that what it returns is a node."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)
