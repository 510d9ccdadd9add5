"""Models that return, take and do unusual things."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import (
    batches,
    close,
    complaints,
    edges,
    mlp,
    numbers,
    plain_step,
    recorded,
    same,
    sgd,
    simple_loop,
    strict_run,
    twice,
)


@dataclass
class Output:
    logits: Tensor
    hidden: list[Tensor]
    loss: Tensor | None = None


Pair = namedtuple("Pair", "left right")


class Returns(nn.Module):
    """Wraps its result in whatever it is told to."""

    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)
        self.wrap = wrap

    def forward(self, x: Any) -> Any:
        hidden = self.inner(x)
        return self.wrap(self.last(hidden), hidden)


WRAPS: dict[str, tuple[Any, Any, dict[str, str]]] = {
    "dict": (lambda out, h: {"logits": out, "hidden": h}, lambda r: r["logits"], {"logits": "out", "hidden": "h"}),
    "nested": (lambda out, h: {"a": [out, (h, 3, None)]}, lambda r: r["a"][0], {"a.0": "out", "a.1.0": "h"}),
    "tuple": (lambda out, h: (out, h), lambda r: r[0], {"0": "out", "1": "h"}),
    "named tuple": (lambda out, h: Pair(out, h), lambda r: r.left, {"left": "out", "right": "h"}),
    "dataclass": (lambda out, h: Output(out, [h]), lambda r: r.logits, {"logits": "out", "hidden.0": "h"}),
}


@pytest.mark.parametrize("name", WRAPS)
def test_results_in_containers(tmp_path: Any, name: str) -> None:
    wrap, unwrap, roles = WRAPS[name]
    model = Returns(wrap)
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with torch.no_grad():
        hidden = model.inner(x)
        expected = {"h": hidden, "out": model.last(hidden)}
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        nn.functional.cross_entropy(unwrap(model(x)), y).backward()
        optimizer.step()
    recording = recorded(run)
    assert {key.role for key in recording.tensors_of("output")} == set(roles)
    for role, which in roles.items():
        assert same(recording.tensor("output", 0, role=role), expected[which])


def test_a_model_that_returns_none(tmp_path: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Any) -> None:
            self.kept = self.layer(x)

    model = Model()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            model(x)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model.kept, y).backward()
            optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    assert [step.passes for step in recording.steps] == [1, 1, 1]
    assert "layer" in recording.nodes
    assert recording.statistics("layer", 1, of="gradient")["norm"] > 0


def test_inputs_that_are_no_tensors(tmp_path: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(
            self, n: int, words: list[str], *, data: dict[str, Any], flag: bool = False, rest: Any = None
        ) -> Any:
            return self.layer(data["x"]) * n

    model = Model()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, _ in batches(2):
            optimizer.zero_grad()
            model(
                3, ["a", "b"], data={"x": x, "name": "n", "array": np.ones(3)}, flag=True, rest=object()
            ).sum().backward()
            optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 1]
    assert [key.role for key in recording.tensors_of("input")] == ["data.x"]


def test_a_model_without_tensors_at_all(tmp_path: Any) -> None:
    class Model(nn.Module):
        def forward(self, word: str) -> str:
            return word.upper()

    model = Model()
    with strict_run(tmp_path) as run:
        run.watch(model)
        for word in ("a", "b"):
            with run.step():
                assert model(word) == word.upper()
    assert numbers(recorded(run)) == [0, 1]


def test_shared_modules_and_tied_weights(tmp_path: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(6, 6)
            self.again = self.a
            self.b = nn.Linear(6, 6)
            self.b.weight = self.a.weight
            self.last = nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            return self.last(self.b(self.again(self.a(x))))

    model = Model()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    loss = nn.functional.cross_entropy(model(x), y)
    expected = torch.autograd.grad(loss, model.a.weight)[0]
    with torch.no_grad():
        one = model.a(x)
        two = model.a(one)
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        plain_step(model, optimizer, x, y)
    recording = recorded(run)
    assert same(recording.tensor("a", 0, pass_=1), one)
    assert same(recording.tensor("a", 0, pass_=2), two)
    assert same(recording.tensor("a.weight", 0, of="gradient"), expected)
    assert edges(recording) >= {("a.weight", "a"), ("a.weight", "a:2"), ("a.weight", "b"), ("a", "a:2"), ("a:2", "b")}
    assert "again" not in recording.nodes and "b.weight" not in recording.nodes  # one tensor, one name


def test_a_chain_of_two_thousand_operations(tmp_path: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            x = self.layer(x)
            for n in range(2000):
                x = x + 1e-3 if n % 2 else x * 0.999
            return x

    model = Model()
    plain, watched = twice(lambda watch: (watch(model), simple_loop(model, sgd(model, 0.0), 2))[1], tmp_path)
    assert plain == watched
    recording = endoscope.open(tmp_path / "trial")
    assert numbers(recording) == [0, 1]
    assert ("layer", "output") in edges(recording)


def test_two_thousand_modules(tmp_path: Any) -> None:
    model = nn.Sequential(*[nn.Identity() for _ in range(2000)], nn.Linear(6, 3))
    optimizer = sgd(model)
    with strict_run(tmp_path, keep=0) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 1)
    recording = recorded(run)
    assert recording.steps[0].tensors >= 2001
    assert {"0", "1999", "2000"} <= set(recording.nodes)


def test_a_module_under_no_grad_inside_the_model(tmp_path: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.frozen, self.inferred, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                hidden = self.frozen(x)
            with torch.inference_mode():
                extra = self.inferred(x)
            return self.last(hidden + extra.clone())

    model = Model()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with torch.no_grad():
        frozen, inferred = model.frozen(x), model.inferred(x)
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        plain_step(model, optimizer, x, y)
    recording = recorded(run)
    assert same(recording.tensor("frozen", 0), frozen)
    assert same(recording.tensor("inferred", 0), inferred)
    assert {key.of for key in recording.tensors_of("frozen")} == {"value"}
    assert edges(recording) >= {("frozen", "last"), ("inferred", "last")}


def test_results_that_lie_in_the_memory_of_a_parameter(tmp_path: Any) -> None:
    """Learned positions, for example: an optimizer overwrites them at the end of the step."""

    class Positions(nn.Module):
        def __init__(self, how: Any) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(9, 6))
            self.how = how

        def forward(self, count: int) -> Any:
            return self.how(self.table, count)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slice = Positions(lambda table, n: table[:n])
            self.whole = Positions(lambda table, n: table)
            self.detached = Positions(lambda table, n: table.detach())
            self.last = nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            n = len(x)
            return self.last(x + self.slice(n) + self.whole(n)[:n] + self.detached(n)[:n])

    model = Model()
    optimizer = sgd(model)
    expected = []
    with strict_run(tmp_path, keep=9) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            expected.append([part.table.detach().clone() for part in (model.slice, model.whole, model.detached)])
            model.detached.table.data += 1  # between steps
            expected[-1][2] += 1
            plain_step(model, optimizer, x, y)
            model.detached.table.grad = torch.ones(9, 6)  # so that the optimizer moves it, too
    recording = recorded(run)
    assert recording.gaps == []
    for step, (part, whole, detached) in enumerate(expected):
        assert same(recording.tensor("slice", step), part[:5])
        assert same(recording.tensor("whole", step), whole)
        assert same(recording.tensor("detached", step), detached)


def test_frozen_parameters(tmp_path: Any) -> None:
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer)
    recording = recorded(run)
    assert [p.requires_grad for p in model.parameters()] == [False, False, True, True]
    of = {key.of for key in recording.tensors_of("0.weight")}
    assert "parameter" in of and not any(word.startswith("gradient") for word in of)
    assert recording.steps[0].extra.get("no_gradient", []) == []  # it could not learn anyway


def test_thawed_in_the_middle_of_training(tmp_path: Any) -> None:
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
        model[0].requires_grad_(True)
        simple_loop(model, optimizer, 2)
    recording = recorded(run)
    assert recording.series("0.weight", "norm", of="gradient").steps.tolist() == [2, 3]
    assert recording.series("0.weight", "norm", of="update").steps.tolist() == [2, 3]


def test_parts_that_are_added_after_watch(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 1)
        model.append(nn.Linear(3, 3))
        optimizer.add_param_group({"params": model[3].parameters()})
        simple_loop(model, optimizer, 1)
        model[0] = nn.Linear(6, 8)
        optimizer = sgd(model)  # the run has not been told about this one
        run.watch(nn.Linear(1, 1), optimizer, name="other")
        simple_loop(model, optimizer, 1)
    recording = recorded(run)
    assert recording.series("3", "mean").steps[0] == 1
    assert recording.series("3.weight", "norm", of="update").steps[0] == 1
    assert recording.series("3.weight", "norm", of="gradient").steps[0] == 1
    assert numbers(recording)[:2] == [0, 1]


def test_parameters_that_are_replaced(tmp_path: Any) -> None:
    model = mlp()
    with strict_run(tmp_path) as run:
        run.watch(model)
        simple_loop(model, sgd(model), 1)
        model[0].weight = nn.Parameter(torch.zeros(8, 6))
        simple_loop(model, sgd(model), 1)
    recording = recorded(run)
    assert not np.any(recording.tensor("0.weight", 1, of="parameter"))


def test_lazy_modules(tmp_path: Any) -> None:
    model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(3))
    optimizers: list[Any] = []
    with strict_run(tmp_path) as run:
        run.watch(model)
        for x, y in batches(3):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizers = optimizers or [sgd(model)]
            optimizers[0].zero_grad()
            loss.backward()
            optimizers[0].step()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    assert recording.series("0.weight", "norm", of="gradient").steps.tolist()[-2:] == [1, 2]
    assert [gap.step for gap in recording.gaps if "got their shapes in this step" in gap.reason] == [0]


def test_parametrizations_and_spectral_norm(tmp_path: Any) -> None:
    def body(watch: Any) -> Any:
        torch.manual_seed(1)
        model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)), nn.Linear(6, 3))
        optimizer = sgd(model)
        watch(model, optimizer)
        return simple_loop(model, optimizer, 3)

    plain, watched = twice(body, tmp_path)
    assert plain == watched
    assert any("original" in node for node in endoscope.open(tmp_path / "trial").nodes)


def test_the_users_own_hooks_see_what_they_saw(tmp_path: Any) -> None:
    """Forward hooks that change results, backward hooks, gradient hooks on parameters."""

    def body(watch: Any) -> Any:
        model = mlp()
        seen: list[Any] = []
        model[0].register_forward_hook(lambda m, args, out: out * 2)
        model[1].register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].sum().item()))
        model[2].weight.register_hook(lambda g: g * 0.5)
        model.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
        optimizer = sgd(model)
        watch(model, optimizer)
        return simple_loop(model, optimizer, 3), seen, [p.detach().clone() for p in model.parameters()]

    (losses, seen, end), (losses_2, seen_2, end_2) = twice(body, tmp_path)
    assert losses == losses_2 and seen == seen_2
    assert all(map(torch.equal, end, end_2))


def test_what_a_hook_made_of_the_result_is_recorded(tmp_path: Any) -> None:
    model = mlp()
    model[0].register_forward_hook(lambda m, args, out: out * 2)
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    expected = (nn.functional.linear(x, model[0].weight, model[0].bias) * 2).detach()
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        plain_step(model, optimizer, x, y)
    assert same(recorded(run).tensor("0", 0), expected)


def test_functional_transforms(tmp_path: Any) -> None:
    """torch.func over a watched model, inside and outside of steps."""
    from torch.func import functional_call, grad, vmap

    model = mlp(6, 4, 1)
    optimizer = sgd(model)
    parameters = {name: p.detach().clone() for name, p in model.named_parameters()}

    def loss_of(p: Any, x: Any) -> Any:
        return functional_call(model, p, (x,)).sum()

    ((x, _),) = batches(1)
    expected = vmap(grad(loss_of), (None, 0))(parameters, x)
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for _ in range(2):
            model(x).sum().backward()
            found = vmap(grad(loss_of), (None, 0))(parameters, x)
            optimizer.step()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert numbers(recorded(run)) == [0, 1]


def test_custom_autograd_functions_and_checkpointing(tmp_path: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.middle, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            x = checkpoint(self.middle, Double.apply(self.first(x)), use_reentrant=False)
            return self.last(checkpoint(lambda t: t.tanh(), x, use_reentrant=True))

    model = Model()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    nn.functional.cross_entropy(model(x), y).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        plain_step(model, optimizer, x, y)
    recording = recorded(run)
    for name, gradient in expected.items():
        assert close(recording.tensor(name, 0, of="gradient"), gradient)
    assert [key.pass_ for key in recording.tensors_of("middle") if key.of == "value"] == [1]  # recomputing is no pass
    assert recording.steps[0].passes == 1
