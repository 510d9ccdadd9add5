"""Nested values with other tensors in them; the originals stay as they are."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from endoscope.capture.change.rebuild import rebuilt


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Frozen:
    tensor: Tensor
    name: str


class Slotted:
    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


OLD, NEW, OTHER = torch.zeros(2), torch.ones(2), torch.full((2,), 5.0)


def exchange(tensor: Tensor) -> Tensor:
    return NEW if tensor is OLD else tensor


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for item in value.values() for t in tensors(item)]
    if isinstance(value, (list, tuple, deque)):
        return [t for item in value for t in tensors(item)]
    return [value.tensor]


@pytest.mark.parametrize(
    "value",
    [
        OLD, (OLD, OTHER), [OTHER, [OLD]], {"a": OLD, "b": (OTHER,)}, Pair(OTHER, OLD), Frozen(OLD, "x"), Slotted(OLD),
        OrderedDict(a=[OLD]), defaultdict(list, a=[OLD]), deque([OLD], maxlen=3), types.SimpleNamespace(tensor=OLD),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_one_tensor_is_exchanged(value: Any) -> None:
    before = tensors(value)
    made = rebuilt(value, exchange)
    assert type(made) is type(value)
    assert [id(NEW if t is OLD else t) for t in before] == [id(t) for t in tensors(made)]
    assert [id(t) for t in before] == [id(t) for t in tensors(value)]


def test_what_holds_no_exchanged_tensor_is_shared() -> None:
    inner, module = {"a": OTHER}, nn.Linear(1, 1)
    value = [inner, module, OLD, "text"]
    made = rebuilt(value, exchange)
    assert made[0] is inner and made[1] is module and made[2] is NEW
    assert rebuilt([OTHER, inner], exchange) == [OTHER, inner]


def test_always_copies_containers_and_objects_but_no_tensor_and_no_module() -> None:
    module, thing = nn.Linear(1, 1), types.SimpleNamespace(tensor=OTHER, items=[1])
    value = {"list": [OLD], "thing": thing, "module": module}
    made = rebuilt(value, lambda tensor: tensor, always=True)
    made["list"].append(1)
    made["thing"].items.append(2)
    made["thing"].tensor = NEW
    assert value["list"] == [OLD] and thing.items == [1] and thing.tensor is OTHER
    assert made["module"] is module and made["list"][0] is OLD


def test_one_object_in_two_places_stays_one_object() -> None:
    shared = [OLD]
    made = rebuilt((shared, shared), exchange)
    assert made[0] is made[1] and made[0][0] is NEW


def test_circles_end() -> None:
    value: list[Any] = [OLD]
    value.append(value)
    assert rebuilt(value, exchange)[0] is NEW


def test_what_cannot_be_copied_is_handed_on() -> None:
    class Stubborn:
        def __init__(self) -> None:
            self.tensor = OLD

        def __copy__(self) -> Any:
            raise TypeError

    value = Stubborn()
    assert rebuilt(value, exchange) is value and value.tensor is OLD
