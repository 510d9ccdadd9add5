"""A recurrent network that reads one number of each sequence at a time, and says after each what it thinks."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from endoscope.demo.task import SEQUENCES


class Network(nn.Module):
    """Numbers [sample, position, sequence] ─► probability that the sum up to this position is positive, same shape.

    reader ─► memory (carried on from position to position) ─► answer ─► probability
    """

    def __init__(self, width: int, *, activate_last: bool) -> None:
        super().__init__()
        self.width = width
        self.reader = nn.Linear(SEQUENCES, width)
        self.memory = nn.GRUCell(width, width)
        self.answer = dense(width, width, SEQUENCES, activate_last=activate_last)
        self.probability = nn.Sigmoid()

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(len(numbers), self.width)
        said = []
        for number in numbers.unbind(dim=1):
            state = self.memory(self.reader(number), state)
            said.append(self.probability(self.answer(state)))
        return torch.stack(said, dim=1)


def dense(*sizes: int, activate_last: bool) -> nn.Sequential:
    """Linear layers with a leaky ReLU behind each of them; behind the last one only if asked for.

    Behind the last one it is a mistake, and it is the bug of the demo: it makes negative numbers a tenth as large, and
    the sigmoid that follows needs them to say "no". The network can still learn, with numbers ten times as large.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    last = len(sizes) - 1
    for number in range(1, len(sizes)):
        layers[f"linear_{number}"] = nn.Linear(sizes[number - 1], sizes[number])
        if number < last or activate_last:
            layers[f"leaky_relu_{number}"] = nn.LeakyReLU(0.1)
    return nn.Sequential(layers)
