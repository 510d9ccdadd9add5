"""Steps that change tensors in place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.property.program import CONSTANTS, Rule, Scene, Step
from tests.property.views import random_key


def _change(
    text: str, type_: str, call: Callable[..., Any], target: int, others: tuple[int, ...] = (), **more: Any
) -> Step:
    """The target is read and changed, unless the write is blind; the others are only read."""
    reads = others if more.get("blind") else (target, *others)
    more.setdefault("results", 1)
    return Step(text, type_, lambda v: call(v[target], *[v[i] for i in others]), reads, writes=(target,), **more)


def with_a_number(scene: Scene) -> Step | None:
    i = scene.tensor()
    if i is None:
        return None
    options = [
        _change(f"v{i}.add_(1)", "add", lambda t: t.add_(1), i),
        _change(f"v{i}.mul_(-2)", "mul", lambda t: t.mul_(-2), i),
        _change(f"v{i}.neg_()", "neg", lambda t: t.neg_(), i),
        _change(f"v{i} += 2", "add", lambda t: operator.iadd(t, 2), i),
        _change(f"F.relu(v{i}, inplace=True)", "relu", lambda t: F.relu(t, inplace=True), i),
        _change(f"v{i}.clamp_(-3, 3)", "clamp", lambda t: t.clamp_(-3, 3), i),
        _change(f"v{i}.tanh_()", "tanh", lambda t: t.tanh_(), i),
        _change(f"torch.Tensor.sub_(v{i}, 1)", "sub", lambda t: torch.Tensor.sub_(t, 1), i),
    ]
    return scene.choices.one_of(options)


def with_another_tensor(scene: Scene) -> Step | None:
    i = scene.tensor()
    j = None if i is None else scene.partner(i)
    if i is None or j is None:
        return None
    options = [
        _change(f"v{i}.add_(v{j})", "add", lambda t, o: t.add_(o), i, (j,)),
        _change(f"v{i}.mul_(v{j})", "mul", lambda t, o: t.mul_(o), i, (j,)),
        _change(f"v{i} -= v{j}", "sub", operator.isub, i, (j,)),
        _change(f"v{i}.copy_(v{j})", "copy", lambda t, o: t.copy_(o), i, (j,), blind=True),
        _change(f"v{i}.addcmul_(v{j}, v{j})", "addcmul", lambda t, o, p: t.addcmul_(o, p), i, (j, j)),
    ]
    return scene.choices.one_of(options)


def blind(scene: Scene) -> Step | None:
    i = scene.tensor()
    if i is None:
        return None
    options = [
        _change(f"v{i}.zero_()", "zero", lambda t: t.zero_(), i, blind=True),
        _change(f"v{i}.fill_(3)", "fill", lambda t: t.fill_(3), i, blind=True),
        _change(f"v{i}.fill_(ONE)", "fill", lambda t: t.fill_(CONSTANTS["ONE"]), i, blind=True, constants=("ONE",)),
        _change(f"v{i}.normal_()", "normal", lambda t: t.normal_(), i, blind=True),
        _change(f"v{i}.copy_(PAIR)", "copy", lambda t: t.copy_(CONSTANTS["PAIR"]), i, blind=True, constants=("PAIR",)),
    ]
    return scene.choices.one_of(options)


def into_out(scene: Scene) -> Step | None:
    i = scene.tensor()
    j = None if i is None else scene.tensor(lambda t: t.shape == scene.variables[i].shape)
    if i is None or j is None or scene.variables[i].dtype != scene.variables[j].dtype:
        return None
    k = scene.partner(j)
    assert k is not None
    options = [
        _change(f"torch.mul(v{j}, 3, out=v{i})", "mul", lambda t, a: torch.mul(a, 3, out=t), i, (j,), blind=True),
        _change(
            f"torch.add(v{j}, v{k}, out=v{i})", "add", lambda t, a, b: torch.add(a, b, out=t), i, (j, k), blind=True
        ),
        _change(f"torch.cat([v{j}], out=v{i})", "cat", lambda t, a: torch.cat([a], out=t), i, (j,), blind=True),
        _change(f"torch.neg(v{j}, out=v{i})", "neg", lambda t, a: torch.neg(a, out=t), i, (j,), blind=True),
    ]
    return scene.choices.one_of(options)


def set_item(scene: Scene) -> Step | None:
    i = scene.tensor(lambda t: t.dim() > 0 and t.numel() > 0)
    if i is None:
        return None
    target = scene.variables[i]
    key, shown = random_key(scene, target)
    hit = target.detach()[key]
    j = scene.tensor(lambda t: t.dtype == target.dtype and t.shape == hit.shape)
    if j is None or scene.choices.number(0, 1):
        return _change(f"v{i}[{shown}] = 7", "setitem", lambda t: operator.setitem(t, key, 7), i, results=0)
    return _change(f"v{i}[{shown}] = v{j}", "setitem", lambda t, o: operator.setitem(t, key, o), i, (j,), results=0)


def at_chosen_places(scene: Scene) -> Step | None:
    """Masks and index tensors."""
    i = scene.tensor(lambda t: t.dim() > 0 and t.shape[0] >= 2)
    if i is None:
        return None
    target = scene.variables[i]
    m = scene.tensor(lambda t: t.dtype is torch.bool and t.shape == target.shape)
    order = CONSTANTS["ORDER"]
    known: dict[str, Any] = {"constants": ("ORDER",)}
    options = [
        _change(f"v{i}[ORDER] = 4", "setitem", lambda t: operator.setitem(t, order, 4), i, results=0, **known),
        _change(f"v{i}.index_fill_(0, ORDER, 2)", "index_fill", lambda t: t.index_fill_(0, order, 2), i, **known),
    ]
    j = scene.tensor(lambda t: t.dtype == target.dtype and t.shape == (2, *target.shape[1:]))
    if j is not None:
        options += [
            _change(f"v{i}.index_copy_(0, ORDER, v{j})", "index_copy",
                    lambda t, o: t.index_copy_(0, order, o), i, (j,), **known),
            _change(f"v{i}.index_add_(0, ORDER, v{j})", "index_add",
                    lambda t, o: t.index_add_(0, order, o), i, (j,), **known),
        ]  # fmt: skip
    if m is not None:
        options += [
            _change(f"v{i}[v{m}] = -1", "setitem", lambda t, o: operator.setitem(t, o, -1), i, (m,), results=0),
            _change(f"v{i}.masked_fill_(v{m}, 9)", "masked_fill", lambda t, o: t.masked_fill_(o, 9), i, (m,)),
        ]
    return scene.choices.one_of(options)


def together(scene: Scene) -> Step | None:
    i, j = scene.tensor(), scene.tensor()
    if i is None or j is None or scene.variables[i] is scene.variables[j]:
        return None

    def call(v: list[Tensor]) -> None:
        torch._foreach_add_([v[i], v[j]], 1)

    return Step(f"torch._foreach_add_([v{i}, v{j}], 1)", "_foreach_add", call, (i, j), writes=(i, j), results=0)


def turn_in_place(scene: Scene) -> Step | None:
    """Only the shape of this object changes, no byte of memory."""
    i = scene.tensor(lambda t: t.dim() >= 2 and not any(t is given for given in scene.inputs))
    if i is None:
        return None
    options = [
        ("unsqueeze_(0)", "unsqueeze", lambda t: t.unsqueeze_(0), lambda x, _: [x[None]]),
        ("transpose_(0, 1)", "transpose", lambda t: t.transpose_(0, 1), lambda x, _: [x.swapaxes(0, 1)]),
        ("squeeze_()", "squeeze", lambda t: t.squeeze_(), lambda x, _: [x.squeeze()]),
    ]
    text, type_, call, turns = scene.choices.one_of(options)
    return Step(f"v{i}.{text}", type_, lambda v: call(v[i]), (i,), turns=turns)


WRITES: tuple[Rule, ...] = (
    with_a_number, with_a_number, with_another_tensor, with_another_tensor, blind, into_out, set_item, set_item,
    at_chosen_places, together,
)  # fmt: skip
TURNS: tuple[Rule, ...] = (turn_in_place,)
