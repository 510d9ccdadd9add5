"""The zoo: nets whose training is recorded, each with the loop that people write for it.

Targets stand beside the nets: `before` is what all statistics cost with the recorder that was replaced. For the nets
from `MLP` to `two Linear of 64` and for GPT-2 it is a number of the design notes, whose nets have the same layers but
perhaps other sizes; for the others it was measured on these very nets, on a busy machine. None: never measured.

Only plain torch is imported here and in the files with the modules; GPT-2 needs `transformers` when it is built.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from models import ResNet18
from torch import Tensor, nn
from torch.nn import functional
from zoo_more import NOISE, Functional, Heads, Recurrent, Siamese, Vision, critic, generator, mixture
from zoo_nets import (
    CLASSES,
    VOCABULARY,
    Encoder,
    LongMemory,
    UNet,
    bare_mlp,
    convolutions,
    dressed_mlp,
    small_gpt2,
    two_linear,
)

BATCHES = 32  # of random data, one after the other: a single one would be learned by heart
TOKENS = 64
Batch = tuple[Tensor, ...]


class Watched(NamedTuple):
    """What `run.watch` is told."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    name: str | None = None  # only where there are several


class Training:
    """One net in training: `step()` is the body of the ordinary loop and returns the loss."""

    updates = 1  # calls of `optimizer.step()` in one body of the loop

    def __init__(self, model: nn.Module, batches: Sequence[Batch], loss: Callable[[Any, Batch], Tensor]) -> None:
        self.model, self.loss = model, loss
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.batches = itertools.cycle(batches)

    def watched(self) -> list[Watched]:
        return [Watched(self.model, self.optimizer)]

    def step(self) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.loss(self.model, next(self.batches))
        loss.backward()
        self.optimizer.step()
        return loss


class Adversaries:
    """A GAN: the critic learns from real and fake pictures, then the generator learns from the critic."""

    updates = 2

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.generator, self.critic = generator(), critic()
        adam = {"lr": 2e-4, "betas": (0.5, 0.999)}
        self.generator_optimizer = torch.optim.Adam(self.generator.parameters(), **adam)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), **adam)
        self.batches = itertools.cycle(batches)

    def watched(self) -> list[Watched]:
        return [
            Watched(self.generator, self.generator_optimizer, "generator"),
            Watched(self.critic, self.critic_optimizer, "critic"),
        ]

    def step(self) -> Tensor:
        real, noise = next(self.batches)
        fake = self.generator(noise)
        self.critic_optimizer.zero_grad()
        critic_loss = _looks(self.critic(real), 1.0) + _looks(self.critic(fake.detach()), 0.0)
        critic_loss.backward()
        self.critic_optimizer.step()
        self.generator_optimizer.zero_grad()
        loss = _looks(self.critic(fake), 1.0)
        loss.backward()
        self.generator_optimizer.step()
        return loss


AnyTraining = Training | Adversaries


@dataclass(frozen=True)
class Net:
    """One net of the zoo, and what recording it may cost."""

    name: str
    build: Callable[[], AnyTraining]
    in_place: bool = False  # results are overwritten, so they are copied when they appear
    before: float | None = None  # all statistics ÷ plain, with the recorder of before
    at_most: float | None = None  # all statistics ÷ plain, where that is stricter

    def make(self) -> AnyTraining:
        """The same numbers on every call."""
        torch.manual_seed(0)
        return self.build()


def _supervised(model: Callable[[], nn.Module], data: Callable[[], Batch], loss: Callable[[Any, Batch], Tensor]) -> Any:
    return lambda: Training(model(), [data() for _ in range(BATCHES)], loss)


def _classified(model: Any, batch: Batch) -> Tensor:
    logits = model(batch[0])
    return functional.cross_entropy(logits, batch[1])


def _next_token(model: Any, batch: Batch) -> Tensor:
    logits = model(batch[0])
    return functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten())


def _gpt2_loss(model: Any, batch: Batch) -> Tensor:
    loss: Tensor = model(input_ids=batch[0], labels=batch[0]).loss
    return loss


