"""Memory of `torch.empty`: what is filled in parts is no gap, what is computed with unfilled is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

import endoscope

X = torch.arange(-5.0, 7.0).reshape(3, 4)


def rows(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    y[0] = x[0]
    y[1:] = x[1:] * 2
    return y + 1


def columns(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    y[..., 0::2] = x[:, :2]
    y[:, 1::2] = x[:, 2:]
    return y.sin()


def by_order(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    y[torch.randperm(3)] = x
    return y * 2


def by_mask(x: Tensor) -> Tensor:
    y = x.new_empty(3, 4)
    y[x > 0] = 1.0
    y.masked_fill_(x <= 0, 2.0)
    return y.sin()


def by_index(x: Tensor) -> Tensor:
    y = torch.empty(3, 4).index_copy_(0, torch.arange(3), x)
    z = torch.empty(3, 4).index_put_((torch.arange(3),), x)
    return y + z + torch.empty(3, 4).scatter_(0, torch.arange(3)[:, None].expand(3, 4), x)


def by_place(x: Tensor) -> Tensor:
    return torch.empty(3, 4).put_(torch.arange(12), x.flatten()) * 2


def through_views(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    first, second, third = y
    first.copy_(x[0])
    second.zero_()
    torch.add(x[2], 1, out=third)
    return y.sin()


def by_item_and_by_view(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    y[0] = x[0]
    rest = y[1:]
    rest.copy_(x[1:])
    return y.sin()


def only_the_filled_part(x: Tensor) -> Tensor:
    y = torch.empty(6, 4)
    y[:3] = x
    return y[:3].sin()


def in_a_loop(x: Tensor) -> Tensor:
    y = torch.empty(3, 5, 4)
    for step in range(5):
        y[:, step] = x * step
    return y.sum()


def initialised(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    nn.init.xavier_normal_(y)
    nn.init.trunc_normal_(y)
    return nn.Linear(4, 4)(x) + nn.BatchNorm1d(4)(x) + y + x @ nn.init.eye_(torch.empty(4, 4))


def old_constructor(x: Tensor) -> Tensor:
    y = Tensor(3, 4)
    y[:2] = x[:2]
    y[2] = 0
    return y * 2


def inside_vmap(x: Tensor) -> Tensor:
    return torch.vmap(lambda row: torch.empty_like(row).copy_(row) * 2)(x)


def several_at_once(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    torch._foreach_copy_([y], [x])
    return y * 2


FILLED = [
    rows, columns, by_order, by_mask, by_index, by_place, through_views, by_item_and_by_view, only_the_filled_part,
    in_a_loop, initialised, old_constructor, inside_vmap, several_at_once,
]  # fmt: skip


@pytest.mark.parametrize("save", ["all", "none"])
@pytest.mark.parametrize("target", FILLED)
def test_what_is_filled_is_no_gap(target: Callable[[Tensor], Tensor], save: str) -> None:
    assert endoscope.trace(target, X, save=save).complete


@pytest.mark.parametrize("target", FILLED)
def test_it_is_proved(target: Callable[[Tensor], Tensor]) -> None:
    report = endoscope.validate(target, X)
    assert report, str(report)


def a_row_short(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    y[0] = x[0]
    y[2] = x[1]
    return y + 1


def the_other_part(x: Tensor) -> Tensor:
    y = torch.empty(6, 4)
    y[:3] = x
    return y[2:].sin()


def only_the_diagonal(x: Tensor) -> Tensor:
    return torch.empty(3, 4).fill_diagonal_(1.0).sin()


def added_to(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    y += x
    return y


def asked(x: Tensor) -> Tensor:
    return x if torch.empty(3).sum() > 0 else x * 2


@pytest.mark.parametrize("save", ["all", "none"])
@pytest.mark.parametrize("target", [a_row_short, the_other_part, only_the_diagonal, added_to, asked])
def test_what_nobody_filled_is_said(target: Callable[[Tensor], Tensor], save: str) -> None:
    warnings = endoscope.trace(target, X, save=save).warnings
    assert [warning.kind for warning in warnings] == ["unfilled"]
    assert warnings[0].source is not None
    assert warnings[0].source.line > target.__code__.co_firstlineno


def test_a_mode_of_the_user_sees_nothing_of_it() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        names: ClassVar[list[str]] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            self.names.append(func.name())
            return func(*args, **(kwargs or {}))

    with Count() as plain:
        rows(X)
    expected, Count.names = plain.names, []
    with Count() as traced:
        endoscope.trace(rows, X)
    assert traced.names == expected
