"""The networks of the picture gallery: small ones written here, known ones built from their configuration.

Every function returns a model in eval mode and the inputs of one forward pass. Nothing is downloaded. Where the model
allows it, it is built on the `meta` device, in its full size and without any memory.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a forgotten download should fail at once

Example = tuple[nn.Module, Any]


# ---- the three examples of the TorchLens poster ----------------------------------------------------------------------


class DemoNetwork(nn.Module):
    """A bit of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(in_features=5, out_features=5)
        self.relu_module = nn.ReLU()
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


class RecurrentNetwork(nn.Module):
    """One layer, three times."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(in_features=5, out_features=5)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.fc(x)
            x = x + 1
            x = x * 2
        return x


class Submodule2(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 2
        w = torch.cos(x)
        y = torch.sin(x)
        z = torch.tan(x)
        return w + y + z


class Submodule1(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.submodule2 = Submodule2()

    def forward(self, x: Tensor) -> Tensor:
        x = x + 3
        x = self.submodule2(x)
        return x * 4


class NetworkOrganizationDemo(nn.Module):
    """Modules in modules, branches, and an `if` that a tensor decides."""

    def __init__(self) -> None:
        super().__init__()
        self.submodule1 = Submodule1()

    def forward(self, x: Tensor) -> Tensor:
        if torch.sum(x) > 0:
            x = x * 2
        else:
            x = x + 1
        w = 1 / x
        y = torch.log(x)
        z = x**2
        x = w + y + z
        x = self.submodule1(x)
        x = x + 1
        return x * 2


def demo() -> Example:
    return DemoNetwork(), torch.rand(5, 5)


def recurrent() -> Example:
    return RecurrentNetwork(), torch.rand(5, 5)


def organization() -> Example:
    return NetworkOrganizationDemo(), torch.rand(5, 5)


# ---- convolutions ----------------------------------------------------------------------------------------------------


class BasicBlock(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, width: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or width != out:
            self.downsample = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        x += identity
        return self.relu(x)


class ResNet(nn.Module):
    """ResNet-18."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = (64, 64, 128, 256, 512)
        for number, (width, out) in enumerate(itertools.pairwise(widths), 1):
            stage = nn.Sequential(BasicBlock(width, out, 1 if number == 1 else 2), BasicBlock(out, out))
            setattr(self, f"layer{number}", stage)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class DoubleConv(nn.Sequential):
    def __init__(self, width: int, out: int) -> None:
        super().__init__(nn.Conv2d(width, out, 3, padding=1), nn.ReLU(), nn.Conv2d(out, out, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    """Down, up, and across."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256)) -> None:
        super().__init__()
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip((3, *widths), widths, strict=False))
        self.bottom = DoubleConv(widths[-1], widths[-1] * 2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(w * 2, w, 2, 2) for w in reversed(widths))
        self.merge = nn.ModuleList(DoubleConv(w * 2, w) for w in reversed(widths))
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, block in zip(self.up, self.merge, strict=True):
            x = block(torch.cat([kept.pop(), up(x)], dim=1))
        return self.head(x)


def resnet18() -> Example:
    return _without_memory(ResNet, lambda: torch.zeros(1, 3, 224, 224))


def unet() -> Example:
    return _without_memory(UNet, lambda: torch.zeros(1, 3, 64, 64))


# ---- recurrence and re-use -------------------------------------------------------------------------------------------


class HandWrittenLstm(nn.Module):
    """The gates of an LSTM, step by step."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.width = width
        self.gates = nn.Linear(2 * width, 4 * width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = c = torch.zeros(x.shape[0], self.width)
        for t in range(x.shape[1]):
            i, f, g, o = self.gates(torch.cat([x[:, t], h], dim=1)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(h)


class Siamese(nn.Module):
    """One encoder, two pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 13 * 13, 32)
        )

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return F.cosine_similarity(self.encoder(left), self.encoder(right))


def lstm() -> Example:
    return HandWrittenLstm(), torch.rand(2, 20, 16)


def siamese() -> Example:
    return Siamese(), (torch.rand(4, 1, 28, 28), torch.rand(4, 1, 28, 28))


# ---- models of `transformers` ----------------------------------------------------------------------------------------


def _without_memory(make: Callable[[], nn.Module], inputs: Callable[[], Any]) -> Example:
    with torch.device("meta"):
        return make().eval(), inputs()


def _tokens(length: int) -> Tensor:
    return torch.zeros(1, length, dtype=torch.long)


def gpt2() -> Example:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False)).eval(), {"input_ids": _tokens(16)}


def bert() -> Example:
    from transformers import BertConfig, BertModel

    return _without_memory(lambda: BertModel(BertConfig()), lambda: {"input_ids": _tokens(16)})


def vit() -> Example:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(num_labels=1000)
    return _without_memory(
        lambda: ViTForImageClassification(config), lambda: {"pixel_values": torch.zeros(1, 3, 224, 224)}
    )


def t5() -> Example:
    from transformers import T5Config, T5ForConditionalGeneration

    return _without_memory(
        lambda: T5ForConditionalGeneration(T5Config(use_cache=False)),
        lambda: {"input_ids": _tokens(16), "decoder_input_ids": _tokens(4)},
    )


def whisper() -> Example:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    inputs = {"input_features": torch.zeros(1, 80, 3000), "decoder_input_ids": _tokens(4)}
    return WhisperForConditionalGeneration(WhisperConfig(use_cache=False)).eval(), inputs


def mamba() -> Example:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(num_hidden_layers=24, use_cache=False)
    return _without_memory(lambda: MambaForCausalLM(config), lambda: {"input_ids": _tokens(4)})


def mixtral() -> Example:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        num_hidden_layers=4, hidden_size=64, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=1000, use_cache=False,
    )  # fmt: skip
    return MixtralForCausalLM(config).eval(), {"input_ids": _tokens(16)}
