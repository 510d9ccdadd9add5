"""`optimizer.zero_grad()` inside of a recorded step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import endoscope


class Groups(list[Any]):
    """Parameter groups that notice how many modes are on when they are looked through."""

    modes: list[int]

    def __iter__(self) -> Iterator[Any]:
        self.modes.append(torch._C._len_torch_function_stack())
        return super().__iter__()


def _model() -> tuple[torch.nn.Module, Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_only_what_writes_is_listened_to(tmp_path: Path, set_to_none: bool) -> None:
    model, optimizer = _model()
    code = torch.optim.Optimizer.zero_grad.__wrapped__.__code__
    groups = Groups(optimizer.param_groups)
    groups.modes = []
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            loss = model(torch.randn(3, 4)).sum()
            assert torch._C._len_torch_function_stack() == 1
            optimizer.param_groups, plain = groups, optimizer.param_groups
            groups.modes.clear()
            optimizer.zero_grad(set_to_none=set_to_none)
            optimizer.param_groups = plain
            assert groups.modes == [0 if set_to_none else 1]
            assert torch._C._len_torch_function_stack() == 1
            loss.backward()
            optimizer.step()
    assert torch.optim.Optimizer.zero_grad.__wrapped__.__code__ is code
    recording = endoscope.open(run.path)
    assert len(recording.steps) == 3
    assert not recording.gaps
    assert len(recording.series("weight", "norm", of="gradient:loss").values) == 3


def test_the_mode_of_somebody_else_sees_it(tmp_path: Path) -> None:
    class Seeing(torch.overrides.TorchFunctionMode):
        seen = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            type(self).seen += getattr(func, "__self__", None) is torch.Tensor.grad
            return func(*args, **(kwargs or {}))

    model, optimizer = _model()
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run, Seeing():
        run.watch(model, optimizer)
        loss = model(torch.randn(3, 4)).sum()
        before = Seeing.seen
        optimizer.zero_grad()
        assert Seeing.seen > before
        loss.backward()
        optimizer.step()
    assert len(endoscope.open(run.path).steps) == 1


def test_an_error_in_it_leaves_the_recorder_in_place(tmp_path: Path) -> None:
    model, optimizer = _model()
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        loss = model(torch.randn(3, 4)).sum()
        groups, optimizer.param_groups = optimizer.param_groups, 5
        with pytest.raises(TypeError):
            optimizer.zero_grad()
        optimizer.param_groups = groups
        assert torch._C._len_torch_function_stack() == 1
        loss.backward()
        optimizer.step()
    assert len(endoscope.open(run.path).steps) == 1


def test_gradients_of_the_step_survive_zeros_that_are_written(tmp_path: Path) -> None:
    model, optimizer = _model()
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        with run.step():
            model(torch.ones(3, 4)).sum().backward()
            wanted = float(model.weight.grad.norm())
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    found = endoscope.open(run.path).series("weight", "norm", of="gradient:loss").values
    assert found.tolist() == pytest.approx([wanted])
