"""Fully connected networks with nothing wrong: whatever a check says about them is a false alarm."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks
from tests.faults.label import case
from tests.faults.networks import chain
from tests.faults.training import adam, fit, sgd

STEPS = 60  # a little longer than the faulty ones, so that it is seen that they learn


@case("mlp")
def healthy_mlp_sgd(run: endoscope.Run) -> None:
    """Plain gradient descent."""
    model = networks.mlp()
    fit(run, model, data.batches(steps=STEPS), sgd(model, 0.2))


@case("mlp")
def healthy_mlp_adam(run: endoscope.Run) -> None:
    """Adam, and validation on other samples."""
    x, y = data.digits()
    fit(run, networks.mlp(), data.shuffled((x[:1400], y[:1400]), STEPS), validation=data.shuffled((x[1400:], y[1400:])))


@case("mlp")
def healthy_mlp_wide_sparse_relu(run: endoscope.Run) -> None:
    """Four hundred ReLUs with slightly negative biases: most are silent for most samples, none for all."""
    model = networks.mlp(width=400)
    with torch.no_grad():
        model.first.bias -= 0.5
    fit(run, model, data.batches(steps=STEPS), adam(model, 1e-3))


@case("mlp")
def healthy_mlp_batch_norm_dropout(run: endoscope.Run) -> None:
    """Batch norm and dropout behave otherwise in evaluation, as they should."""
    model = chain(
        first=nn.Linear(64, 96), norm=nn.BatchNorm1d(96), act1=nn.ReLU(), drop=nn.Dropout(0.3), last=nn.Linear(96, 10)
    )
    x, y = data.digits()
    fit(
        run,
        model,
        data.shuffled((x[:1400], y[:1400]), STEPS),
        adam(model, 5e-3),
        validation=data.shuffled((x[1400:], y[1400:]), size=64),
    )


@case("mlp")
def healthy_mlp_layer_norm_adamw(run: endoscope.Run) -> None:
    """Layer norm, GELU and weight decay."""
    model = chain(
        first=nn.Linear(64, 64),
        norm1=nn.LayerNorm(64),
        act1=nn.GELU(),
        second=nn.Linear(64, 64),
        norm2=nn.LayerNorm(64),
        act2=nn.GELU(),
        last=nn.Linear(64, 10),
    )
    fit(run, model, data.batches(steps=STEPS), torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05))


@case("mlp")
def healthy_mlp_tanh_momentum(run: endoscope.Run) -> None:
    """Tanh and momentum."""
    model = networks.mlp(activation=nn.Tanh)
    fit(run, model, data.batches(steps=STEPS), sgd(model, 0.05, momentum=0.9))


@case("mlp")
def healthy_mlp_warm_up(run: endoscope.Run) -> None:
    """The learning rate rises from nothing over twenty steps, then falls like a cosine."""
    model = networks.mlp()
    optimizer = adam(model, 5e-3)
    share = lambda n: (n + 1) / 20 if n < 20 else 0.5 + 0.5 * math.cos((n - 20) / 40 * 3)  # noqa: E731
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    fit(run, model, data.batches(steps=STEPS), optimizer, after=lambda number: schedule.step())


@case("mlp")
def healthy_mlp_rmsprop(run: endoscope.Run) -> None:
    """RMSprop, small batches, noisy loss."""
    model = networks.mlp(width=48)
    fit(run, model, data.batches(steps=80, size=8), torch.optim.RMSprop(model.parameters(), lr=1e-3))


@case("mlp")
def healthy_mlp_regression(run: endoscope.Run) -> None:
    """A regression."""
    model = networks.mlp(inputs=16, outputs=1)
    fit(run, model, data.shuffled(data.curve(), 80, 64), adam(model, 1e-2), loss=F.mse_loss)


@case("mlp")
def healthy_mlp_binary(run: endoscope.Run) -> None:
    """Two classes, a linear output and a sigmoid."""
    model = chain(first=nn.Linear(64, 64), act1=nn.ReLU(), last=nn.Linear(64, 1), sigmoid=nn.Sigmoid())
    even = lambda out, y: F.binary_cross_entropy(out[:, 0], (y % 2).float())  # noqa: E731
    fit(run, model, data.batches(steps=STEPS), adam(model, 5e-3), loss=even)


@case("mlp")
def healthy_mlp_residual_zero_start(run: endoscope.Run) -> None:
    """Residual branches whose last layer starts at zero and grows, as is often recommended."""
    model = networks.Residual()
    for branch in model.branches:
        nn.init.zeros_(branch.down.weight)
        nn.init.zeros_(branch.down.bias)
    fit(run, model, data.batches(steps=STEPS), adam(model, 3e-3))


@case("mlp")
def healthy_mlp_clipping(run: endoscope.Run) -> None:
    """Gradients are clipped, gradient descent with Nesterov momentum."""
    model = networks.mlp()
    clip = lambda number: nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # noqa: E731
    fit(run, model, data.batches(steps=STEPS), sgd(model, 0.1, momentum=0.9, nesterov=True), before=clip)


@case("mlp")
def healthy_mlp_accumulation(run: endoscope.Run) -> None:
    """Gradients of four small batches are added up before each step, on purpose."""
    model = networks.mlp()
    optimizer = adam(model, 5e-3)
    run.watch(model, optimizer)
    batches = data.batches(steps=160, size=16)
    for _ in range(40):
        with run.step(type="train") as step:
            optimizer.zero_grad()
            for x, y in (next(batches) for _ in range(4)):
                loss = F.cross_entropy(model(x), y) / 4
                loss.backward()
            optimizer.step()
            step.metric("loss", 4 * loss.detach())


class Mixed(nn.Module):
    """The network inside runs in bfloat16 where that is safe."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = networks.mlp()

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.inner(x).float()


@case("mlp")
def healthy_mlp_bfloat16(run: endoscope.Run) -> None:
    """Mixed precision with bfloat16."""
    model = Mixed()
    fit(run, model, data.batches(steps=STEPS), adam(model, 5e-3))


@case("mlp")
def healthy_mlp_whole_data(run: endoscope.Run) -> None:
    """Every step sees all of a small set of data, as classical gradient descent does."""
    x, y = data.digits()
    model = networks.mlp(width=32)
    fit(run, model, ((x[:600], y[:600]) for _ in range(STEPS)), adam(model, 1e-2))
