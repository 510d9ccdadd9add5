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
    loop.optimizer.param_groups[0]["lr"] = 1e-4  # or there is nothing left to learn, and every gradient is zero
    for _ in range(count):
        loop.step(lambda step: (loop.model(data) ** 2).sum(), keep=False)


def compare(recording: Any, expected: dict[tuple[str, int], list[np.ndarray]], number: int, losses: list[str]) -> None:
    assert any(gradient.any() for gradients in expected.values() for gradient in gradients)
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
    optimizer = torch.optim.SGD(plain.parameters(), lr=1e-4)
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


def in_plain_training(
    model: nn.Module, train: Callable[[nn.Module], None], names: str = "01234"
) -> dict[str, list[np.ndarray]]:
    """Module -> the gradients of what it returned, one for each pass that reached it, without Endoscope."""
    plain, found = copy.deepcopy(model), dict[str, list[np.ndarray]]()
    for name in names:

        def after(_: nn.Module, __: Any, out: Tensor, name: str = name) -> None:
            out.register_hook(lambda gradient: found.setdefault(name, []).append(gradient.detach().numpy().copy()))

        plain.get_submodule(name).register_forward_hook(after)
    train(plain)
    return found


def doubled(out: Tensor) -> Tensor:
    out.register_hook(lambda gradient: 2 * gradient)
    return out


