"""Memory for the values of parameters is used again as long as they are the same, and made anew when they are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import endoscope
from endoscope.recording.rooms import Rooms


def test_the_same_parameters_have_the_same_memory() -> None:
    one, two = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))
    known, rooms = {id(one): 0, id(two): 1}, Rooms()
    assert not rooms.are_for(known, [one, two])
    rooms.make_for(known, [one, two], [0, 1])
    targets = rooms.targets
    assert rooms.are_for(known, [one, two]) and rooms.positions == [0, 1]
    assert not rooms.are_for(known, [two, one]) and not rooms.are_for(known, [one])
    assert not rooms.are_for(dict(known), [one, two])  # positions may have changed
    rooms.make_for(known, [two], [1])
    assert rooms.targets[0] is targets[1]


def other_shape(parameter: nn.Parameter) -> None:
    parameter.data = torch.ones(5)


def other_type(parameter: nn.Parameter) -> None:
    parameter.data = parameter.data.double()


def frozen(parameter: nn.Parameter) -> None:
    parameter.requires_grad_(False)


@pytest.mark.parametrize("change", [other_shape, other_type, frozen])
def test_what_has_changed_is_noticed(change: Callable[[nn.Parameter], None]) -> None:
    parameter, rooms = nn.Parameter(torch.ones(3)), Rooms()
    known = {id(parameter): 0}
    rooms.make_for(known, [parameter], [0])
    change(parameter)
    assert not rooms.are_for(known, [parameter])
    rooms.make_for(known, [parameter], [0])
    assert rooms.targets[0].shape == parameter.shape and rooms.targets[0].dtype == parameter.dtype


def test_memory_on_another_device_is_not_used() -> None:
    """A model may be moved after its first steps; its parameters stay who they are."""
    parameter, rooms = nn.Parameter(torch.ones(3)), Rooms()
    rooms._rooms[id(parameter)] = torch.empty(3, device="meta")
    rooms.make_for({id(parameter): 0}, [parameter], [0])
    assert rooms.targets[0].device == parameter.device


def test_updates_are_right_when_parameters_change_between_steps(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    expected: list[float] = []
    with endoscope.Run(tmp_path, trial="t", when=1, keep=0, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(6):
            model(torch.ones(4, 3)).sum().backward()
            before = model.weight.detach().clone()
            optimizer.step()
            expected.append(float((model.weight.detach() - before).norm()))
            optimizer.zero_grad()
            if number == 1:
                model.bias.requires_grad_(False)
            if number == 3:
                model.weight.data = torch.ones(2, 3, dtype=torch.float32) * 3
    series = endoscope.open(run.path).series("weight", "norm", of="update")
    assert series.values.tolist() == pytest.approx(expected)
