"""Small hand-written networks that the tests share.

Each one exists for one property (named in its docstring) and runs in well under a millisecond, so that a
test can trace it, prove it and take it apart many times. Inputs are 5 features wide unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DemoNetwork(nn.Module):
    """A bit of everything in eight lines: modules, functions, noise made inside, a buffer, a division."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(in_features=5, out_features=5)
        self.relu_module = nn.ReLU()
        self.example_buffer: Tensor
        self.register_buffer("example_buffer", torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        x = self.relu_module(x)
        x = self.fc(x)
        x = nn.functional.relu(x)
        x = x + torch.randn(x.shape)
        y = x**2
        x = x / y
        x = x * self.example_buffer
        return x


DEMO_LABELS = [
    "input_1_0", "add_1_1", "relu_1_2", "linear_1_3", "relu_2_4", "randn_1_5", "add_2_6", "pow_1_7",
    "div_1_8", "mul_1_9", "output_1_10",
]  # fmt: skip


class RecurrentNetwork(nn.Module):
    """One linear layer used three times with a parameter-free operation after each use."""

    def __init__(self, steps: int = 3) -> None:
        super().__init__()
        self.steps = steps
        self.fc = nn.Linear(in_features=5, out_features=5)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            x = self.fc(x)
            x = x * 2
        return x


class InnerTrigonometry(nn.Module):
    """The inner of two nested modules: branches that meet again."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + 2
        w = torch.cos(x)
        y = torch.sin(x)
        z = torch.tan(x)
        return w + y + z


class OuterModule(nn.Module):
    """Holds `submodule2` and does something before and after it."""

    def __init__(self) -> None:
        super().__init__()
        self.submodule2 = InnerTrigonometry()

    def forward(self, x: Tensor) -> Tensor:
        x = x + 3
        x = self.submodule2(x)
        x = x * 4
        return x


class OrganizedNetwork(nn.Module):
    """Nested modules, branching, and an `if` that a tensor decides."""

    def __init__(self) -> None:
        super().__init__()
        self.submodule1 = OuterModule()

    def forward(self, x: Tensor) -> Tensor:
        x = x * 2 if torch.sum(x) > 0 else x + 1
        y = torch.log(x)
        z = x**2
        x = y + z
        x = self.submodule1(x)
        x = x + 1
        return x * 2


class Mlp(nn.Module):
    """Two linear layers and one activation, no randomness: the cleanest model there is."""

    def __init__(self, width: int = 5, hidden: int = 7) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x)))


class ConvNet(nn.Module):
    """AlexNet in miniature: `features` and `classifier`, each a Sequential. Input: (n, 1, 8, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(3, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Linear(16, 6), nn.ReLU(), nn.Linear(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.features(x), 1))


class Residual(nn.Module):
    """A branch that skips a layer and is added back, normalised by batch statistics (buffers move)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.fc = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.relu(self.fc(self.norm(x)))


class InplaceResidual(nn.Module):
    """The same idea with every shortcut people take: `+=` and an in-place activation, still trainable."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 5)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        y += x
        return self.act(y)


class Noisy(nn.Module):
    """Stochastic in three ways: dropout, a factory, and an in-place random fill."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.fc(x)) + torch.rand(5)
        return x * torch.empty(5).uniform_()


class NoiseInside(nn.Module):
    """A module that makes a tensor of its own: its factory belongs to it although nothing flowed in."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.ones(5)


class HoldsNoise(nn.Module):
    """`NoiseInside`, one level down."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.ModuleDict({"noise": NoiseInside()})

    def forward(self, x: Tensor) -> Tensor:
        return self.block["noise"](x)


class SharedActivation(nn.Module):
    """One parameter-free module called twice: two layers, two passes of the module."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.second = nn.Linear(5, 5)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.second(self.act(self.first(x))))


class TiedEmbedding(nn.Module):
    """One matrix read by two different functions, as language models do. Input: token ids below 6."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.embed(ids))


class TwoInputs(nn.Module):
    """Two tensors and an option; divides, so that the order of the arguments matters."""

    def forward(self, a: Tensor, b: Tensor, scale: float = 1.0) -> Tensor:
        return a / b * scale


class SumOfList(nn.Module):
    """Takes one list (or tuple, or dict) of tensors as a single argument and remembers its type."""

    seen: type | None = None

    def forward(self, items: list[Tensor] | tuple[Tensor, ...] | dict[str, Tensor]) -> Tensor:
        self.seen = type(items)
        values = list(items.values()) if isinstance(items, dict) else list(items)
        return torch.stack(values).sum(0)


class Pair(NamedTuple):
    """A NamedTuple of tensors."""

    left: Tensor
    right: Tensor


@dataclass
class Prediction:
    """A dataclass of tensors with something nested inside."""

    score: Tensor
    extras: dict[str, list[Tensor]]


class NestedOutputs(nn.Module):
    """Returns a dataclass that holds a dict that holds a list, and a NamedTuple beside it."""

    def forward(self, x: Tensor) -> dict[str, Prediction | Pair]:
        return {
            "best": Prediction(score=x.sum(), extras={"parts": [x * 2, x + 1]}),
            "pair": Pair(left=x.exp(), right=x.neg()),
        }


class ThroughView(nn.Module):
    """Writes through a view and reads the whole: the edge that is easily lost."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        v = y[0]
        v.add_(10)
        return y.sum()


class Fails(nn.Module):
    """Does two operations in `fc` and then raises the exception it was given."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 5)
        self.error = error

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sigmoid(self.fc(x))
        raise self.error


class ReturnsGenerator(nn.Module):
    """Returns work that has not been done yet."""

    def forward(self, x: Tensor) -> Iterator[Tensor]:
        return (x * factor for factor in (1.0, 2.0, 3.0))


class AttentionBlock(nn.Module):
    """`nn.MultiheadAttention` with its weights returned, so that the softmax is really computed.

    Input: (batch, length, 8).
    """

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        mixed, weights = self.attention(x, x, x, need_weights=True)
        return mixed * weights.sum()


def scaled_sum(a: Tensor, b: Tensor) -> Tensor:
    """A plain function: no module anywhere."""
    return (a + b) * 3
