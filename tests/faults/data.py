"""Batches: the handwritten digits of scikit-learn, as vectors, pictures or sequences; and a few made-up tasks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tests.faults.label import STEPS

Batch = tuple[Tensor, Tensor]
VIEWS = {"flat": (64,), "image": (1, 8, 8), "rows": (8, 8)}


@functools.cache
def all_digits() -> Batch:
    """1,797 digits of 64 pixels, mean 0 and standard deviation 1 over all pixels; and which digit it is."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x = torch.tensor(pixels, dtype=torch.float32)
    return (x - x.mean()) / x.std(), torch.tensor(labels)


def digits(view: str = "flat") -> Batch:
    x, y = all_digits()
    return x.reshape(-1, *VIEWS[view]), y


def shuffled(data: Batch, steps: int = STEPS, size: int = 32) -> Iterator[Batch]:
    """Epoch after epoch, each in a new order."""
    x, y = data
    order = torch.randperm(len(x))
    start = 0
    for _ in range(steps):
        if start + size > len(x):
            order, start = torch.randperm(len(x)), 0
        chosen = order[start : start + size]
        start += size
        yield x[chosen], y[chosen]


def batches(view: str = "flat", steps: int = STEPS, size: int = 32) -> Iterator[Batch]:
    return shuffled(digits(view), steps, size)


def pixels(steps: int = STEPS, size: int = 32) -> Iterator[Batch]:
    """For an autoencoder: the target is the input."""
    for x, _ in batches("flat", steps, size):
        yield x, x


def curve(count: int = 1024) -> Batch:
    """A smooth function of 16 numbers, to be learned by regression."""
    x = torch.randn(count, 16)
    y = torch.sin(x[:, :4].sum(1)) + 0.5 * x[:, 4] * x[:, 5]
    return x, y[:, None]


def ring(size: int) -> Tensor:
    """Points near a circle: what a GAN has to learn."""
    angle = torch.rand(size) * 6.283
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(size, 2)


def changed(data: Iterator[Batch], change: Any) -> Iterator[Batch]:
    """`change(step, x, y)` returns the batch that is trained on instead."""
    for number, (x, y) in enumerate(data):
        yield change(number, x, y)
