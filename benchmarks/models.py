"""The models every benchmark runs on, each with an input and the one layer that a partial capture keeps.

Only plain torch is imported here, so that the same file runs unchanged in a peer's own environment; the
GPT-2 shape needs ``transformers`` and loads it when it is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

RNN_STEPS = 200
TINY_OPS = 5000


class MLP(nn.Module):
    """Ten operations, two milliseconds of work: what is seen is mostly the fixed cost of a call."""

    def __init__(self, width: int = 512, hidden_layers: int = 4) -> None:
        super().__init__()
        hidden = [module for _ in range(hidden_layers) for module in (nn.Linear(width, width), nn.ReLU())]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, 10))

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.layers(x), dim=-1)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions, a shortcut, and one ReLU module called twice; with `in_place` as torchvision has it."""

    def __init__(self, channels_in: int, channels: int, stride: int, in_place: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.in_place = in_place
        self.relu = nn.ReLU(inplace=in_place)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels_in != channels:
            shortcut = nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out: Tensor = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        if self.in_place:
            out += identity
        else:
            out = out + identity
        out = self.relu(out)
        return out


class ResNet18(nn.Module):
    """ResNet-18 with the module names and initialisation of torchvision's.

    With `in_place` also its in-place ReLUs and additions: 25 values are overwritten, and a full trace must copy them.
    """

    def __init__(self, classes: int = 1000, in_place: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=in_place)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._stage(64, 64, 1, in_place)
        self.layer2 = self._stage(64, 128, 2, in_place)
        self.layer3 = self._stage(128, 256, 2, in_place)
        self.layer4 = self._stage(256, 512, 2, in_place)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @staticmethod
    def _stage(channels_in: int, channels: int, stride: int, in_place: bool) -> nn.Sequential:
        first = BasicBlock(channels_in, channels, stride, in_place)
        return nn.Sequential(first, BasicBlock(channels, channels, 1, in_place))

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.fc(torch.flatten(self.avgpool(x), 1))
        return x


class GatedCell(nn.Module):
    """One step of an LSTM written out: 16 operations, 2 of them with parameters that every step re-uses."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.from_input = nn.Linear(features, 4 * hidden)
        self.from_hidden = nn.Linear(hidden, 4 * hidden)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        n = self.hidden
        gates = self.from_input(x) + self.from_hidden(h)
        keep = gates[:, :n].sigmoid()
        write = gates[:, n : 2 * n].sigmoid()
        read = gates[:, 2 * n : 3 * n].sigmoid()
        c = keep * c + write * gates[:, 3 * n :].tanh()
        return read * c.tanh(), c


class HandWrittenRNN(nn.Module):
    """A Python loop over time: 17 operations a step, so small that torch needs a few µs for each."""

    def __init__(self, features: int = 16, hidden: int = 32) -> None:
        super().__init__()
        self.hidden = hidden
        self.cell = GatedCell(features, hidden)
        self.readout = nn.Linear(hidden, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.hidden)
        c = torch.zeros_like(h)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], h, c)
        return torch.log_softmax(self.readout(h), dim=-1)


class TinyOps(nn.Module):
    """The worst case for a tracer: 5,000 operations on 16 numbers, no parameters, no gradient."""

    def __init__(self, ops: int = TINY_OPS) -> None:
        super().__init__()
        self.rounds, rest = divmod(ops, 5)
        if rest:
            raise ValueError(f"TinyOps repeats five operations, so ops={ops} must be a multiple of 5")

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.rounds - 1):
            x = ((x + 1).relu() * 0.5 - 0.25).neg()
        # The last round has one operation of a type of its own, so that a capture can ask for just that one.
        return ((x + 1).sigmoid() * 0.5 - 0.25).neg()


def gpt2_small() -> nn.Module:
    """GPT-2 small's shape (12 layers, width 768, 12 heads, vocabulary 50,257) with random weights."""
    from transformers import GPT2Config, GPT2Model

    model: nn.Module = GPT2Model(GPT2Config())  # type: ignore[no-untyped-call]
    return model


@dataclass(frozen=True)
class Case:
    """A model to measure, how to feed it, and what a capture of one layer of it names."""

    name: str
    build: Callable[[], nn.Module]
    make_input: Callable[[], Tensor]
    one_layer: str  # a module path, or "type:" and the name of a function
    validated: bool = False  # validation is measured on this model as well
    many_ops: bool = False  # thousands of operations: seconds per call for a slow tracer

    def make(self, seed: int = 0) -> tuple[nn.Module, Tensor]:
        """The model in evaluation mode and its input, the same numbers on every call."""
        torch.manual_seed(seed)
        return self.build().eval(), self.make_input()


def _images(batch: int) -> Tensor:
    return torch.randn(batch, 3, 224, 224)


def _tokens() -> Tensor:
    return torch.randint(0, 50257, (1, 64))


def _in_place_resnet() -> nn.Module:
    return ResNet18(in_place=True)


CASES: tuple[Case, ...] = (
    Case("MLP", MLP, lambda: torch.randn(64, 512), "layers.4", validated=True),
    Case("ResNet-18 batch 1", ResNet18, lambda: _images(1), "layer4.1.conv2", validated=True),
    Case("ResNet-18 batch 8", ResNet18, lambda: _images(8), "layer4.1.conv2"),
    Case("ResNet-18 in place, batch 1", _in_place_resnet, lambda: _images(1), "layer4.1.conv2"),
    Case("ResNet-18 in place, batch 8", _in_place_resnet, lambda: _images(8), "layer4.1.conv2"),
    Case("RNN 200 steps", HandWrittenRNN, lambda: torch.randn(4, RNN_STEPS, 16), "readout", many_ops=True),
    Case("5,000 tiny ops", TinyOps, lambda: torch.randn(4, 4), "type:sigmoid", many_ops=True),
    # Last, because importing transformers makes every later garbage collection several times dearer.
    Case("GPT-2 shape 64 tokens", gpt2_small, _tokens, "h.11.mlp.c_proj"),
)


def select(names: str | None) -> tuple[Case, ...]:
    """The cases whose name contains one of the comma-separated words; all of them without any word."""
    if not names:
        return CASES
    words = [word.strip().lower() for word in names.split(",")]
    chosen = tuple(case for case in CASES if any(word in case.name.lower() for word in words))
    if not chosen:
        raise SystemExit(f"no model is called {names!r}; there are: {', '.join(c.name for c in CASES)}")
    return chosen
