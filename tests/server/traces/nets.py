"""Small networks with everything that the page of a trace shows."""

from __future__ import annotations

import torch
from torch import nn

import endoscope
from endoscope.capture.views.result import Trace


class Loop(nn.Module):
    """A cell that runs several times, and a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.out = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x + self.cell(x)
        if x.sum() > -1e9:
            x = x * 2
        return self.out(x)


class Block(nn.Module):
    """Its ReLU is called twice."""

    def __init__(self, dilation: int = 1) -> None:
        super().__init__()
        self.one = nn.Conv1d(4, 4, 3, padding=dilation, dilation=dilation)
        self.two = nn.Conv1d(4, 4, 3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(x + self.two(self.relu(self.one(x))))


class Blocks(nn.Module):
    """Blocks in a list that is never called, and a weight that nobody reads."""

    def __init__(self, *dilations: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(dilation) for dilation in dilations)
        self.unused = nn.Parameter(torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def loop(**more: object) -> Trace:
    torch.manual_seed(0)
    return endoscope.trace(Loop(), torch.rand(5, 4), **more)  # type: ignore[arg-type]


def blocks(*dilations: int) -> Trace:
    torch.manual_seed(0)
    return endoscope.trace(Blocks(*dilations), torch.rand(2, 4, 16))