def _alike(model: Any, batch: Batch) -> Tensor:
    left, right, same = batch
    similarity, again = model(left, right)
    return functional.mse_loss(similarity, same) + 0.01 * again.square().mean()


def _two_tasks(model: Any, batch: Batch) -> Tensor:
    x, classes, value = batch
    out = model(x)
    return functional.cross_entropy(out["classes"], classes) + functional.mse_loss(out["value"], value)


def _looks(logits: Tensor, real: float) -> Tensor:
    return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, real))


def _vectors(batch: int, width: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(batch, width), torch.randint(0, CLASSES, (batch,)))


def _pictures(batch: int, size: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(batch, 3, size, size), torch.randint(0, CLASSES, (batch,)))


def _texts(batch: int, tokens: int = TOKENS) -> Callable[[], Batch]:
    def make() -> Batch:
        texts = torch.randint(0, VOCABULARY, (batch, tokens + 1))
        return texts[:, :-1].contiguous(), texts[:, 1:].contiguous()

    return make


def _masks() -> Batch:
    return torch.randn(4, 3, 64, 64), torch.randint(0, 4, (4, 64, 64))


def _pairs() -> Batch:
    return torch.randn(128, 128), torch.randn(128, 128), torch.randint(0, 2, (128,)).float()


def _tasks() -> Batch:
    return torch.randn(128, 384), torch.randint(0, CLASSES, (128,)), torch.randn(128)


def _fakes() -> Batch:
    return torch.randn(32, 3, 16, 16).tanh(), torch.randn(32, NOISE)


def _gan() -> Adversaries:
    return Adversaries([_fakes() for _ in range(BATCHES)])


def _resnet() -> nn.Module:
    return ResNet18(CLASSES, in_place=True)


NETS = (
    Net("MLP", _supervised(bare_mlp, _vectors(128, 512), _classified), before=1.40),
    Net("MLP, BatchNorm, Dropout", _supervised(dressed_mlp, _vectors(128, 512), _classified), before=1.42),
    Net("convolutions in place", _supervised(convolutions, _pictures(32, 32), _classified), True, before=1.26),
    Net("LSTM", _supervised(LongMemory, _texts(16, 32), _next_token), before=1.19),
    Net("TransformerEncoder", _supervised(Encoder, _texts(16), _next_token), before=1.095, at_most=1.10),
    Net("ResNet-18", _supervised(_resnet, _pictures(16, 64), _classified), True, before=1.25),
    Net("U-Net", _supervised(UNet, _masks, _classified), before=1.18),
    Net("two Linear of 64", _supervised(two_linear, _vectors(32, 64), _classified), before=3.2),
    Net("MLP of 128", _supervised(lambda: bare_mlp(128), _vectors(64, 128), _classified)),
    Net("functional code", _supervised(Functional, _vectors(128, 384), _classified), before=1.40),
    Net("mixture of experts", _supervised(mixture, _vectors(32, 64), _classified)),
    Net("siamese, tied", _supervised(Siamese, _pairs, _alike), before=1.55),
    Net("dictionary of heads", _supervised(Heads, _tasks, _two_tasks), before=1.86),
    Net("GAN in place", _gan, True, before=1.83),
    Net("ViT by hand", _supervised(Vision, _pictures(16, 32), _classified), before=1.22),
    Net("cell in a loop", _supervised(Recurrent, _texts(16, 32), _next_token), before=1.43),
    # Last, because importing transformers makes every later garbage collection several times dearer.
    Net("GPT-2", _supervised(small_gpt2, _texts(4), _gpt2_loss), before=1.14, at_most=1.12),
)


def select(names: str | None) -> tuple[Net, ...]:
    """The nets whose name contains one of the comma-separated words; all of them without any word."""
    words = [word.strip().lower() for word in (names or "").split(",")]
    chosen = tuple(net for net in NETS if any(word in net.name.lower() for word in words))
    if not chosen:
        raise SystemExit(f"no net is called {names!r}; there are: {'; '.join(net.name for net in NETS)}")
    return chosen


def named(name: str) -> Net:
    """The net of exactly that name."""
    return next(net for net in NETS if net.name == name)
