"""Networks whose graphs are laid out: chains with skips, a loop, two networks that meet, a choice of experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

UNBOUNDED = "GPT-2 with its cache"


@dataclass(frozen=True)
class Net:
    """A network, what goes into it, and how its loss is computed."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    loss: Callable[[Any], Tensor]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = [part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)]
        query, key, value = parts
        weights = torch.softmax(query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5, dim=-1)
        return self.proj((weights @ value).transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width, 4), Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, width: int = 32, depth: int = 6) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.cls, self.pos = nn.Parameter(torch.rand(1, 1, width)), nn.Parameter(torch.rand(1, 17, width))
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.relu = nn.ReLU()
        self.down = None
        if stride > 1 or before != after:
            self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(inner + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        sizes = [(8, 8, 1), (8, 16, 2), (16, 32, 2), (32, 64, 2)]
        for number, (before, after, stride) in enumerate(sizes, 1):
            self.add_module(f"layer{number}", nn.Sequential(Residual(before, after, stride), Residual(after, after, 1)))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        for number in range(1, 5):
            x = getattr(self, f"layer{number}")(x)
        return self.fc(self.pool(x).flatten(1))


def twice(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, 1, 1), nn.BatchNorm2d(after), nn.ReLU(),
        nn.Conv2d(after, after, 3, 1, 1), nn.BatchNorm2d(after), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [8, 16, 32, 64]
        self.down = nn.ModuleList([twice(b, a) for b, a in zip([3, *widths], widths, strict=False)])
        self.middle = twice(64, 64)
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for b, a in ((64, 64), (64, 64), (32, 32), (16, 16))])
        self.join = nn.ModuleList([twice(b, a) for b, a in ((128, 64), (96, 32), (48, 16), (24, 8))])
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for step in self.down:
            x = step(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join, skip in zip(self.up, self.join, reversed(kept), strict=True):
            x = join(torch.cat([up(x), skip], dim=1))
        return self.out(x)


class GruLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x.new_zeros(x.shape[1], 16)
        for step in x:
            hidden = self.cell(step, hidden)
        return self.head(hidden)


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(), nn.Linear(32, 1))

    def forward(self, noise: Tensor, real: Tensor) -> Tensor:
        return self.critic(self.generator(noise)) - self.critic(real)


class Experts(nn.Module):
    def __init__(self, width: int = 16, count: int = 6) -> None:
        super().__init__()
        self.embed, self.gate = nn.Linear(8, width), nn.Linear(width, count)
        self.experts = nn.ModuleList([Mlp(width) for _ in range(count)])
        self.head = nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.embed(x))
        shares = torch.softmax(self.gate(x), dim=-1).unbind(-1)
        parts = [share[:, None] * expert(x) for share, expert in zip(shares, self.experts, strict=True)]
        return self.head(torch.stack(parts).sum(0))


def gpt2(*, use_cache: bool) -> Net:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=12, n_head=4, n_embd=48, vocab_size=100, n_positions=32, use_cache=use_cache)
    config.bos_token_id = config.eos_token_id = 0
    ids = torch.randint(0, 100, (2, 8))
    return Net(GPT2LMHeadModel(config), (ids,), lambda out: F.cross_entropy(out.logits.flatten(0, 1), ids.flatten()))


def nets() -> dict[str, Callable[[], Net]]:
    """Name -> the network, made when it is asked for."""

    def classified(model: nn.Module, *inputs: Tensor) -> Net:
        return Net(model, inputs, lambda out: F.cross_entropy(out, torch.zeros(len(out), dtype=torch.long)))

    return {
        "ViT": lambda: classified(ViT(), torch.rand(4, 3, 16, 16)),
        "ResNet-18": lambda: classified(ResNet18(), torch.rand(2, 3, 32, 32)),
        "U-Net": lambda: Net(UNet(), (torch.rand(2, 3, 32, 32),), lambda out: out.square().mean()),
        "GPT-2": lambda: gpt2(use_cache=False),
        "GRU loop": lambda: classified(GruLoop(), torch.rand(12, 4, 8)),
        "GAN": lambda: Net(Gan(), (torch.rand(4, 8), torch.rand(4, 16)), lambda out: out.mean()),
        "experts": lambda: classified(Experts(), torch.rand(4, 8)),
        # Returns keys and values of every block, 24 outputs that nothing reads: shown, and not held against a bar.
        UNBOUNDED: lambda: gpt2(use_cache=True),
    }