class Hooking(nn.Module):
    """Its forward puts a hook on what a container has returned."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = usual()
        self.hooks = False

    def forward(self, x: Tensor) -> Tensor:
        out = self.layers(x)
        return doubled(out) if self.hooks else out


def test_hooks_of_others_on_the_result_change_what_follows(tmp_path: Path, computed: list[str]) -> None:
    model, data = Hooking(), torch.randn(6, 5)
    loop = Loop(tmp_path, model, keep=6)
    model.hooks = True
    loop.step(lambda step: (model(data) ** 2).sum(), keep=True)  # so that such a call is known
    model.hooks = False
    quiet_steps(loop, data)
    model.hooks = True
    names = "0123"
    layers = ["layers." + name for name in names]

    def train(plain: nn.Module) -> None:
        (plain(data) ** 2).sum().backward()

    plain = copy.deepcopy(model)
    found: dict[str, np.ndarray] = {}
    for name in layers:
        plain.get_submodule(name).register_forward_hook(
            lambda _, __, out, name=name: out.register_hook(lambda g: found.update({name: g.numpy().copy()})) and None
        )
    train(plain)
    loop.step(lambda step: (model(data) ** 2).sum(), keep=True)
    recording = loop.recording()
    for name in layers:
        assert np.array_equal(recording.tensor(name, QUIET + 1, of="gradient:loss"), found[name]), name
    assert not computed


def test_our_hook_on_the_result_comes_before_those_of_others(tmp_path: Path) -> None:
    model, data = Hooking(), torch.randn(6, 5)
    model.hooks = True
    loop = Loop(tmp_path, model, keep=6)
    for number in range(4):
        expected = (2 * copy.deepcopy(model).layers(data)).detach().numpy()
        loop.step(lambda step: (model(data) ** 2).sum(), keep=True)
        del number
    found = loop.recording().tensor("layers", 3, of="gradient:loss")
    assert np.array_equal(found, expected)


def test_a_result_that_is_written_into_has_a_gradient_of_its_own(tmp_path: Path) -> None:
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)

    def body(step: Any) -> Tensor:
        out = loop.model(data)
        out.mul_(2)
        step.tag("scaled", out)
        return (out**2).sum()

    for _ in range(6):
        loop.step(body, keep=False)
    scaled = 2 * copy.deepcopy(loop.model)(data).detach()
    loop.step(body, keep=True)
    recording = loop.recording()
    assert np.array_equal(recording.tensor("scaled", 6, of="gradient:loss"), (2 * scaled).numpy())
    assert np.array_equal(recording.tensor("4", 6, of="gradient:loss"), (4 * scaled).numpy())


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
@pytest.mark.parametrize("then", ["limited", "whole", "created"])
def test_a_second_pass_over_the_graph(tmp_path: Path, computed: list[str], then: str) -> None:
    """What followed from the first one is computed before it, and nothing follows from it."""
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)

    def passes(model: nn.Module, first: Any, second: Any) -> None:
        out = model(data)
        with first:
            (out**2).sum().backward(retain_graph=True, create_graph=then == "created")
        with second:
            if then == "limited":
                out.abs().sum().backward(inputs=[model.get_submodule("2").weight])
            elif then == "whole":
                out.abs().sum().backward()
            else:
                torch.stack([p.grad.square().sum() for p in model.parameters()]).sum().backward()

    nothing = torch.enable_grad
    expected = in_plain_training(loop.model, lambda plain: passes(plain, nothing(), nothing()))
    with loop.run.step() as step:
        passes(loop.model, step.gradients("first"), step.gradients("second"))
        step.decide(keep=True)
    assert "Linear" in computed
    recording = loop.recording()
    for name, gradients in expected.items():
        for loss, gradient in zip(("first", "second"), gradients, strict=False):
            assert np.array_equal(recording.tensor(name, QUIET, of=f"gradient:{loss}"), gradient), (name, loss)
    reached = recording.sql(f"""select distinct node from stats where step = {QUIET} and "of" = 'gradient:second'""")
    assert {str(row[0]) for row in reached} & set("01234") == {n for n, found in expected.items() if len(found) > 1}


def test_hooks_on_parameters_that_write_into_them(tmp_path: Path, computed: list[str]) -> None:
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    expected = in_plain_training(loop.model, lambda plain: (plain(data) ** 2).sum().backward())

    def write(parameter: Tensor) -> None:
        parameter.data.sub_(0.1 * parameter.grad)
        parameter.grad = None

    handles = [p.register_post_accumulate_grad_hook(write) for p in loop.model.parameters()]
    loop.step(lambda step: (loop.model(data) ** 2).sum(), keep=True)
    for handle in handles:
        handle.remove()
    assert not computed
    recording = loop.recording()
    for name, (gradient,) in expected.items():
        assert np.array_equal(recording.tensor(name, QUIET, of="gradient:loss"), gradient), name


def test_the_end_of_a_step_under_autocast_and_a_mode(tmp_path: Path, computed: list[str]) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    expected = in_plain_training(loop.model, lambda plain: (plain(data) ** 2).sum().backward())
    step = loop.run.step()
    with step:
        (loop.model(data) ** 2).sum().backward()
        step.decide(keep=True)
        mode, autocast = Mode(), torch.autocast("cpu", dtype=torch.bfloat16)
        mode.__enter__()
        autocast.__enter__()
    autocast.__exit__(None, None, None)
    mode.__exit__(None, None, None)
    assert "Linear" in computed and not [name for name in seen if "mm" in name]
    recording = loop.recording()
    for name, (gradient,) in expected.items():
        assert np.array_equal(recording.tensor(name, QUIET, of="gradient:loss"), gradient), name


def test_a_weight_that_is_exchanged_before_anybody_looks(tmp_path: Path, computed: list[str]) -> None:
    from torch.nn.utils import prune

    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)
    expected = in_plain_training(loop.model, lambda plain: (plain(data) ** 2).sum().backward())
    with loop.run.step() as step:
        (loop.model(data) ** 2).sum().backward()
        loop.optimizer.step()
        loop.optimizer.zero_grad()
        prune.l1_unstructured(loop.model[2], "weight", 0.3)
        step.decide(keep=True)
    assert "Linear" in computed
    recording = loop.recording()
    for name, (gradient,) in expected.items():
        assert np.array_equal(recording.tensor(name, QUIET, of="gradient:loss"), gradient), name


def test_a_pass_that_fails(tmp_path: Path, computed: list[str]) -> None:
    loop, data = Loop(tmp_path, usual(), keep=6), torch.randn(6, 5)
    quiet_steps(loop, data)

    def fail(_: Tensor) -> None:
        raise ValueError("theirs")

    with loop.run.step() as step:
        out = loop.model(data)
        loss = (out**2).sum()
        out.register_hook(fail)
        with pytest.raises(ValueError, match="theirs"):
            loss.backward()
        step.decide(keep=True)
    assert not computed
    recording = loop.recording()
    with pytest.raises(LookupError):
        recording.tensor("0", QUIET, of="gradient:loss")


def test_a_result_whose_place_another_tensor_takes(tmp_path: Path) -> None:
    """Results are not held when notes of them are read, so the next one may have the same id."""
    model, data = usual(), torch.randn(6, 5)
    loop = Loop(tmp_path, model, keep=6)

    def body(step: Any) -> Tensor:
        for _ in range(5):
            out = model(data)
            step.tag("looked at", data)  # the notes are read
            del out
        return (model(data) ** 2).sum()

    for _ in range(3):
        loop.step(body, keep=False)
    expected = in_plain_training(model, lambda plain: (plain(data) ** 2).sum().backward())
    loop.step(body, keep=True)
    recording = loop.recording()
    for name, (gradient,) in expected.items():
        assert np.array_equal(recording.tensor(name, 3, of="gradient:loss", pass_=6), gradient), name
