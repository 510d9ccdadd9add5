"""Data that need no download, and the few lines that every training here would repeat."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor, nn


def digits() -> tuple[Tensor, Tensor]:
    """1,797 images of digits, 64 pixels between 0 and 1."""
    data = datasets.load_digits()
    return torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)


def digit_images() -> tuple[Tensor, Tensor]:
    """The same as images of one channel, 8 times 8."""
    x, y = digits()
    return x.view(-1, 1, 8, 8), y


def table(name: str) -> tuple[Tensor, Tensor]:
    """A table of scikit-learn with standardised columns: `wine`, `breast_cancer`, `iris` or `diabetes`."""
    x, y = raw_table(name)
    return (x - x.mean(0)) / x.std(0), y


def raw_table(name: str) -> tuple[Tensor, Tensor]:
    data = getattr(datasets, f"load_{name}")()
    y = torch.tensor(data.target)
    return torch.tensor(data.data, dtype=torch.float32), y.float() if y.is_floating_point() else y


def regression(features: int = 10, samples: int = 1000) -> tuple[Tensor, Tensor]:
    """A smooth function of Gaussian inputs with mean near 0 and deviation near 1; the target has one column."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(samples, features, generator=generator)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3] - 0.7 * x[:, 3:4]
    return x, y + 0.05 * torch.randn(samples, 1, generator=generator)


def moons(samples: int = 1000) -> tuple[Tensor, Tensor]:
    x, y = datasets.make_moons(samples, noise=0.08, random_state=0)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def text() -> tuple[Tensor, int]:
    """Some 10,000 characters of English as numbers, and the size of the alphabet."""
    letters = (datasets.load_iris().DESCR + datasets.load_wine().DESCR + datasets.load_diabetes().DESCR).lower()
    alphabet = sorted(set(letters))
    return torch.tensor([alphabet.index(letter) for letter in letters]), len(alphabet)


def text_windows(length: int, size: int, steps: int) -> Iterator[Tensor]:
    """Batches of windows of the text, one letter longer than `length`."""
    ids, _ = text()
    generator = torch.Generator().manual_seed(3)
    for _ in range(steps):
        starts = torch.randint(0, len(ids) - length - 1, (size,), generator=generator)
        yield torch.stack([ids[start : start + length + 1] for start in starts])


def tones(samples: int = 600, length: int = 128, classes: int = 4) -> tuple[Tensor, Tensor]:
    """Noisy sine waves; the class is the frequency."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, classes, samples)
    time = np.arange(length) / length
    wave = np.sin(2 * np.pi * (4 + 5 * y)[:, None] * time + rng.uniform(0, 6.28, (samples, 1)))
    wave = wave + 0.3 * rng.standard_normal((samples, length))
    return torch.tensor(wave, dtype=torch.float32), torch.tensor(y)


def block_graph(nodes: int = 120, classes: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Features, adjacency with self-loops, and classes of a graph whose classes are its communities."""
    generator = torch.Generator().manual_seed(11)
    y = torch.arange(nodes) % classes
    chance = torch.where(y[:, None] == y[None, :], 0.15, 0.01)
    upper = (torch.rand(nodes, nodes, generator=generator) < chance).float().triu(1)
    x = nn.functional.one_hot(y, 8).float() * 0.7 + torch.randn(nodes, 8, generator=generator)
    return x, upper + upper.T + torch.eye(nodes), y


def normalized(adjacency: Tensor) -> Tensor:
    """The adjacency divided by the roots of the degrees of both ends."""
    degree = adjacency.sum(1)
    return adjacency / (degree[:, None] * degree[None, :]).sqrt()


def batches(*tensors: Tensor, size: int, steps: int) -> Iterator[Sequence[Tensor]]:
    """Random mini-batches, the same in every run."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        chosen = torch.randint(0, len(tensors[0]), (size,), generator=generator)
        yield [tensor[chosen] for tensor in tensors]


def mlp(*sizes: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


def falls(losses: Sequence[float], to: float = 0.7) -> bool:
    """Whether the last losses are at most `to` times the first ones."""
    return float(np.mean(losses[-10:])) <= to * float(np.mean(losses[:3]))


def rises(scores: Sequence[float], above: float) -> bool:
    """Whether the last scores are above a limit that an untrained model does not reach."""
    return float(np.mean(scores[-10:])) > above


def accuracy(logits: Tensor, y: Tensor) -> float:
    return float((logits.argmax(-1) == y).float().mean())
