"""Code that runs without Endoscope runs with it, and errors arrive as they would."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import identical

X = torch.arange(1.0, 13.0).reshape(3, 4)


class Ordinary(torch.Tensor):
    """A subclass as the documentation of torch recommends it: it hands every call to its base class."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


COMPOSITES: dict[str, Callable[[Tensor], Any]] = {
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros(3, dtype=torch.long)),
    "split": lambda x: torch.split(x, 1)[0],
    "norm": lambda x: x.norm(),
    "einsum": lambda x: torch.einsum("ij->j", x),
    "subtraction turned round": lambda x: 1 - x,
    "unique": lambda x: x.unique(),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_of_a_subclass_that_calls_its_base(name: str) -> None:
    function, x = COMPOSITES[name], X.as_subclass(Ordinary)
    assert identical(endoscope.trace(function, x).result, function(x))


def test_attention_on_a_subclass() -> None:
    attention, x = nn.MultiheadAttention(4, 2), X.as_subclass(Ordinary)
    assert identical(endoscope.trace(attention, (x, x, x)).result[0], attention(x, x, x)[0])


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning")
def test_lazy_modules_are_initialised_by_a_traced_run() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    trace = endoscope.trace(model, X)
    assert trace.result.shape == (3, 3)
    assert "linear" in {op.type for op in trace}


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_frozen_script_has_no_training_flag() -> None:
    frozen = torch.jit.freeze(torch.jit.script(nn.Sequential(nn.Linear(4, 2)).eval()))
    assert identical(endoscope.trace(frozen, X).result, frozen(X))


def test_a_result_that_contains_itself() -> None:
    class Loops(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Any]:
            result: dict[str, Any] = {"y": x * 2}
            result["self"] = result
            return result

    assert len(endoscope.trace(Loops(), X).outputs) == 1


class Fails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        raise ValueError(f"bad: {self.fc(x).relu().shape}")


def test_the_users_error_still_crosses_process_borders() -> None:
    """Workers send their errors pickled; the partial trace must not be in the way."""
    with pytest.raises(ValueError, match="bad") as caught:
        endoscope.trace(Fails(), X)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_validating_inside_the_block() -> None:
    model = nn.Linear(4, 2)
    with endoscope.tracing(model) as trace:
        model(X)
        try:
            assert trace.validate().ok
        except endoscope.errors.EndoscopeError as error:
            assert "running" in str(error)  # noqa: PT017  refusing is fine if it says why
