"""Small training runs of every kind, each repeatable from a seed: with and without a recording they must be equal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

Watch = Callable[..., Any]  # (model, optimizer) -> None; called once each model is made
Body = Callable[[Watch, int], list[float]]  # (watch, steps) -> losses
SCENARIOS: dict[str, Body] = {}


def scenario(body: Body) -> Body:
    SCENARIOS[body.__name__] = body
    return body


def batches(steps: int, *shape: int, classes: int = 3) -> Any:
    for _ in range(steps):
        yield torch.randn(*shape), torch.randint(0, classes, (shape[0],))


def train(model: nn.Module, optimizer: Any, data: Any, after_backward: Any = None) -> list[float]:
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if after_backward is not None:
            after_backward(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


@scenario
def mlp(watch: Watch, steps: int) -> list[float]:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    return train(model, optimizer, batches(steps, 7, 6))


@scenario
def cnn_with_inplace_relu_and_batch_norm(watch: Watch, steps: int) -> list[float]:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    watch(model, optimizer)
    return train(model, optimizer, batches(steps, 5, 1, 8, 8))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        state = x.new_zeros(x.shape[0], 8)
        states = []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            states.append(state)
        out, _ = self.lstm(torch.stack(states, 1))
        return self.head(out[:, -1])


@scenario
def rnn(watch: Watch, steps: int) -> list[float]:
    model = Recurrent()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    watch(model, optimizer)
    return train(model, optimizer, batches(steps, 3, 5, 4))


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.encoder(x).mean(1))


@scenario
def transformer_with_dropout(watch: Watch, steps: int) -> list[float]:
    model = Attentive()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watch(model, optimizer)
    return train(model, optimizer, batches(steps, 4, 6, 8))


@scenario
def gan(watch: Watch, steps: int) -> list[float]:
    maker = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
    optimizer_m = torch.optim.Adam(maker.parameters(), lr=1e-3)
    optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
    watch(maker, optimizer_m)
    watch(critic, optimizer_c)
    judge = nn.functional.binary_cross_entropy_with_logits
    losses = []
    for _ in range(steps):
        real, noise = torch.randn(6, 4), torch.randn(6, 2)
        optimizer_c.zero_grad()
        loss_c = judge(critic(real), torch.ones(6, 1)) + judge(critic(maker(noise).detach()), torch.zeros(6, 1))
        loss_c.backward()
        optimizer_c.step()
        optimizer_m.zero_grad()
        loss_m = judge(critic(maker(noise)), torch.ones(6, 1))
        loss_m.backward()
        optimizer_m.step()
        losses += [loss_c.item(), loss_m.item()]
    return losses


@scenario
def frozen_layers(watch: Watch, steps: int) -> list[float]:
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    watch(model, optimizer)
    return train(model, optimizer, batches(steps, 7, 6))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 6)
        self.body = nn.Linear(6, 6)
        self.head = nn.Linear(6, 9, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Any) -> Any:
        return self.head(torch.relu(self.body(self.embedding(ids))))


@scenario
def weight_tying(watch: Watch, steps: int) -> list[float]:
    model = Tied()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    losses = []
    for _ in range(steps):
        ids = torch.randint(0, 9, (4, 5))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@scenario
def gradient_clipping(watch: Watch, steps: int) -> list[float]:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    watch(model, optimizer)
    clip = lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # noqa: E731
    return train(model, optimizer, batches(steps, 7, 6), clip)


@scenario
def gradient_accumulation(watch: Watch, steps: int) -> list[float]:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        for x, y in batches(3, 4, 6):
            loss = nn.functional.cross_entropy(model(x), y) / 3
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return losses


@scenario
def autocast_with_grad_scaler(watch: Watch, steps: int) -> list[float]:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch(model, optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=5)
    losses = []
    for x, y in batches(steps, 7, 6):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.ReLU())
        self.last = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.last(checkpoint(self.first, x, use_reentrant=False))


@scenario
def checkpointing(watch: Watch, steps: int) -> list[float]:
    model = Checkpointed()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    return train(model, optimizer, batches(steps, 7, 6))


@scenario
def optimizer_with_a_closure(watch: Watch, steps: int) -> list[float]:
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    watch(model, optimizer)
    losses = []
    for x, y in batches(steps, 7, 6):

        def closure(x: Any = x, y: Any = y) -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


@contextlib.contextmanager
def seeded(seed: int = 0) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
