"""Origins in recordings of programs that do things outside of modules, stop by themselves, or hide what they do."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Variable

import endoscope
from endoscope.schema.origin import Origin

BAD_STEP, SAMPLE = 6, 3
Body = Callable[[nn.Module, Tensor, bool], Tensor]


# ---- NaN that is made outside of modules; the guilty line ends in `# here` ---------------------------------


def with_a_new_tensor(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
    weights = torch.tensor([1.0, 2.0, 1.0, 0.0 if bad else 1.0, 1.0, 3.0])
    return (model(x).sum(1) * torch.log(weights)).mean()  # here


def with_a_variable(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
    noise = Variable(torch.full((6, 1), 0.0 if bad else 0.5))
    return (model(Variable(x)).exp() + torch.rsqrt(noise)).mean()  # here


def with_an_array(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
    lengths = torch.from_numpy(np.full(6, 0.0 if bad else 2.0, np.float32))
    return (model(x).sum(1) / lengths).mean()  # here


def with_a_mask(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
    mask = torch.zeros(6, 2) if bad else torch.ones(6, 2)
    kept = mask.sum(1)
    return ((model(x) * mask).sum(1) / kept).mean()  # here


BODIES: list[Body] = [with_a_new_tensor, with_a_variable, with_an_array, with_a_mask]


def _line(body: Body) -> str:
    lines, first = inspect.getsourcelines(body)
    return f"{Path(__file__).name}:{first + next(n for n, line in enumerate(lines) if '# here' in line)}"


def _recorded(body: Body, folder: Path, *, watched: bool = True, what: str | None = None) -> str:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with endoscope.Run(folder, trial="t", when=1, strict=True) as run:
        if watched:
            run.watch(model, optimizer, what=what)
        for number in range(9):
            with contextlib.nullcontext() if watched else run.step():
                loss = body(model, torch.rand(6, 4) + 0.1, number == BAD_STEP)
                if not torch.isfinite(loss):
                    break
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return run.path


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "run.step()"])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_line_outside_of_any_module_is_named(body: Body, watched: bool, tmp_path: Path) -> None:
    found = endoscope.origin(_recorded(body, tmp_path, watched=watched))
    assert found and found[0].source.endswith(_line(body)) and found[0].exact and found[0].step == BAD_STEP


def from_a_number(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
    out = model(x)
    scale = 0.0 if bad else float(out.detach().abs().max())
    return (out.abs() / scale).mean()  # here


def on_another_way(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
    out = model(x)
    if bad:
        out = torch.log(-out.abs())  # here
    return out.mean()


def outside_of_what_is_seen(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
    penalty = torch.sqrt(x[:, 0] - (9.0 if bad else 0.0)).mean()
    return model(x).square().mean() + penalty


UNKNOWN: list[Body] = [from_a_number, on_another_way, outside_of_what_is_seen]


@pytest.mark.parametrize("body", UNKNOWN, ids=lambda body: body.__name__)
def test_what_cannot_be_known_is_not_called_exact(body: Body, tmp_path: Path) -> None:
    found = endoscope.origin(_recorded(body, tmp_path))
    assert found and not found[0].exact and "or what is before it" in str(found[0])


@pytest.mark.parametrize("body", UNKNOWN[:2], ids=lambda body: body.__name__)
def test_it_is_known_where_every_operation_is_recorded(body: Body, tmp_path: Path) -> None:
    found = endoscope.origin(_recorded(body, tmp_path, what="*"))
    assert found and found[0].exact and found[0].source.endswith(_line(body))


def test_the_command_says_what_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from endoscope.cli import main

    path = _recorded(on_another_way, tmp_path)
    capsys.readouterr()
    assert main(["origin", path]) == 0
    assert "what='*'" in capsys.readouterr().out


def test_minus_infinity_that_goes_into_a_layer_is_no_mask(tmp_path: Path) -> None:
    def logarithm(model: nn.Module, x: Tensor, bad: bool) -> Tensor:
        x = torch.where((torch.arange(6) == SAMPLE)[:, None] & torch.tensor(bad), 0.0, x)
        return model(torch.log(x)).square().mean()

    [first, *_] = endoscope.origin(_recorded(logarithm, tmp_path))
    assert (first.operation, first.node, first.samples) == ("input", "input", (SAMPLE,))


# ---- one sample that is unlike the others ------------------------------------------------------------------


class Gated(nn.Module):
    """The same operations in every step; one sample is scaled between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = nn.Linear(5, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor, kind: Tensor) -> Tensor:
        h = nn.functional.silu(self.before(x))
        h = h * (1 + 59 * kind)[:, None]  # here
        return self.behind(h)


class Attending(Gated):
    """The softmax takes the outlier away before the next module sees it."""

    def forward(self, x: Tensor, kind: Tensor) -> Tensor:
        parts = self.before(x).unflatten(1, (3, 4))
        scores = parts @ parts.transpose(1, 2) * (1 + 59 * kind)[:, None, None]  # here
        return self.behind((torch.softmax(scores, -1) @ parts).flatten(1))


