"""`optimizer.zero_grad()` inside of a recorded step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import endoscope


def _model() -> tuple[torch.nn.Module, Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


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
