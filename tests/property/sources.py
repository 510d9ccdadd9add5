"""Random functions as source text: subclasses, comprehensions, `empty` filled in parts, numbers in tests.

Every line makes one variable of shape (3, 4) out of earlier ones, smoothly: whatever a variable is made of moves it. So
the outputs that move with an input are exactly those that depend on it, and this can be found out without any graph.
"""

from __future__ import annotations

import itertools
import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

INPUTS = ("a", "b", "c")
_count = itertools.count()


class Plain(Tensor):
    """A subclass that changes nothing."""


class Own(Tensor):
    """One that is asked itself."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


@dataclass(frozen=True)
class Fragment:
    """Lines that make `{new}` of `{x}` and `{y}`."""

    text: str
    asks: bool = False  # a number decides what runs


FRAGMENTS = (
    Fragment("{new} = {x} * 2 + {y}"),
    Fragment("{new} = torch.sin({x}) - {y}.exp()"),
    Fragment("{new} = {x}.as_subclass(Plain) + 1"),
    Fragment("{new} = Plain({x}) + {y}"),
    Fragment("{new} = {x}.as_subclass(Own).cos().as_subclass(Tensor)"),
    Fragment("{new} = torch.Tensor._make_subclass(Plain, {x}) * {y}"),
    Fragment("{new} = torch.stack([row.sin() for row in {x}])"),
    Fragment("{new} = torch.cat([part * 3 for part in {x}.chunk(2, 1)], 1)"),
    Fragment("{new} = sum({x}.chunk(4, 1)) + {y}"),
    Fragment("{new} = torch.stack([p + q for p, q in zip({x}, {y})])"),
    Fragment("{new} = torch.empty(3, 4)\n{new}[0] = {x}[0] + {x}[1:].sum(0)\n{new}[1:] = {y}[1:] + {y}[0]"),
    Fragment("{new} = torch.empty_like({x})\n{new}[torch.tensor([2, 0, 1])] = {x} + 1"),
    Fragment("{new} = torch.empty(3, 4)\n{new}[:, ::2] = {x}.sum()\n{new}[:, 1::2].copy_({y}[:, 1::2] + {y}.sum())"),
    Fragment("{new} = torch.empty(0).set_({x} * 1.5)"),
    Fragment("{new} = torch.vmap(lambda row: row.sin() + row.sum())({x})"),
    Fragment("{new} = torch.func.grad(lambda v: v.pow(3).sum())({x})"),
    Fragment("{new} = {x} * 2\n{new}[0].add_({y}.sum())"),
    Fragment("{new} = {x} * 2 if {y}.sum().item() > 0 else {x} * 3", asks=True),
    Fragment("{new} = {x} + 1\nif float({y}.max()) < 0:\n    {new} = {new} * 2", asks=True),
    Fragment("{new} = {x} + 1\nassert int({y}.mean()) < 10**9\n{new} = {new} - 2", asks=True),
)


@dataclass(frozen=True)
class Source:
    """One random function."""

    text: str
    run: Callable[..., dict[str, Tensor]]
    asks: bool


def source_for(seed: int, lines: int = 6) -> Source:
    choices = random.Random(seed)
    known, body, asks = list(INPUTS), [], False
    for number in range(lines):
        fragment = choices.choice(FRAGMENTS)
        new, x, y = f"v{number}", choices.choice(known), choices.choice(known)
        body += fragment.text.format(new=new, x=x, y=y).splitlines()
        known.append(new)
        asks = asks or fragment.asks
    returned = choices.sample(known[len(INPUTS) :], 3)
    answer = ", ".join(f"{name!r}: {name} * 1" for name in returned)
    text = f"def program({', '.join(INPUTS)}):\n" + "".join(f"    {line}\n" for line in body)
    text += f"    return {{{answer}}}\n"
    return Source(text, _made(text), asks)


def _made(text: str) -> Callable[..., dict[str, Tensor]]:
    name = f"<program {next(_count)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"torch": torch, "Tensor": Tensor, "Plain": Plain, "Own": Own}
    exec(compile(text, name, "exec"), space)
    made: Callable[..., dict[str, Tensor]] = space["program"]
    return made


def inputs_for(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.rand(3, 4, generator=generator, dtype=torch.float32) + 0.5 for name in INPUTS}


def moved_with(source: Source, inputs: dict[str, Tensor], name: str) -> set[str]:
    """The oracle: change one input a little, run plainly, and see which outputs are others."""
    before = source.run(**{key: value.clone() for key, value in inputs.items()})
    changed = {key: value.clone() * (1.01 if key == name else 1.0) for key, value in inputs.items()}
    after = source.run(**changed)
    return {key for key in before if not torch.equal(before[key].as_subclass(Tensor), after[key].as_subclass(Tensor))}