def _with_a_loud_sample(model: Gated, folder: Path, what: str | None = None) -> str:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with endoscope.Run(folder, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer, what=what)
        for number in range(9):
            kind = torch.zeros(10, dtype=torch.long)
            kind[SAMPLE] = number == BAD_STEP
            loss = model(torch.randn(10, 5), kind).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return run.path


def _asked(path: str) -> list[Origin]:
    return endoscope.origin(path, step=BAD_STEP, sample=SAMPLE)


def _line_of(model: Gated) -> int:
    lines, first = inspect.getsourcelines(type(model).forward)
    return first + next(n for n, line in enumerate(lines) if "# here" in line)


def test_the_operation_that_made_a_sample_loud(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Gated()
    path = _with_a_loud_sample(model, tmp_path)
    found = _asked(path)
    assert found[0].operation == "mul" and found[0].source.endswith(f":{_line_of(model)}") and found[0].exact
    assert found[0].samples == (SAMPLE,) and found[0].step == BAD_STEP and found[0].node == "behind"
    assert "the result of mul of sample 3" in str(found[0])
    assert endoscope.origin(path, step=BAD_STEP - 1, sample=SAMPLE) == []


def test_what_a_softmax_absorbs_is_seen_where_every_operation_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from endoscope.cli import main

    torch.manual_seed(0)
    model = Attending()
    path = _with_a_loud_sample(model, tmp_path / "modules")
    assert _asked(path) == []
    capsys.readouterr()
    assert main(["origin", path, "--step", str(BAD_STEP), "--sample", str(SAMPLE)]) == 0
    assert "what='*'" in capsys.readouterr().out
    found = _asked(_with_a_loud_sample(model, tmp_path / "operations", "*"))
    assert found[0].operation == "mul" and found[0].source.endswith(f":{_line_of(model)}")


def test_looking_into_a_loud_sample_leaves_training_alone(tmp_path: Path) -> None:
    ends = []
    for folder in ("a", "b"):
        torch.manual_seed(0)
        model = Gated()
        if folder == "a":
            _with_a_loud_sample(model, tmp_path / folder)
        else:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
            for number in range(9):
                kind = torch.zeros(10, dtype=torch.long)
                kind[SAMPLE] = number == BAD_STEP
                loss = model(torch.randn(10, 5), kind).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        ends.append([*map(torch.clone, model.parameters()), torch.get_rng_state()])
    assert all(map(torch.equal, *ends))


# ---- the user's own guard ----------------------------------------------------------------------------------


class _Stopped(Exception):
    pass


def _guarded(how: str, folder: Path, when: Any) -> str:
    run = endoscope.Run(folder, trial="t", when=when)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run.watch(model, optimizer)

    def loop() -> None:
        for number in range(60):
            x = torch.rand(6, 4)
            shift = torch.zeros(6)
            shift[SAMPLE] = 1.0 if number == 57 else 0.0
            loss = (model(x).square().sum(1) + torch.log(1 - shift)).mean()
            if not torch.isfinite(loss):
                if how == "raise":
                    raise _Stopped
                if how == "sys.exit":
                    sys.exit("the loss is not finite")
                if how == "Ctrl-C":
                    raise KeyboardInterrupt
                if how == "return":
                    return
                break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    with contextlib.suppress(_Stopped, SystemExit, KeyboardInterrupt):
        loop()
    run.close()
    return run.path


WAYS = ("raise", "break", "sys.exit", "Ctrl-C", "return")


@pytest.mark.parametrize("how", WAYS)
def test_the_step_at_which_the_user_stopped_is_recorded(how: str, tmp_path: Path) -> None:
    when = endoscope.policies.either(endoscope.policies.every(25), endoscope.policies.on_nonfinite())
    path = _guarded(how, tmp_path, when)
    [first, *_] = endoscope.origin(path)
    assert (first.operation, first.samples, first.step) == ("log", (SAMPLE,), 57)


@pytest.mark.parametrize("how", WAYS)
def test_a_stop_in_a_step_that_was_not_recorded_is_a_finding(how: str, tmp_path: Path) -> None:
    path = _guarded(how, tmp_path, endoscope.policies.every(25))
    [found] = [one for one in endoscope.diagnose(path) if one.check == "lost_steps"]
    assert found.severity == "warning" and found.first_step == 57 and "step 57" in found.title
    assert "on_nonfinite()" in found.remedies[0]


def test_a_training_that_ends_with_an_update_has_no_such_finding(tmp_path: Path) -> None:
    path = _recorded(lambda model, x, bad: model(x).square().mean(), tmp_path)
    assert not [one for one in endoscope.diagnose(path) if one.check == "lost_steps"]
