"""Tensors that are handed on without a function that torch shows to modes: the way from input to output is whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope

X = torch.arange(1.0, 13.0).reshape(3, 4)


class Plain(Tensor):
    pass


class Own(Tensor):
    """Answers torch's functions itself, and hands on what it knows besides its numbers."""

    def __new__(cls, data: Any, unit: str = "") -> Own:
        made = Tensor._make_subclass(cls, torch.as_tensor(data))
        made.unit = unit  # type: ignore[attr-defined]
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


class Pair(Tensor):
    """Has no memory of its own: two tensors inside."""

    left: Tensor
    right: Tensor

    @staticmethod
    def __new__(cls, left: Tensor, right: Tensor) -> Pair:
        made = Tensor._make_wrapper_subclass(cls, left.shape, dtype=left.dtype)  # type: ignore[attr-defined]
        made.left, made.right = left, right
        return made  # type: ignore[no-any-return]

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["left", "right"], None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def part(value: Any, name: str) -> Any:
            return getattr(value, name) if isinstance(value, Pair) else value

        left, right = ([func(*[part(a, name) for a in args], **(kwargs or {}))] for name in ("left", "right"))
        return Pair(left[0], right[0]) if isinstance(left[0], Tensor) else left[0]


def through_set(x: Tensor) -> Tensor:
    y = torch.empty(0)
    y.set_(x * 2)
    return y + 1


def through_storage(x: Tensor) -> Tensor:
    z = x * 2
    y = torch.empty(0).set_(z.untyped_storage(), 0, (3, 4), (4, 1))
    return y + 1


def back_again(x: Tensor) -> Tensor:
    return (x * 2).as_subclass(Own).sin().as_subclass(Tensor).cos()


def two_parts(x: Tensor) -> Tensor:
    return (Pair(x * 2, x * 3) + 1).right


TARGETS: list[Callable[[Tensor], Any]] = [
    lambda x: (x * 2).as_subclass(Plain) + 1,
    lambda x: Plain(x * 2) + 1,
    lambda x: Tensor._make_subclass(Plain, x * 2) + 1,
    lambda x: Tensor(x * 2) + 1,
    lambda x: Own(x * 2, "m") + x,
    lambda x: nn.Parameter(x * 2) + 1,
    lambda x: nn.Buffer(x * 2) + 1,
    lambda x: Tensor([x.sum(), x.mean()]) * 2,
    lambda x: torch.nested.nested_tensor([x[0], x[1]]).to_padded_tensor(0.0),
    lambda x: torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.jagged).to_padded_tensor(0.0),
    lambda x: torch.nested.as_nested_tensor([x[:1], x[1:]], layout=torch.jagged).sin().to_padded_tensor(0.0),
    back_again,
    through_set,
    through_storage,
    two_parts,
]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("save", ["all", "none"])
@pytest.mark.parametrize("target", TARGETS)
def test_the_output_comes_from_the_input(target: Callable[[Tensor], Any], save: str) -> None:
    trace = endoscope.trace(target, X, save=save)
    assert [op.relations.from_input for op in trace.outputs] == [True]
    assert trace.complete


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("target", TARGETS)
def test_it_is_proved(target: Callable[[Tensor], Any]) -> None:
    report = endoscope.validate(target, X)
    assert report, str(report)


def test_the_class_that_is_asked_for_is_made() -> None:
    trace = endoscope.trace(lambda x: Plain(x * 2), X)
    assert type(trace.result) is Plain
    assert [op.type for op in trace.ops] == ["input", "mul", "as_subclass", "output"]


def test_what_a_subclass_does_with_its_results_is_no_operation() -> None:
    trace = endoscope.trace(lambda x: x.as_subclass(Own).sin(), X)
    assert [op.type for op in trace.ops] == ["input", "as_subclass", "sin", "output"]


def test_memory_that_is_taken_over_has_not_been_written() -> None:
    def target(x: Tensor) -> tuple[Tensor, Tensor]:
        y, z = torch.empty(0), x * 2
        y.set_(z)
        return y + 1, z + 2

    trace = endoscope.trace(target, X)
    assert [p.type for p in trace["add_2"].parents] == ["mul"]


def test_the_names_of_torch_are_its_own_again() -> None:
    before = {name: getattr(Tensor, name) for name in ("as_subclass", "set_", "_make_subclass")}
    endoscope.trace(lambda x: Plain(x), X)
    assert all(getattr(Tensor, name) is value for name, value in before.items())
    assert "__new__" not in vars(Tensor)
