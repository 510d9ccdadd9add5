"""What the tests of the page of a trace look at: a ResNet, a GPT-2, a loop with a branch, ten thousand operations."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import endoscope
from endoscope.capture.views.result import Trace


class Gated(nn.Module):
    """A cell in a loop, a branch, a value that leaves torch, and a result of two parts."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.out = nn.Linear(4, 8), nn.GRUCell(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(x.shape[1], 8)
        for moment in range(len(x)):
            h = self.cell(torch.relu(self.embed(x[moment])), h)
        if h.abs().mean() > 0:
            h = h * 2  # the branch that runs
        scale = h.max().item()
        best, places = self.out(h / scale).max(dim=1)
        return best, places


class BasicBlock(nn.Module):
    """Of a ResNet; its ReLU is called twice, and the sum is made in place."""

    def __init__(self, width: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Conv2d(width, out, 1, stride, bias=False) if width != out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.shortcut(x)
        return self.relu(y)


class ResNet18(nn.Module):
    """With few channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        widths = ((8, 8, 1), (8, 16, 2), (16, 32, 2), (32, 64, 2))
        self.layers = nn.Sequential(*(
            nn.Sequential(BasicBlock(width, out, stride), BasicBlock(out, out)) for width, out, stride in widths
        ))  # fmt: skip
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.relu(self.bn1(self.conv1(x))))
        return self.fc(self.pool(x).flatten(1))


class Step(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.one, self.two = nn.LayerNorm(4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.two(torch.relu(self.one(self.norm(x)))) * 0.5
        h = torch.tanh((h + 1) * 2)
        return x + (h - h.mean())


class Deep(nn.Module):
    """Eleven operations for each step."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = nn.ModuleList(Step() for _ in range(steps))

    def forward(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x = step(x)
        return x


def gated() -> Trace:
    torch.manual_seed(0)
    trace = endoscope.trace(Gated(), torch.randn(6, 5, 4), gradients=True)
    trace.result[0].sum().backward()
    return trace


def resnet() -> Trace:
    torch.manual_seed(0)
    return endoscope.trace(ResNet18().eval(), torch.rand(2, 3, 16, 16))


def gpt2() -> Trace:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    ends = {"bos_token_id": 0, "eos_token_id": 1}
    config = GPT2Config(n_layer=6, n_embd=32, n_head=4, vocab_size=50, n_positions=16, **ends)
    model = GPT2LMHeadModel(config).eval()
    return endoscope.trace(model, {"input_ids": torch.randint(0, 50, (2, 8)), "use_cache": False})


def deep(steps: int = 910) -> Trace:
    torch.manual_seed(0)
    return endoscope.trace(Deep(steps), torch.randn(2, 4))
