"""Gradients of parameters, as a recording has them: whoever computes them and uses them, for one loss or two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import backward as known_by_another_name

import endoscope

Passes = Callable[[Any, nn.Module, Any, Tensor, Tensor], None]


def added(step: Any, model: nn.Module, optimizer: Any, a: Tensor, b: Tensor) -> None:
    with step.gradients("a"):
        a.backward(retain_graph=True)
    with step.gradients("b"):
        b.backward()


def cleared(step: Any, model: nn.Module, optimizer: Any, a: Tensor, b: Tensor) -> None:
    with step.gradients("a"):
        a.backward(retain_graph=True)
    optimizer.zero_grad()
    with step.gradients("b"):
        b.backward()


def set_to_zero(step: Any, model: nn.Module, optimizer: Any, a: Tensor, b: Tensor) -> None:
    with step.gradients("a"):
        a.backward(retain_graph=True)
    optimizer.zero_grad(set_to_none=False)
    with step.gradients("b"):
        b.backward()


def by_function(step: Any, model: nn.Module, optimizer: Any, a: Tensor, b: Tensor) -> None:
    with step.gradients("a"):
        torch.autograd.backward(a, retain_graph=True)
    with step.gradients("b"):
        torch.autograd.backward(b)


def handed_over(step: Any, model: nn.Module, optimizer: Any, a: Tensor, b: Tensor) -> None:
    for name, loss in (("a", a), ("b", b)):
        with step.gradients(name):
            torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)


def clipped(step: Any, model: nn.Module, optimizer: Any, a: Tensor, b: Tensor) -> None:
    with step.gradients("a"):
        a.backward(retain_graph=True)
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    with step.gradients("b"):
        b.backward()


@pytest.mark.parametrize("passes", [added, cleared, set_to_zero, by_function, handed_over, clipped])
@pytest.mark.parametrize("kept", [False, True], ids=["cleared between steps", "kept between steps"])
def test_two_losses_are_kept_apart(tmp_path: Path, passes: Passes, kept: bool) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected: dict[str, list[float]] = {"a": [], "b": []}
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            with run.step() as step:
                out = model(x)
                a, b = out.square().sum(), out.abs().sum()
                for name, loss in (("a", a), ("b", b)):
                    with torch.no_grad():
                        gradient = torch.autograd.grad(loss, model.weight, retain_graph=True)[0]
                        expected[name].append(float(gradient.norm()))
                passes(step, model, optimizer, a, b)
                optimizer.step()
            if not kept:
                optimizer.zero_grad()
    recording = endoscope.open(run.path)
    for name, norms in expected.items():
        found = recording.series("weight", "norm", of=f"gradient:{name}").values
        assert found.tolist() == pytest.approx(norms, rel=1e-5)
    assert not recording.gaps


def recorded_means(
    folder: Path, model: nn.Linear, backward: Callable[[Tensor], None] = Tensor.backward, after: Any = None
) -> list[float]:
    """Of the gradients of a weight whose gradient is 4 everywhere; `after` is called for each parameter."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(folder, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(2):
            backward(model(torch.ones(4, 3)).sum())
            for parameter in model.parameters() if after is not None else ():
                after(parameter)
            optimizer.step()
            optimizer.zero_grad()
    means: list[float] = endoscope.open(run.path).series("weight", "mean", of="gradient:loss").values.tolist()
    return means


def test_a_pass_is_recorded_whoever_calls_it(tmp_path: Path) -> None:
    assert recorded_means(tmp_path, nn.Linear(3, 2), known_by_another_name) == [4.0, 4.0]


def test_a_pass_that_raises_leaves_what_had_arrived(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def refuse(_: Tensor) -> None:
        raise ValueError("as told")

    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        with run.step():
            hidden = model[0](torch.ones(4, 3))
            hidden.register_hook(refuse)
            with pytest.raises(ValueError, match="as told"):
                model[1](hidden).sum().backward()
            optimizer.step()
    recording = endoscope.open(run.path)
    assert recording.series("1.bias", "mean", of="gradient:loss").values.tolist() == [4.0]
    assert "0.bias" in recording.steps[0].extra["no_gradient"]


def halved(parameter: nn.Parameter) -> None:
    parameter.grad = parameter.grad * 0.5


def put_back(parameter: nn.Parameter) -> None:
    gradient, parameter.grad = parameter.grad, None
    parameter.grad = gradient.clone()


@pytest.mark.parametrize(("change", "used"), [(halved, 2.0), (put_back, 4.0)])
def test_the_gradient_is_what_the_optimizer_finds(
    tmp_path: Path, change: Callable[[nn.Parameter], None], used: float
) -> None:
    assert recorded_means(tmp_path, nn.Linear(3, 2), after=change) == [used, used]


def test_a_gradient_that_is_used_up_inside_of_the_pass_is_recorded(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    node = model.weight.expand_as(model.weight).grad_fn.next_functions[0][0]

    def use_up(*_: Any) -> None:
        model.weight.grad = None

    node.register_hook(use_up)
    assert recorded_means(tmp_path, model) == [4.0, 4.0]


@pytest.mark.parametrize(
    "backward",
    [
        torch.autograd.backward,
        lambda loss: torch.autograd.backward([loss]),
        lambda loss: torch.autograd.backward(tensors=loss),
    ],
    ids=["a tensor", "a list", "by its name"],
)
@pytest.mark.parametrize("keep", [0, 4])
def test_a_loss_is_recorded_whichever_way_it_is_handed_over(
    tmp_path: Path, backward: Callable[[Tensor], None], keep: int
) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="t", when=1, keep=keep, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            with run.step():
                backward(model(torch.ones(4, 3)).sum())
                optimizer.step()
                optimizer.zero_grad()
    recording = endoscope.open(run.path)
    assert len(recording.series("loss", "mean").values) == 3
    assert recording.series("weight", "mean", of="gradient:loss").values.tolist() == [4.0] * 3
