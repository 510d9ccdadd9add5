"""The modules of the other nets of the zoo: what people write that no recorder was made for. Only plain torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from zoo_nets import CLASSES, VOCABULARY


class Functional(nn.Module):
    """No submodule at all: parameters of its own and functions."""

    def __init__(self, width: int = 384, layers: int = 4) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(width, width) / width**0.5) for _ in range(layers))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(layers))
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(width)) for _ in range(layers))
        self.head = nn.Parameter(torch.randn(CLASSES, width) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        for weight, bias, scale in zip(self.weights, self.biases, self.scales, strict=True):
            hidden = functional.linear(functional.layer_norm(x, x.shape[-1:], scale), weight, bias)
            x = x + functional.dropout(functional.gelu(hidden), 0.1, self.training)
        return functional.linear(x, self.head)


class Experts(nn.Module):
    """Each sample goes to the expert that a gate chooses; experts without a sample are not called."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(-1)
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows, None])
        return x + out


def mixture(width: int = 256) -> nn.Sequential:
    """Two layers of experts."""
    return nn.Sequential(
        nn.Linear(64, width), Experts(width, 16), nn.LayerNorm(width), Experts(width, 16), nn.Linear(width, CLASSES)
    )


class Siamese(nn.Module):
    """One encoder called twice, and a head that shares its weight with the encoder's first layer."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(128, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width), nn.Tanh()
        )
        self.decoder = nn.Linear(width, 128)
        self.tied = nn.Linear(128, width)
        self.tied.weight = self.encoder[0].weight

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        a, b = self.encoder(left), self.encoder(right)
        return functional.cosine_similarity(a, b), self.tied(self.decoder(a - b))


class Heads(nn.Module):
    """Returns a dictionary with a result for each of its tasks."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        layers = [module for _ in range(3) for module in (nn.Linear(width, width), nn.SiLU(), nn.LayerNorm(width))]
        self.trunk = nn.Sequential(*layers)
        self.classes = nn.Linear(width, CLASSES)
        self.value = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        shared = self.trunk(x)
        return {"classes": self.classes(shared), "value": self.value(shared).squeeze(-1), "shared": shared}


class Attention(nn.Module):
    """Written by hand, with a softmax that can be seen."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        query, key, value = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5, dim=-1)
        out: Tensor = self.project((weights @ value).transpose(1, 2).reshape(batch, tokens, width))
        return out


class VisionBlock(nn.Module):
    """Attention and a feed-forward network, each normalised before and added after."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class Vision(nn.Module):
    """A small ViT on 32 × 32."""

    def __init__(self, width: int = 128, layers: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.position = nn.Parameter(0.02 * torch.randn(64, width))
        self.blocks = nn.Sequential(*[VisionBlock(width, 4) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        logits: Tensor = self.head(self.norm(self.blocks(x)).mean(1))
        return logits


class Recurrent(nn.Module):
    """A cell called in a Python loop, some arithmetic between its calls."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.cell = nn.GRUCell(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = self.embed(tokens)
        state = torch.zeros_like(embedded[:, 0])
        states = []
        for place in range(tokens.shape[1]):
            state = self.norm(self.cell(embedded[:, place], state)) + 0.1 * state
            states.append(state)
        logits: Tensor = self.head(torch.stack(states, 1))
        return logits


NOISE = 32  # numbers that a fake picture is made of


def generator(width: int = 32) -> nn.Sequential:
    """From noise to a picture of 16 × 16, with ReLU in place."""
    return nn.Sequential(
        nn.Linear(NOISE, 4 * width * 16), nn.Unflatten(1, (4 * width, 4, 4)),
        nn.ConvTranspose2d(4 * width, 2 * width, 4, stride=2, padding=1), nn.BatchNorm2d(2 * width),
        nn.ReLU(inplace=True), nn.ConvTranspose2d(2 * width, 3, 4, stride=2, padding=1), nn.Tanh(),
    )  # fmt: skip


def critic(width: int = 32) -> nn.Sequential:
    """From a picture to one number."""
    return nn.Sequential(
        nn.Conv2d(3, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, 4 * width, 4, stride=2, padding=1), nn.BatchNorm2d(4 * width),
        nn.LeakyReLU(0.2, inplace=True), nn.Flatten(), nn.Linear(4 * width * 16, 1),
    )  # fmt: skip
