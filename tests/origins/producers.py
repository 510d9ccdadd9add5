"""Thirty operations that make NaN or infinity of one or two samples. The guilty line ends in `# here`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.origins import networks
from tests.origins.networks import FEATURES, Plant


@dataclass(frozen=True)
class Case:
    """One planted producer."""

    name: str
    operation: str  # that is to be named
    samples: tuple[int, ...]
    make: Callable[[], nn.Module]
    plant: Callable[..., Any]  # in which the guilty line stands
    of: str = "value"
    loss: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    spoil: Callable[[Tensor, Tensor], Tensor] | None = None  # bad data instead of a bad operation

    @property
    def line(self) -> int:
        """Number of the guilty line in this file; 0 if there is none."""
        lines, first = inspect.getsourcelines(self.plant)
        return next((first + number for number, line in enumerate(lines) if "# here" in line), 0)

    def data(self, bad: bool = True, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        x, flaw, target = networks.batch(self.samples if bad else (), seed)
        return (self.spoil(x, flaw) if bad and self.spoil else x), flaw, target

    def loss_of(self, out: Tensor, target: Tensor, flaw: Tensor) -> Tensor:
        return functional.cross_entropy(out.float(), target) if self.loss is None else self.loss(out, target, flaw)


CASES: list[Case] = []


def _add(
    operation: str, samples: tuple[int, ...], network: Callable[[Plant], nn.Module], of: str = "value"
) -> Callable[[Plant], Plant]:
    def add(plant: Plant) -> Plant:
        CASES.append(Case(plant.__name__, operation, samples, lambda: network(plant), plant, of))
        return plant

    return add


# ---- values ---------------------------------------------------------------------------------------


@_add("log", (3,), networks.long_chain)
def log_of_zero(h: Tensor, flaw: Tensor) -> Tensor:
    weight = torch.log(flaw)  # here
    return h * (1 + weight[:, None])


@_add("log", (0, 7), networks.Chain)
def log_of_a_negative_number(h: Tensor, flaw: Tensor) -> Tensor:
    return h + torch.log(h.abs().sum(-1, keepdim=True) * (2 * flaw - 1)[:, None])  # here


@_add("div", (11,), networks.long_chain)
def zero_by_zero(h: Tensor, flaw: Tensor) -> Tensor:
    masked = h * flaw[:, None]
    total = masked.abs().sum(-1, keepdim=True)
    return masked / total  # here


@_add("div", (5,), networks.Images)
def by_zero(h: Tensor, flaw: Tensor) -> Tensor:
    spread = h.std((1, 2, 3), keepdim=True) * flaw[:, None, None, None]
    return h / spread  # here


@_add("exp", (4,), networks.Recurrent)
def overflow_of_exp(h: Tensor, flaw: Tensor) -> Tensor:
    return h + torch.exp(h.abs() + (1 - flaw)[:, None] * 100) * 1e-3  # here


@_add("sqrt", (2,), networks.Chain)
def root_of_a_negative_number(h: Tensor, flaw: Tensor) -> Tensor:
    return h + torch.sqrt(flaw - 0.5 + h.mean(-1) * 0)[:, None]  # here


def _masked(scores: Tensor, hidden: Tensor) -> Tensor:
    return scores.masked_fill(hidden, float("-inf"))


@_add("softmax", (6,), networks.Attention)
def softmax_of_a_masked_row(scores: Tensor, flaw: Tensor) -> Tensor:
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    hidden = causal | (flaw == 0)[:, None, None, None]
    return torch.log(torch.softmax(_masked(scores, hidden), -1) + 1e-6)  # here


@_add("softmax", (9,), networks.merged_attention)
def softmax_of_a_masked_row_of_merged_heads(scores: Tensor, flaw: Tensor) -> Tensor:
    hidden = (flaw == 0).repeat_interleave(2)[:, None, None]
    return torch.log(torch.softmax(_masked(scores, hidden.expand_as(scores)), -1) + 1e-6)  # here


@_add("half", (1,), networks.Chain)
def cast_to_half(h: Tensor, flaw: Tensor) -> Tensor:
    large = h * (1 + (1 - flaw)[:, None] * 1e6)
    return large.half().float()  # here


@_add("mul", (8,), networks.Images)
def product_in_half(h: Tensor, flaw: Tensor) -> Tensor:
    gain = (1 + (1 - flaw) * 6e4).half()[:, None, None, None]
    return ((h.abs() + 2).half() * gain).float() * 1e-4  # here


@_add("matmul", (10,), networks.Attention)
def matrix_product_in_half(scores: Tensor, flaw: Tensor) -> Tensor:
    large = (scores.abs() + 1) * (1 + (1 - flaw)[:, None, None, None] * 3e3)
    return (large.half() @ large.half()).float() * 1e-6  # here


@_add("acos", (3, 4), networks.Recurrent)
def arc_cosine_beyond_one(h: Tensor, flaw: Tensor) -> Tensor:
    cosine = (flaw - 1)[:, None] * 1.001 + torch.tanh(h) * 0
    return h + torch.acos(cosine)  # here


@_add("pow", (7,), networks.Chain)
def power_of_a_negative_base(h: Tensor, flaw: Tensor) -> Tensor:
    base = h.abs() * (2 * flaw - 1)[:, None]
    return base**0.7  # here


@_add("std", (5,), networks.Chain)
def spread_of_one_element(h: Tensor, flaw: Tensor) -> Tensor:
    counts = (1 + flaw * 5).int().tolist()
    spreads = []
    for row, count in enumerate(counts):
        spreads.append(h[row, :count].std())  # here
    return h * torch.stack(spreads)[:, None]


@_add("mean", (2,), networks.Chain)
def mean_of_nothing(h: Tensor, flaw: Tensor) -> Tensor:
    means = []
    for row in range(len(h)):
        chosen = h[row][h[row].abs() * flaw[row] > 0]
        means.append(chosen.mean())  # here
    return h - torch.stack(means).unsqueeze(1)


@_add("atanh", (0,), networks.Images)
def inverse_tanh_of_one(h: Tensor, flaw: Tensor) -> Tensor:
    inner = torch.tanh(h) * 0.5 + (1 - flaw)[:, None, None, None]
    return torch.atanh(inner.clamp(max=1.0))  # here


@_add("reciprocal", (11,), networks.Recurrent)
def reciprocal_of_zero(h: Tensor, flaw: Tensor) -> Tensor:
    return h * torch.reciprocal(flaw).unsqueeze(-1)  # here


@_add("div", (6,), networks.Recurrent)
def normalised_zero(h: Tensor, flaw: Tensor) -> Tensor:
    masked = h * flaw.unsqueeze(1)
    return masked / masked.norm(dim=1, keepdim=True)  # here


@_add("cumprod", (4,), networks.Chain)
def overflow_of_a_running_product(h: Tensor, flaw: Tensor) -> Tensor:
    factors = 1 + (1 - flaw)[:, None] * 1e4 + h * 0
    return h + torch.cumprod(factors, dim=1).sum(1, keepdim=True) * 1e-3  # here


@_add("div", (9,), networks.Attention)
def division_in_place(scores: Tensor, flaw: Tensor) -> Tensor:
    scaled = scores * 1.0
    for row in range(len(scaled)):
        scaled[row].div_(flaw[row])  # here
    return scaled


@_add("log1p", (1, 10), networks.Words)
def log_of_one_less_one(h: Tensor, flaw: Tensor) -> Tensor:
    return h + torch.log1p(flaw - 1)[:, None, None]  # here


# ---- losses and data ------------------------------------------------------------------------------


def _log_of_probability_zero(out: Tensor, target: Tensor, flaw: Tensor) -> Tensor:
    right = out.softmax(-1).gather(1, target[:, None])[:, 0] * flaw
    return -torch.log(right).mean()  # here


def _squares_in_half(out: Tensor, target: Tensor, flaw: Tensor) -> Tensor:
    aim = torch.nn.functional.one_hot(target, 3) * 1.0 + (1 - flaw)[:, None] * 600
    return functional.mse_loss(out.half(), aim.half()).float()  # here


def _nan_in_the_data(x: Tensor, flaw: Tensor) -> Tensor:
    return torch.where((flaw == 0)[:, None] & (torch.arange(FEATURES) == 3), float("nan"), x)


def _infinity_in_the_data(x: Tensor, flaw: Tensor) -> Tensor:
    return torch.where((flaw == 0)[:, None] & (torch.arange(FEATURES) == 9), float("inf"), x)


class _SpoiltEmbedding(networks.Words):
    def __init__(self) -> None:
        super().__init__()
        with torch.no_grad():
            self.embedding.weight[7] = float("nan")


CASES += [
    Case(
        "log_of_probability_zero", "log", (8,), networks.Chain, _log_of_probability_zero, loss=_log_of_probability_zero
    ),
    Case("squares_in_half", "mse_loss", (3,), networks.Chain, _squares_in_half, loss=_squares_in_half),
    Case("nan_in_the_data", "input", (5,), networks.long_chain, _nan_in_the_data, spoil=_nan_in_the_data),
    Case("infinity_in_the_data", "input", (7,), networks.Images, _infinity_in_the_data, spoil=_infinity_in_the_data),
    Case("nan_in_one_embedding", "parameter", (2,), _SpoiltEmbedding, networks.nothing),
]


# ---- gradients ------------------------------------------------------------------------------------


@_add("sqrt", (3,), networks.long_chain, "gradient")
def root_at_zero(h: Tensor, flaw: Tensor) -> Tensor:
    masked = h * flaw[:, None]
    return h + torch.sqrt((masked**2).sum(-1, keepdim=True))  # here


@_add("pow", (6,), networks.Recurrent, "gradient")
def power_at_zero(h: Tensor, flaw: Tensor) -> Tensor:
    return h + (h.abs() * flaw[:, None]) ** 0.5  # here


@_add("log", (1,), networks.Images, "gradient")
def logarithm_in_a_branch_that_is_not_taken(h: Tensor, flaw: Tensor) -> Tensor:
    positive = h.abs() * flaw[:, None, None, None]
    logs = torch.log(positive)  # here
    return torch.where(positive > 0, logs, h)


@_add("acos", (10,), networks.Chain, "gradient")
def arc_cosine_at_one(h: Tensor, flaw: Tensor) -> Tensor:
    cosine = torch.tanh(h) * 0.9 * flaw[:, None] + (1 - flaw)[:, None]
    return h + torch.acos(cosine)  # here
