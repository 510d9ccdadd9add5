"""Names that a reader of the model would type are understood; what is wrong is explained."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.errors import BadArgument
from tests.contract.helpers import labels

X = torch.arange(1.0, 7.0).reshape(2, 3)


def test_a_shared_module_answers_to_all_its_addresses() -> None:
    shared = nn.Linear(3, 3)
    trace = endoscope.trace(nn.Sequential(shared, nn.ReLU(), shared), X)
    assert len(trace["2"]) == len(trace["0"]) == 2
    assert trace["2.weight"] is trace["0.weight"]


def test_a_tied_weight_answers_to_all_its_names() -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    trace = endoscope.trace(nn.Sequential(first, second), X)
    assert trace["1.weight"] is trace["0.weight"]


@dataclasses.dataclass
class Encoded:
    hidden: Tensor
    notes: list[str]


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Encoded:
        return Encoded(self.fc(x).relu(), [])


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x).hidden * 2


def test_a_module_that_returns_a_dataclass_can_be_looked_up_and_kept() -> None:
    assert endoscope.trace(Model(), X)["encoder"].label == "relu_1_2"
    assert labels(endoscope.trace(Model(), X, save="encoder").kept) == ["relu_1_2"]


def test_inside_a_module_whose_address_is_a_number() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Linear(3, 3))
    assert labels(endoscope.trace(model, X, save="in:0").kept) == ["linear_1_1", "relu_1_2"]


def test_an_unknown_kind_lists_the_kinds() -> None:
    with pytest.raises(BadArgument, match="parameter"):
        endoscope.trace(nn.Linear(3, 3), X, save="kind:bar")


@pytest.mark.parametrize("target", [None, nn.Linear])
def test_targets_that_are_no_model_are_refused(target: Any) -> None:
    with pytest.raises(BadArgument, match="target"):
        endoscope.trace(target, X)


def test_validate_refuses_the_same_targets() -> None:
    with pytest.raises(BadArgument, match="target"):
        endoscope.validate("model", X)


@pytest.mark.parametrize("seed", ["a", 1.5, 2**70])
def test_seeds_that_are_none_are_refused(seed: Any) -> None:
    with pytest.raises(BadArgument, match="seed"):
        endoscope.trace(nn.Linear(3, 3), X, seed=seed)
