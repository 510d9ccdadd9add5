"""Thirty places where one sample becomes unusual, with finite numbers. The guilty line ends in `# here`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tests.origins import networks
from tests.origins.networks import FEATURES, SAMPLES

Network = Callable[[Callable[[Tensor, Tensor], Tensor]], nn.Module]


@dataclass(frozen=True)
class Outlier:
    """One planted outlier."""

    name: str
    operation: str
    node: str  # of a recording: the first recorded node that shows it
    sample: int
    make: Callable[[], nn.Module]
    plant: Callable[..., Tensor]
    spoil: Callable[[Tensor, int], Tensor] | None = None

    @property
    def line(self) -> int:
        lines, first = inspect.getsourcelines(self.plant)
        return next((first + number for number, line in enumerate(lines) if "# here" in line), 0)

    def data(self, bad: bool = True, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        x, flaw, target = networks.batch((), seed)
        return (self.spoil(x, self.sample) if bad and self.spoil else x), flaw, target


class Switch:
    """Calls a plant for one sample, while it is on."""

    def __init__(self, plant: Callable[[Tensor, Tensor], Tensor], sample: int) -> None:
        self.plant, self.sample, self.on = plant, sample, True

    def __call__(self, h: Tensor, flaw: Tensor) -> Tensor:
        if not self.on:
            return h
        repeats = len(h) // SAMPLES  # heads that are merged with the samples
        chosen = (torch.arange(len(h)) // repeats == self.sample).float()
        return self.plant(h, chosen.reshape(-1, *[1] * (h.dim() - 1)))


# ---- what happens to the sample; `chosen` is 1 for it and 0 for all others --------------------------


def scaled(h: Tensor, chosen: Tensor) -> Tensor:
    return h * (1 + 30 * chosen)  # here


def shifted(h: Tensor, chosen: Tensor) -> Tensor:
    return h + 12 * chosen  # here


def one_unit(h: Tensor, chosen: Tensor) -> Tensor:
    spike = (torch.arange(h.shape[-1]) == 2) * chosen
    return h + 25 * spike  # here


def silenced(h: Tensor, chosen: Tensor) -> Tensor:
    return h * (1 - chosen)  # here


def squared(h: Tensor, chosen: Tensor) -> Tensor:
    return torch.where(chosen > 0, (h * 8) ** 2, h)  # here


def small_divisor(h: Tensor, chosen: Tensor) -> Tensor:
    return h / (1 - 0.98 * chosen)  # here


def exponential(h: Tensor, chosen: Tensor) -> Tensor:
    return h * torch.exp(chosen * 4)  # here


def constant(h: Tensor, chosen: Tensor) -> Tensor:
    return torch.lerp(h, torch.full_like(h, 3.0), chosen)  # here


def saturated(h: Tensor, chosen: Tensor) -> Tensor:
    return torch.where(chosen > 0, h.sign() * 40, h)  # here


def in_place(h: Tensor, chosen: Tensor) -> Tensor:
    changed = h.clone()
    changed[int(chosen.flatten().argmax())] *= 25  # here
    return changed


_PLANTS: tuple[tuple[Callable[[Tensor, Tensor], Tensor], str], ...] = (
    (scaled, "mul"), (shifted, "add"), (one_unit, "add"), (silenced, "mul"), (squared, "where"),
    (small_divisor, "div"), (exponential, "mul"), (constant, "lerp"), (saturated, "where"), (in_place, "setitem"),
)  # fmt: skip
_NETWORKS: dict[str, tuple[Network, tuple[str, ...]]] = {
    "chain": (networks.Chain, ("layers.7",)),
    "long chain": (networks.long_chain, ("layers.100",)),
    "recurrent": (networks.Recurrent, ("cell",)),
    "images": (networks.Images, ("third",)),
    "attention": (networks.Attention, ("mix.1",)),
    "merged attention": (networks.merged_attention, ("mix.1",)),
}
_WHERE = (
    ("chain", "images", "recurrent"), ("images", "long chain"), ("chain", "recurrent"), ("images", "attention"),
    ("long chain", "merged attention", "images"), ("recurrent", "attention"), ("chain", "images", "long chain"),
    ("chain", "images"), ("merged attention", "recurrent"), ("chain", "attention", "images"),
)  # fmt: skip


def _case(number: int, plant: Callable[[Tensor, Tensor], Tensor], operation: str, name: str) -> Outlier:
    network, nodes = _NETWORKS[name]
    sample = (5 * number + 3) % SAMPLES
    return Outlier(
        f"{plant.__name__}, {name}", operation, nodes[0], sample, lambda: network(Switch(plant, sample)), plant
    )


def _bright(x: Tensor, sample: int) -> Tensor:
    return x * torch.where(torch.arange(SAMPLES) == sample, 255.0, 1.0)[:, None]


def _one_hot_pixel(x: Tensor, sample: int) -> Tensor:
    return torch.where((torch.arange(SAMPLES) == sample)[:, None] & (torch.arange(FEATURES) == 6), 40.0, x)


class _LoudWord(networks.Words):
    """One word, which only one sample contains, has a huge embedding."""

    def __init__(self) -> None:
        super().__init__()
        with torch.no_grad():
            self.embedding.weight[39] *= 30


def _says_the_word(x: Tensor, sample: int) -> Tensor:
    return torch.where((torch.arange(SAMPLES) == sample)[:, None] & (torch.arange(FEATURES) == 1), 3.15, x.clamp(-3, 3))


OUTLIERS = [
    _case(number, plant, operation, name)
    for number, ((plant, operation), names) in enumerate(zip(_PLANTS, _WHERE, strict=True))
    for name in names
] + [
    Outlier("data of another scale, chain", "input", "input", 4, networks.Chain, networks.nothing, _bright),
    Outlier("data of another scale, images", "input", "input", 9, networks.Images, networks.nothing, _bright),
    Outlier("one hot pixel, images", "input", "input", 2, networks.Images, networks.nothing, _one_hot_pixel),
    Outlier("one hot pixel, recurrent", "input", "input", 7, networks.Recurrent, networks.nothing, _one_hot_pixel),
    Outlier("one hot pixel, attention", "input", "input", 1, networks.Attention, networks.nothing, _one_hot_pixel),
    Outlier("a loud word, words", "embedding", "embedding", 6, _LoudWord, networks.nothing, _says_the_word),
]  # fmt: skip
