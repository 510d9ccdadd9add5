"""What is to be learned: five sequences of numbers arrive side by side; which of them have a positive sum?"""

from __future__ import annotations

import torch

SEQUENCES = 5  # side by side, each with an answer of its own; together they are one sample
LENGTHS = {"short sequences": 3, "long sequences": 9}  # type of step -> numbers in a sequence


def make_numbers(samples: int, length: int, generator: torch.Generator) -> torch.Tensor:
    """Random numbers [sample, position, sequence]."""
    return torch.randn(samples, length, SEQUENCES, generator=generator)


def is_positive(sums: torch.Tensor) -> torch.Tensor:
    """The right answers: 1 where a sum is positive, else 0."""
    return (sums > 0).float()


def category(answers: torch.Tensor) -> str:
    """What kind of sample it is, by the right answers for its five sequences."""
    positive = int(answers.sum())
    if positive <= 1:
        return "mostly negative"
    return "mixed" if positive < SEQUENCES - 1 else "mostly positive"
