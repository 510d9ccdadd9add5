"""Gradients inside of a chain are computed again where steps are hardly ever kept: to the bit those of the pass."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from endoscope.recording import following
from endoscope.recording.cells import Cells
from endoscope.recording.following import OFTEN
from tests.recording.held_steps import Loop, gradients_of

QUIET = OFTEN + 4  # steps; the first ones are heard, not noted


def stack(*modules: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*modules)


def usual() -> nn.Sequential:
    return stack(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 6), nn.ReLU(), nn.Linear(6, 3))


def frozen_below() -> nn.Sequential:
    model = usual()
    model[0].requires_grad_(False)
    return model


def tied() -> nn.Sequential:
    shared = nn.Linear(5, 5)
    return stack(shared, nn.ReLU(), nn.Linear(5, 5, bias=False), nn.ReLU(), shared)


class Inside(nn.Module):
    """Two containers, the second one begins with a ReLU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 6))
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 4), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.second(self.first(x))
        return out


MODELS: dict[str, Callable[[], nn.Module]] = {
    "usual": usual,
    "begins and ends with a ReLU": lambda: stack(nn.ReLU(), nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 6), nn.ReLU()),
    "two linear ones in a row": lambda: stack(nn.Linear(5, 7), nn.Linear(7, 6), nn.ReLU(), nn.ReLU()),
    "frozen below": frozen_below,
    "tied": tied,
    "inside": Inside,
}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Classes of the modules through which a gradient was computed."""
    found: list[str] = []
    through = following.through

    def counted(link: Any, *rest: Any) -> list[Tensor]:
        found.append(type(link.module).__name__)
        return through(link, *rest)

    monkeypatch.setattr("endoscope.recording.cells.through", counted)
    return found


def quiet_steps(loop: Loop, data: Tensor, count: int = QUIET) -> None:
    for _ in range(count):
        loop.step(lambda step: (loop.model(data) ** 2).sum(), keep=False)


def compare(recording: Any, expected: dict[tuple[str, int], list[np.ndarray]], number: int, losses: list[str]) -> None:
    assert expected
    for (node, pass_), gradients in expected.items():
        for loss, gradient in zip(losses, gradients, strict=True):
            found = recording.tensor(node, number, of=f"gradient:{loss}", pass_=pass_)
            assert found.tobytes() == gradient.tobytes(), (node, pass_, loss)
    assert not recording.gaps


@pytest.mark.parametrize("losses", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_they_are_those_of_the_backward_pass(tmp_path: Path, computed: list[str], name: str, losses: int) -> None:
    loop, data = Loop(tmp_path, MODELS[name](), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    before = len(computed)  # it was seen that they come out the same, without any of this
    expected = gradients_of(copy.deepcopy(loop.model), data, losses)
    names = [f"loss {number}" for number in range(losses)]
    with loop.run.step() as step:
        out = loop.model(data)
        for number, name_ in enumerate(names):
            with step.gradients(name_):
                (out ** (number + 2)).sum().backward(retain_graph=True)
        loop.optimizer.step()
        loop.optimizer.zero_grad()
        step.decide(keep=True)
    assert before == 0 and {"Linear", "ReLU"} >= set(computed) >= {"Linear"}
    compare(loop.recording(), expected, QUIET, names)


def test_few_hooks_are_put_on_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    gather = Cells.gather

    def counted(self: Cells, tensors: list[Tensor], *others: Any) -> bool:
        counts.append(len(tensors))
        return gather(self, tensors, *others)

    monkeypatch.setattr(Cells, "gather", counted)
    loop, data = Loop(tmp_path, usual()), torch.randn(6, 5)
    quiet_steps(loop, data, 2 * OFTEN)
    assert counts[2] - counts[-1] == 2  # the results of two ReLUs, whose arguments had none in the first place
    loop.step(lambda step: (loop.model(data) ** 2).sum(), keep=True)
    loop.step(lambda step: (loop.model(data) ** 2).sum(), keep=False)
    assert counts[-1] == counts[2]  # others may be kept, too


def test_not_if_other_bits_came_out(tmp_path: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def almost(*given: Any) -> list[Tensor]:
        return [torch.nextafter(gradient, torch.tensor(9.0)) for gradient in through(*given)]

    through = following.through
    monkeypatch.setattr(following, "through", almost)
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    expected = gradients_of(copy.deepcopy(loop.model), data, 1)
    loop.step(lambda step: (loop.model(data) ** 2).sum(), keep=True)
    assert not computed
    compare(loop.recording(), expected, QUIET, ["loss"])


class Rounded(torch.autograd.graph.saved_tensors_hooks):
    """Keeps what is saved for the backward pass in half the bits."""

    def __init__(self) -> None:
        super().__init__(lambda x: x.bfloat16(), lambda x: x.float())


def forward_as(how: str, model: nn.Module, data: Tensor) -> Tensor:
    if how == "rounded":
        with Rounded():
            return model(data)  # type: ignore[no-any-return]
    if how == "autocast":
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(data).float()  # type: ignore[no-any-return]
    return model(data)  # type: ignore[no-any-return]


@pytest.mark.parametrize("how", ["rounded", "autocast", "three dimensions", "double"])
def test_not_where_autograd_computes_otherwise(tmp_path: Path, computed: list[str], how: str) -> None:
    model, data = usual(), torch.randn(6, 5)
    if how == "three dimensions":
        data = torch.randn(6, 2, 5)
    if how == "double":
        model, data = model.double(), data.double()
    loop = Loop(tmp_path, model, keep=6)
    if how != "double":
        quiet_steps(loop, torch.randn(6, 5))  # so that the chain itself can be followed
    else:
        quiet_steps(loop, data)
    plain, passes = copy.deepcopy(model), dict[str, np.ndarray]()
    for name, module in plain.named_children():

        def after(_: nn.Module, __: Any, out: Tensor, name: str = name) -> None:
            out.register_hook(lambda gradient: passes.update({name: gradient.float().numpy().copy()}))

        module.register_forward_hook(after)
    (forward_as(how, plain, data) ** 2).sum().backward()
    loop.step(lambda step: (forward_as(how, loop.model, data) ** 2).sum(), keep=True)
    assert not computed
    recording = loop.recording()
    for name, gradient in passes.items():
        found = np.asarray(recording.tensor(name, QUIET, of="gradient:loss"), np.float32)
        assert np.array_equal(found, gradient), name


def test_a_pass_for_some_parameters_only_ends_where_it_ends(tmp_path: Path, computed: list[str]) -> None:
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    loop.step(
        lambda step: (loop.model(data) ** 2).sum(),
        keep=True,
        backward=lambda loss: loss.backward(inputs=[loop.model[2].weight]),
    )
    assert not computed
    recording = loop.recording()
    rows = recording.sql(f"""select distinct node from stats where step = {QUIET} and "of" = 'gradient:loss'""")
    assert {"2", "3", "4"} <= {str(row[0]) for row in rows} and "1" not in {str(row[0]) for row in rows}


def test_the_second_of_two_updates_in_a_step(tmp_path: Path, computed: list[str]) -> None:
    """Copies of parameters are those before the first one."""
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    plain = copy.deepcopy(loop.model)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    first = gradients_of(plain, data, 1)
    (plain(data) ** 2).sum().backward()
    optimizer.step()
    second = gradients_of(plain, data, 1)
    with loop.run.step() as step:
        for _ in range(2):
            (loop.model(data) ** 2).sum().backward()
            loop.optimizer.step()
            loop.optimizer.zero_grad()
        step.decide(keep=True)
    recording = loop.recording()
    for number, expected in ((1, first), (2, second)):
        for (node, _), (gradient,) in expected.items():
            found = recording.tensor(node, QUIET, of="gradient:loss", pass_=number)
            assert found.tobytes() == gradient.tobytes(), (node, number)


def test_another_layer_is_another_chain(tmp_path: Path, computed: list[str]) -> None:
    model, data = usual(), torch.randn(6, 5)
    loop = Loop(tmp_path, model, keep=6)
    quiet_steps(loop, data)
    model[2] = nn.Linear(7, 6)
    expected = gradients_of(copy.deepcopy(model), data, 1)
    loop.step(lambda step: (model(data) ** 2).sum(), keep=True)
    assert not computed
    compare(loop.recording(), expected, QUIET, ["loss"])


def test_weights_that_are_written_into_after_the_pass(tmp_path: Path, computed: list[str]) -> None:
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    expected = gradients_of(copy.deepcopy(loop.model), data, 1)

    def backward(loss: Tensor) -> None:
        loss.backward()
        with torch.no_grad():
            for parameter in loop.model.parameters():
                parameter.mul_(0.5)

    loop.step(lambda step: (loop.model(data) ** 2).sum(), keep=True, backward=backward)
    assert computed
    compare(loop.recording(), expected, QUIET, ["loss"])
