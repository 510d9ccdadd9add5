"""Names are worked out again when anything in the watched models has changed, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from endoscope.recording.inventory import Inventory
from endoscope.recording.watch import make_watch


def model_and_inventory() -> tuple[nn.Module, Inventory]:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 1, bias=False)))
    inventory = Inventory([make_watch(model, None, None, None, 0, [])])
    inventory.refresh()
    return model, inventory


def test_what_is_the_same_is_not_worked_out_again() -> None:
    model, inventory = model_and_inventory()
    calls, positions = inventory.calls, inventory.positions
    model.load_state_dict(model.state_dict())
    inventory.refresh()
    assert inventory.calls is calls and inventory.positions is positions
    assert [id(p) for p in model.parameters()] == list(positions)


def rename(model: nn.Module) -> None:
    inner = model[2]  # type: ignore[index]
    inner.other = inner[0]
    del inner._modules["0"]


def move_to_another_table(model: nn.Module) -> None:
    inner = model[2][0]  # type: ignore[index]
    weight = inner.weight
    del inner.weight
    inner.register_buffer("weight", weight.detach())


def move_to_another_module(model: nn.Module) -> None:
    linear, inner = model[0], model[2][0]  # type: ignore[index]
    bias = linear._parameters.pop("bias")
    inner._parameters["bias"] = bias


def fill_an_empty_table(model: nn.Module) -> None:
    model.register_buffer("scale", torch.ones(1))


def exchange_a_table(model: nn.Module) -> None:
    model[0]._parameters = {"weight": nn.Parameter(torch.ones(3, 2)), "bias": None}  # type: ignore[index]


def exchange_a_parameter(model: nn.Module) -> None:
    model[0].weight = nn.Parameter(torch.ones(3, 2))  # type: ignore[index]


@pytest.mark.parametrize(
    "change",
    [
        rename,
        move_to_another_table,
        move_to_another_module,
        fill_an_empty_table,
        exchange_a_table,
        exchange_a_parameter,
    ],
)
def test_whatever_is_changed_is_seen(change: Callable[[nn.Module], None]) -> None:
    model, inventory = model_and_inventory()
    change(model)
    inventory.refresh()
    assert dict(inventory.parameters) == dict(model.named_parameters())
    assert [name for name, _ in inventory.buffers] == [name for name, _ in model.named_buffers()]
    names = {address for address, _ in inventory.calls.addresses.values()}
    assert names == {name for name, _ in model.named_modules()}


def test_a_table_with_the_same_contents_is_no_change() -> None:
    model, inventory = model_and_inventory()
    calls = inventory.calls
    model[0]._parameters = dict(model[0]._parameters)  # type: ignore[index]
    inventory.refresh()
    assert inventory.calls is calls
    exchange_a_parameter(model)
    inventory.refresh()
    assert inventory.calls is not calls


def test_names_are_copied_before_another_one_is_added() -> None:
    _, inventory = model_and_inventory()
    calls = type(inventory.calls)()
    calls.adopt(inventory.calls)
    assert calls.addresses is inventory.calls.addresses
    other = nn.Linear(1, 1)
    calls.know(other, "other")
    assert id(other) in calls.addresses and id(other) not in inventory.calls.addresses
    assert id(other.weight) in calls.named and id(other.weight) not in inventory.calls.named
    assert calls.first_name("0.weight") == "0.weight" and inventory.calls.first_name("other") is None
