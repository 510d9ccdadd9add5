"""Tensors inside nested values, with their paths."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from endoscope.capture.data.arguments import ATOMS, TENSOR, map_arguments
from endoscope.capture.record.leaves import argument_tensors, named_leaves

A, B, C = torch.zeros(1), torch.ones(2), torch.ones(3)
Pair = namedtuple("Pair", "left right")


@dataclass
class Box:
    """A dataclass with something nested."""

    inside: Any = None
    more: list[Any] = field(default_factory=list)


class Thing:
    """A plain object, as caches are."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def paths(value: Any, name: str = "") -> list[str]:
    return [path for path, _ in named_leaves(value, name)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (A, ["x"]),
        ([A, B], ["x[0]", "x[1]"]),
        ((A, [B, C]), ["x[0]", "x[1][0]", "x[1][1]"]),
        ({"a": A, 3: {"b": B}}, ["x['a']", "x[3]['b']"]),
        (Pair(A, [B]), ["x.left", "x.right[0]"]),
        (Box(A, [B]), ["x.inside", "x.more[0]"]),
        (Thing(cache=[Thing(key=A)]), ["x.cache[0].key"]),
        (OrderedDict(a=A), ["x['a']"]),
        ([A, A], ["x[0]", "x[1]"]),
        (nn.Linear(2, 2), []),
        ([1, "two", None, 3.0, slice(1)], []),
        ({"f": lambda: A}, []),
        (Box, []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_paths(value: Any, expected: list[str]) -> None:
    assert paths(value, "x") == expected


def test_without_a_name_an_attribute_has_no_leading_dot() -> None:
    assert paths(Pair(A, B)) == ["left", "right"]
    assert paths({"a": A}) == ["['a']"]


def test_circles_end() -> None:
    loop: list[Any] = [A]
    loop.append(loop)
    assert paths(loop, "x") == ["x[0]"]


def test_a_generator_is_a_leaf_and_stays_unconsumed() -> None:
    numbers = (A for _ in range(2))
    ((path, found),) = named_leaves([numbers], "x")
    assert (path, found) == ("x[0]", numbers)
    assert len(list(numbers)) == 2


VALUES = st.recursive(
    st.sampled_from([A, B, C, 1, "text", None, 2.5]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=12,
)


def slow_walk(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in slow_walk(item)]


@given(VALUES)
def test_argument_tensors_are_found_in_order(value: Any) -> None:
    found: list[Any] = []
    argument_tensors(value, found)
    assert [id(t) for t in found] == [id(t) for t in slow_walk(value)]


@given(VALUES)
def test_mapping_visits_the_same_tensors_and_keeps_everything_else(value: Any) -> None:
    seen: list[Any] = []

    def change(tensor: Any) -> Any:
        seen.append(tensor)
        return TENSOR

    bare = map_arguments(value, change)
    assert [id(t) for t in seen] == [id(t) for t in slow_walk(value)]
    assert slow_walk(bare) == []
    assert type(bare) is (type(TENSOR) if isinstance(value, Tensor) else type(value))
    back = iter(seen)
    restored = map_arguments(bare, lambda _: next(back))
    assert [id(t) for t in slow_walk(restored)] == [id(t) for t in slow_walk(value)]


def test_mapping_makes_new_lists() -> None:
    """The user may change a list after the call."""
    given = [A]
    kept = map_arguments((given,), lambda t: t)
    given.append(B)
    assert len(kept[0]) == 1


def test_atoms_never_hold_a_tensor() -> None:
    assert torch.Tensor not in ATOMS
    assert not {list, tuple, dict} & ATOMS


def test_the_placeholder_says_what_it_stands_for() -> None:
    assert repr((TENSOR, 2)) == "(tensor, 2)"
