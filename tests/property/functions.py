"""Steps that compute something new, decide where the program goes, or forget a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.property.program import CONSTANTS, Rule, Scene, Step


def _pure(text: str, type_: str, call: Callable[..., Any], *operands: int, **more: Any) -> Step:
    return Step(text, type_, lambda v: call(*[v[i] for i in operands]), operands, **more)


def of_one(scene: Scene) -> Step | None:
    i = scene.tensor()
    if i is None:
        return None
    options = [
        _pure(f"v{i} * 2", "mul", lambda t: t * 2, i),
        _pure(f"v{i} * 1.0", "mul", lambda t: t * 1.0, i),
        _pure(f"v{i}.clone()", "clone", lambda t: t.clone(), i),
        _pure(f"torch.sin(v{i})", "sin", torch.sin, i),
        _pure(f"v{i}.sum()", "sum", lambda t: t.sum(), i),
        _pure(f"v{i} > 0", "gt", lambda t: t > 0, i),
        _pure(f"torch.zeros_like(v{i})", "zeros_like", torch.zeros_like, i),
    ]
    return scene.choices.one_of(options)


def of_rows(scene: Scene) -> Step | None:
    i = scene.tensor(lambda t: t.dim() > 0 and t.shape[0] >= 2)
    if i is None:
        return None
    order = CONSTANTS["ORDER"]
    options = [
        _pure(f"v{i}.sum(0)", "sum", lambda t: t.sum(0), i),
        _pure(f"v{i}.flip(0)", "flip", lambda t: t.flip(0), i),
        _pure(f"v{i}[ORDER]", "getitem", lambda t: t[order], i, constants=("ORDER",)),
        _pure(f"v{i}.max(0)", "max", lambda t: t.max(0), i, results=2),
        _pure(f"v{i}.cumsum(0)", "cumsum", lambda t: t.cumsum(0), i),
    ]
    return scene.choices.one_of(options)


def of_two(scene: Scene) -> Step | None:
    i = scene.tensor()
    j = None if i is None else scene.partner(i)
    if i is None or j is None:
        return None
    m = scene.tensor(lambda t: t.dtype is torch.bool and t.shape == scene.variables[i].shape)
    options = [
        _pure(f"v{i} + v{j}", "add", lambda a, b: a + b, i, j),
        _pure(f"torch.mul(v{i}, v{j})", "mul", torch.mul, i, j),
        _pure(f"torch.cat([v{i}, v{i}])", "cat", lambda a: torch.cat([a, a]), i),
    ]
    if scene.variables[i].shape == scene.variables[j].shape:
        options.append(_pure(f"torch.stack([v{i}, v{j}])", "stack", lambda a, b: torch.stack([a, b]), i, j))
    if m is not None:
        options += [
            _pure(f"torch.where(v{m}, v{i}, v{j})", "where", torch.where, m, i, j),
            _pure(f"v{i}[v{m}]", "getitem", lambda t, o: t[o], i, m),
        ]
    return scene.choices.one_of(options)


def from_nothing(scene: Scene) -> Step | None:
    options = [
        Step("torch.ones(4, 4)", "ones", lambda _: torch.ones(4, 4)),
        Step("torch.arange(4.0)", "arange", lambda _: torch.arange(4.0)),
        Step("torch.randn(2, 4)", "randn", lambda _: torch.randn(2, 4)),
    ]
    return scene.choices.one_of(options)


def decide(scene: Scene) -> Step | None:
    i = scene.tensor(lambda t: t.numel() == 1 and not t.is_complex())
    if i is None:
        return None
    taken = bool(scene.variables[i])
    text = f"if {'not ' * taken}v{i}: return"
    return Step(text, "", lambda v: bool(v[i]), (i,), results=0, branch=taken)


def forget(scene: Scene) -> Step | None:
    """The variable dies; its memory may be used again, its neighbours live on."""
    i = scene.tensor()
    if i is None or sum(t is not None for t in scene.variables) < 3:
        return None

    def call(variables: list[Any]) -> None:
        variables[i] = None

    return Step(f"del v{i}", "", call, (i,), results=0, drops=True)


FUNCTIONS: tuple[Rule, ...] = (of_one, of_one, of_rows, of_two, of_two, from_nothing, decide, forget)
