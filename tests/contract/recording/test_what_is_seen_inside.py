"""What is an input, a target and a loss; attention weights; words that are said from inside of `forward`."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import batches, complaints, edges, mlp, numbers, recorded, same, sgd, strict_run
from tests.contract.recording.oracle import Oracle, compared, ends

cross_entropy = nn.functional.cross_entropy
STEPS = 20  # some of them traced, most of them not


# ---- targets and inputs --------------------------------------------------------------------------


def test_the_target_holds_the_labels_of_the_batch(tmp_path: Any) -> None:
    """Not those of the whole data set, and not the index."""
    model = mlp()
    optimizer = sgd(model)
    data, labels = torch.randn(40, 6), torch.randint(0, 3, (40,))
    chosen = []
    with strict_run(tmp_path, keep=64) as run:
        run.watch(model, optimizer)
        for _ in range(STEPS):
            idx = torch.randperm(40)[:5]
            chosen.append(idx)
            optimizer.zero_grad()
            cross_entropy(model(data[idx]), labels[idx]).backward()
            optimizer.step()
    recording = recorded(run)
    parameters = {name for name, _ in model.named_parameters()}
    assert set(recording.nodes) == {"input", "0", "1", "2", "output", "target", "loss", *parameters}
    assert [key.shape for key in recording.tensors_of("target")] == [(5,)]
    for number, idx in enumerate(chosen):
        assert same(recording.tensor("target", number), labels[idx])
        assert same(recording.tensor("input", number), data[idx])
        found = edges(recording, number)
        assert {("target", "loss"), ("output", "loss")} <= found
        assert {a for a, b in found if b == "loss"} == {"target", "output"}


@pytest.mark.parametrize(
    ("prepare", "loss_of"),
    [
        (lambda y: y, lambda out, y: nn.NLLLoss()(torch.log_softmax(out, 1), y)),
        (lambda y: nn.functional.one_hot(y, 3).float(), lambda out, y: (out - y).square().mean()),
        (lambda y: nn.functional.one_hot(y, 3).float(), nn.functional.binary_cross_entropy_with_logits),
        (lambda y: nn.functional.one_hot(y, 3).float(), lambda out, y: -(y * torch.log_softmax(out, 1)).sum(1).mean()),
        (lambda y: y, lambda out, y: -torch.log_softmax(out, 1).gather(1, y[:, None]).mean()),
    ],
    ids=["nll", "square by hand", "bce", "soft by hand", "gather"],
)
def test_targets_of_losses_of_every_kind(tmp_path: Any, prepare: Any, loss_of: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, keep=64) as run:
        run.watch(model, optimizer)
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            target = prepare(y)
            loss_of(model(x), target).backward()
            optimizer.step()
    recording = recorded(run)
    assert len(recording.tensors_of("target")) == 1
    for number, (_, y) in enumerate(batches(STEPS)):
        found = recording.tensor("target", number)
        assert same(found.reshape(prepare(y).shape), prepare(y)), number


weighted = nn.CrossEntropyLoss(weight=torch.ones(3))


class Prototypes(nn.Module):
    """What it returns is compared with what it learns, which is no target."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.learned = nn.Linear(6, 4), nn.Parameter(torch.randn(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda out, y, learned, heat: cross_entropy(out @ learned.T, y),
        lambda out, y, learned, heat: cross_entropy(
            nn.functional.normalize(out) @ nn.functional.normalize(learned).T / heat.exp(), y
        ),
        lambda out, y, learned, heat: cross_entropy(out @ learned.T * heat.exp().detach(), y),
        lambda out, y, learned, heat: (out - learned[y]).square().mean(),
        lambda out, y, learned, heat: weighted(out @ learned.T, y),
    ],
    ids=["tied weights", "normalised prototypes", "a temperature", "centres", "weights of classes"],
)
def test_what_learns_is_no_target(tmp_path: Any, loss_of: Any) -> None:
    """Neither is what was made of parameters alone; traced and hooked steps say the same."""
    model, heat = Prototypes(), nn.Parameter(torch.zeros(1))
    optimizer = sgd(model)
    with strict_run(tmp_path, keep=64) as run:
        run.watch(model, optimizer)
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            loss_of(model(x), y, model.learned, heat).backward()
            optimizer.step()
    recording = recorded(run)
    assert [(key.pass_, key.shape) for key in recording.tensors_of("target")] == [(1, y.shape)]
    for number, (_, y) in enumerate(batches(STEPS)):
        assert same(recording.tensor("target", number), y), number


class Tagging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, step: Any) -> Tensor:
        hidden = step.tag("hidden", torch.relu(self.first(x)))
        return self.last(hidden)


def test_a_handle_of_a_step_is_no_data(tmp_path: Any) -> None:
    """It is handed into `forward` to tag inside; nothing of it is an input."""
    expected: list[Tensor] = []

    def body(run: Any) -> Any:
        model = Tagging()
        optimizer = sgd(model)
        run.watch(model, optimizer)
        expected.clear()
        losses = []
        for x, y in batches(STEPS):
            with run.step() as step:
                optimizer.zero_grad()
                expected.append(torch.relu(nn.functional.linear(x, model.first.weight, model.first.bias)).detach())
                loss = cross_entropy(model(x, step), y)
                step.metric("mean", loss)
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        return losses, ends(model)

    _, recording = compared(body, tmp_path)
    inputs = {node["node"] for node in recording.graph(STEPS - 1)["nodes"] if node["kind"] == "input"}
    assert inputs == {"input"}
    assert len(recording.tensors_of("input")) == 1
    for number, hidden in enumerate(expected):
        assert same(recording.tensor("hidden", number), hidden)
        assert {("first", "hidden"), ("hidden", "last")} <= edges(recording, number)


