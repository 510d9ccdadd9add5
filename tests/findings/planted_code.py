"""Faults of the code around a model: one for each check that reads operations, optimizers and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope
from tests.findings.planted import fault
from tests.findings.runs import blobs, classifier, curve, filled, train

Body = Callable[[Any, nn.Module, Any, int], None]


def loop(folder: Path, model: nn.Module, body: Body, *, optimizer: Any = None, steps: int = 24) -> Path:
    """Train by hand: `body` is one step."""
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.003)
    with endoscope.Run(folder, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(steps):
            body(run, model, optimizer, number)
    return Path(run.path)


def plain_step(model: nn.Module, optimizer: Any, number: int) -> Tensor:
    inputs, labels = blobs(number)
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@fault("loss_mismatch", "loss")
def softmax_twice(folder: Path) -> Path:
    return train(folder, nn.Sequential(*classifier(), nn.Softmax(dim=1)), steps=8)


@fault("wrong_dimension", "attention")
def softmax_over_the_batch(folder: Path) -> Path:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(torch.softmax(self.attention(x), dim=0) * x)

    path = train(folder, Model(), steps=6)
    found = [finding for finding in endoscope.diagnose(path) if finding.check == "wrong_dimension"]
    assert found and found[0].node == "head"
    return train(folder, WithNorm(), steps=6)


class WithNorm(nn.Module):
    """A normalisation over one number."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.unit, self.attention, self.head = (
            nn.Linear(8, 8),
            nn.Linear(8, 1),
            nn.LayerNorm(1),
            nn.Linear(1, 3),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(self.unit(self.first(x).relu())))


@fault("unregistered_parameters", "hidden")
def layers_in_a_list(folder: Path) -> Path:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.hidden, self.head = nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)
            self.layers = [nn.Linear(8, 8)]

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.hidden(self.layers[0](self.first(x))))

    return train(folder, Model(), steps=6)


@fault("constant_target", "target")
def one_label(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        return blobs(step)[0], torch.ones(32, dtype=torch.long)

    return train(folder, classifier(), batches=batches, steps=8)


@fault("learning_rate", "lr")
def integer_warmup(folder: Path) -> Path:
    def body(run: Any, model: nn.Module, optimizer: Any, number: int) -> None:
        optimizer.param_groups[0]["lr"] = 0.01 * (number // 20)
        plain_step(model, optimizer, number)

    return loop(folder, classifier(), body, steps=30)


@fault("weights_written", "0.weight")
def loaded_in_the_loop(folder: Path) -> Path:
    model = classifier()
    start = {name: value.clone() for name, value in model.state_dict().items()}

    def body(run: Any, model: nn.Module, optimizer: Any, number: int) -> None:
        if number % 8 == 0:
            model.load_state_dict(start)
        plain_step(model, optimizer, number)

    return loop(folder, model, body)


@fault("shrinking_weights")
def decayed_away(folder: Path) -> Path:
    model = classifier()
    return train(folder, model, optimizer=torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=20.0))


@fault("unusual_input", "input")
def missing_value_code(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        if step in (9, 17):
            inputs[3, 2] = 99999.0
        return inputs, labels

    return train(folder, classifier(), batches=batches)


@fault("metric_jump", "aux")
def auxiliary_jumps(folder: Path) -> Path:
    aux = [0.02 + 0.001 * math.sin(number) + (27.0 if number == 30 else 0.0) for number in range(40)]
    return curve(folder, [2.0 / (1 + number) for number in range(40)], aux=aux)


@fault("metric_trend", "reward")
def reward_falls(folder: Path) -> Path:
    return curve(folder, [1.0 - 0.01 * number for number in range(40)], reward=[4.0 - 0.1 * n for n in range(40)])


@fault("cut_gradient", "cell")
def state_is_detached(folder: Path) -> Path:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(2, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            state = x.new_zeros(len(x), 8)
            for part in x.view(-1, 4, 2).unbind(1):
                state = self.cell(part, state.detach())
            return self.head(state)

    return train(folder, Model(), steps=6)


@fault("strong_dropout", "1")
def keep_was_meant(folder: Path) -> Path:
    return train(folder, classifier(nn.Dropout(0.9), nn.ReLU()), steps=6)


@fault("no_nonlinearity")
def only_layers(folder: Path) -> Path:
    return train(folder, classifier(nn.Linear(16, 16), nn.Linear(16, 16)), steps=6)


@fault("leaked_target", "input")
def answer_in_the_table(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        inputs[:, 5] = labels
        return inputs, labels

    return train(folder, classifier(), batches=batches, steps=8)


@fault("strong_clipping")
def tiny_limit(folder: Path) -> Path:
    def body(run: Any, model: nn.Module, optimizer: Any, number: int) -> None:
        inputs, labels = blobs(number)
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-6)
        optimizer.step()

    return loop(folder, classifier(), body, steps=8)


@fault("evaluated_in_training_mode", "1")
def without_eval(folder: Path) -> Path:
    def body(run: Any, model: nn.Module, optimizer: Any, number: int) -> None:
        plain_step(model, optimizer, number)
        if number % 4 == 3:
            with torch.no_grad():
                inputs, labels = blobs(900 + number)
                run.metric("val_loss", functional.cross_entropy(model(inputs), labels))

    return loop(folder, classifier(nn.BatchNorm1d(16), nn.ReLU()), body)


@fault("tiny_batch_norm", "1")
def two_samples(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        return inputs[:2], labels[:2]

    return train(folder, classifier(nn.BatchNorm1d(16), nn.ReLU()), batches=batches, steps=6)


@fault("repeated_calls", "heads.0")
def one_head_three_times(folder: Path) -> Path:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.heads = nn.Linear(8, 16), nn.ModuleList([nn.Linear(16, 3)] * 3)

        def forward(self, x: Tensor) -> list[Tensor]:
            return [head(self.body(x).relu()) for head in self.heads]

    def loss(outs: list[Tensor], labels: Tensor) -> Tensor:
        return sum(functional.cross_entropy(out, (labels + n) % 3) for n, out in enumerate(outs))  # type: ignore

    return train(folder, Model(), loss=loss, steps=8)


def zeros(model: nn.Module) -> nn.Module:
    """Everything begins at zero."""
    for layer in model:  # type: ignore[attr-defined]
        if isinstance(layer, nn.Linear):
            filled(layer, weight=0.0, bias=0.0)
    return model
