"""The modules of the nine nets of the zoo that the recorder was designed on. Only plain torch is imported here."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES = 10
VOCABULARY = 512


def bare_mlp(width: int = 512, layers: int = 4) -> nn.Sequential:
    """Linear and ReLU, nothing else."""
    hidden = [module for _ in range(layers) for module in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, CLASSES))


def dressed_mlp(width: int = 512, layers: int = 4) -> nn.Sequential:
    """The same with normalisation, a smooth activation and dropout."""
    hidden: list[nn.Module] = []
    for _ in range(layers):
        hidden += [nn.Linear(width, width), nn.BatchNorm1d(width), nn.GELU(), nn.Dropout(0.1)]
    return nn.Sequential(*hidden, nn.Linear(width, CLASSES))


def convolutions() -> nn.Sequential:
    """Three blocks, each of which writes into the result of its normalisation."""
    blocks: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 128)):
        blocks += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
        blocks.append(nn.MaxPool2d(2))
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(128 * 4 * 4, CLASSES))


def two_linear() -> nn.Sequential:
    """A step of a fraction of a millisecond: what is seen is the fixed price of a recorder."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))


class LongMemory(nn.Module):
    """Embedding, two layers of LSTM, a head for every token."""

    def __init__(self, width: int = 128, hidden: int = 256) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.lstm(self.embed(tokens))
        logits: Tensor = self.head(states)
        return logits


class Encoder(nn.Module):
    """`nn.TransformerEncoder` as it comes, between an embedding and a head."""

    def __init__(self, width: int = 256, layers: int = 4, tokens: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.position = nn.Parameter(0.02 * torch.randn(tokens, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.encoder(self.embed(tokens) + self.position))
        return logits


def small_gpt2() -> nn.Module:
    """GPT-2 of transformers, 6 layers of width 192, with dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    ends = {"bos_token_id": 0, "eos_token_id": 0, "loss_type": "ForCausalLMLoss"}
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=192, n_layer=6, n_head=6, **ends)
    model: nn.Module = GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]
    return model


class TwoConvolutions(nn.Module):
    """A block of the U-Net; its activations are functions, not modules."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, padding=1)
        self.second = nn.Conv2d(after, after, 3, padding=1)
        self.norm = nn.GroupNorm(4, after)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(self.second(functional.relu(self.first(x)))))


class UNet(nn.Module):
    """Down and up again, with functional pooling, upsampling and concatenation."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.down1 = TwoConvolutions(3, width)
        self.down2 = TwoConvolutions(width, 2 * width)
        self.middle = TwoConvolutions(2 * width, 4 * width)
        self.up2 = TwoConvolutions(6 * width, 2 * width)
        self.up1 = TwoConvolutions(3 * width, width)
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        deep = self.middle(functional.max_pool2d(second, 2))
        second = self.up2(torch.cat([functional.interpolate(deep, scale_factor=2.0), second], 1))
        first = self.up1(torch.cat([functional.interpolate(second, scale_factor=2.0), first], 1))
        logits: Tensor = self.head(first)
        return logits