# ---- attention -----------------------------------------------------------------------------------


class Attention(nn.Module):
    """Softmax by hand; or a module that returns its weights, or a fused kernel that has none."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.mix = nn.Linear(6, 18)
        self.of_torch = nn.MultiheadAttention(6, 2, batch_first=True)
        self.weights: list[Tensor] = []

    def forward(self, x: Tensor) -> Any:
        if self.kind == "returned":
            out, weights = self.of_torch(x, x, x)
            self.weights.append(weights.detach().clone())
            return out
        q, k, v = self.mix(x).chunk(3, -1)
        if self.kind == "fused":
            return nn.functional.scaled_dot_product_attention(q, k, v)
        weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(6), -1)
        self.weights.append(weights.detach().clone())
        return weights @ v


def attentive(kind: str, seen: list[Tensor]) -> Any:
    def body(run: Any) -> Any:
        model = nn.Sequential(nn.Linear(6, 6), Attention(kind), nn.Linear(6, 3))
        optimizer = sgd(model)
        run.watch(model, optimizer)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = model(torch.randn(5, 4, 6)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seen[:] = model[1].weights
        return losses, ends(model)

    return body


@pytest.mark.parametrize("kind", ["by hand", "returned"])
def test_attention_weights_are_recorded_by_default(tmp_path: Any, kind: str) -> None:
    seen: list[Tensor] = []
    _, recording = compared(attentive(kind, seen), tmp_path)
    keys = [key for node in recording.nodes for key in recording.tensors_of(node)]
    square = [key for key in keys if key.of == "value" and tuple(key.shape) == (5, 4, 4)]
    assert square, recording.nodes
    for number, weights in enumerate(seen):
        found = [recording.tensor(key.node, number, role=key.role, pass_=key.pass_) for key in square]
        assert any(same(one, weights) for one in found), number


def test_fused_attention_has_no_weights_and_one_note_says_so(tmp_path: Any) -> None:
    _, recording = compared(attentive("fused", []), tmp_path)
    texts = [note.text for note in recording.notes] + [gap.reason for gap in recording.gaps]
    assert len([text for text in texts if "attention" in text.lower()]) == 1, texts


# ---- the current step ----------------------------------------------------------------------------


class Speaking(nn.Module):
    """Says everything that can be said about a step from inside of its own forward pass."""

    def __init__(self, run: Any) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.run = [run]
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        step = self.run[0].current_step
        hidden = torch.relu(self.first(x))
        step.tag("hidden", hidden)
        step.metric("size", hidden.detach().abs().mean())
        step.decide(keep=self.calls % 4 != 3, type="odd" if self.calls % 2 else "even")
        self.calls += 1
        return self.last(hidden)


@pytest.mark.parametrize("block", [False, True])
def test_the_current_step_is_reached_from_inside_of_forward(tmp_path: Any, block: bool) -> None:
    expected: list[Tensor] = []
    with strict_run(tmp_path, keep=64) as run:
        model = Speaking(run)
        optimizer = sgd(model)
        run.watch(model, optimizer)
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            expected.append(torch.relu(nn.functional.linear(x, model.first.weight, model.first.bias)).detach())
            with run.step() if block else Oracle().step():
                cross_entropy(model(x), y).backward()
                optimizer.step()
    recording = recorded(run)
    kept = [n for n in range(STEPS) if n % 4 != 3]
    assert numbers(recording) == kept
    assert [step.type for step in recording.steps] == ["odd" if n % 2 else "even" for n in kept]
    assert recording.metrics["size"].steps.tolist() == [*range(STEPS)]
    for number in kept:
        assert same(recording.tensor("hidden", number), expected[number])


def test_gradients_of_the_current_step_are_kept_apart(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    expected = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            out = model(x)
            parts = {"classes": cross_entropy(out, y), "size": out.square().mean()}
            expected.append(
                {n: torch.autograd.grad(p, model[2].weight, retain_graph=True)[0] for n, p in parts.items()}
            )
            for name, loss in parts.items():
                with run.current_step.gradients(name):
                    loss.backward(retain_graph=True)
            optimizer.step()
    recording = recorded(run)
    assert recording.losses == ["classes", "size"]
    for number, found in enumerate(expected):
        for name, gradient in found.items():
            assert same(recording.tensor("2.weight", number, of=f"gradient:{name}"), gradient)


def test_words_in_steps_that_are_not_recorded_do_no_harm(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, when=7) as run:
        run.watch(model, optimizer)
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            out = model(x)
            loss = cross_entropy(run.current_step.tag("out", out), y)
            run.current_step.metric("mean", loss)
            with run.current_step.gradients("named"):
                loss.backward()
            optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 7, 14]
    assert recording.metrics["mean"].steps.tolist() == [*range(STEPS)]
    assert recording.series("out", "std").steps.tolist() == [0, 7, 14]


def test_outside_of_any_step_the_current_step_is_harmless(tmp_path: Any) -> None:
    """A helper that tags may be called in evaluation as well."""
    model = mlp()
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, sgd(model))
        step = run.current_step
        if step is not None:
            assert step.tag("nothing", torch.ones(3)) is not None
            with step.gradients("nothing"):
                pass
    assert recorded(run).steps == []
