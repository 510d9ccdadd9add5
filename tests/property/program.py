"""A random tensor program: a list of steps over numbered variables, each step exactly one torch operation.

    numbers ─► choose() ─► Step ─► Program: call it (plain or traced), show it as Python, hand it to the oracle

The numbers come from hypothesis or from a seed. Every number is taken modulo what is possible at that point, so any
numbers make a valid program and leaving some out makes a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

Variables = list[Any]  # tensors; None once dropped
#: Element addresses seen through the operand and bytes per element -> the same for each result.
AddressMap = Callable[[np.ndarray, int], list[np.ndarray]]

#: Tensors from outside the program. Shape and dtype tell them apart.
CONSTANTS = {
    "ORDER": torch.tensor([1, 0]),
    "FIRST": torch.tensor([0]),
    "ONE": torch.tensor(1.5),
    "PAIR": torch.tensor([3.0, -1.0]),
}


@dataclass(frozen=True)
class Step:
    """One operation."""

    text: str  # as Python, without the assignment
    type: str  # its plain name
    call: Callable[[Variables], Any]
    reads: tuple[int, ...] = ()  # variables that it reads
    constants: tuple[str, ...] = ()  # constants that it reads
    writes: tuple[int, ...] = ()  # variables that it changes
    blind: bool = False  # it never looks at what it overwrites
    moves: AddressMap | None = None  # a view of the first variable it reads, if torch does not have to copy
    turns: AddressMap | None = None  # changes only the shape of the variable it reads, no memory
    results: int = 1  # how many tensors it returns as new variables
    branch: bool | None = None  # the program goes on only if the (only) variable is this
    drops: bool = False  # the (only) variable is forgotten


@dataclass
class Program:
    """Call it with its inputs. `listen(step, variables, run)` may stand around every step."""

    inputs: tuple[Tensor, ...]
    steps: list[Step]
    returned: tuple[int, ...] = ()
    __name__: str = field(default="program")

    def __call__(self, *inputs: Tensor) -> Any:
        return self.run(inputs, lambda step, variables: step.call(variables))

    def run(self, inputs: Sequence[Tensor], perform: Callable[[Step, Variables], Any]) -> Any:
        variables: Variables = list(inputs)
        for step in self.steps:
            out = perform(step, variables)
            if step.branch is not None and bool(out) is not step.branch:
                raise AssertionError("the program took another path")
            variables += results_of(step, out)
        return tuple(variables[i] for i in self.returned)

    def __str__(self) -> str:
        lines, number = [f"# v{i}: {tuple(t.shape)} {t.dtype}" for i, t in enumerate(self.inputs)], len(self.inputs)
        for step in self.steps:
            names = [f"v{number + i}" for i in range(step.results)]
            number += step.results
            if step.text:
                lines.append(f"{', '.join(names)} = {step.text}" if names else step.text)
        return "\n".join([*lines, f"return {', '.join(f'v{i}' for i in self.returned)}"])


def results_of(step: Step, out: Any) -> list[Tensor]:
    """The tensors that become variables."""
    if step.results == 0:
        return []
    return list(out) if isinstance(out, (tuple, list)) else [out]


class Choices:
    """Turns a few numbers into choices; zeros when they run out."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = list(numbers)

    def number(self, low: int, high: int) -> int:
        """Between low and high, both included."""
        value = self._numbers.pop(0) if self._numbers else 0
        return low + value % (high - low + 1)

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self.number(0, len(options) - 1)] if options else None


@dataclass
class Scene:
    """What a rule may choose from."""

    variables: Variables
    choices: Choices
    inputs: Sequence[Tensor] = ()

    def tensor(self, fits: Callable[[Tensor], bool] = lambda _: True) -> int | None:
        """Number of a variable that fits."""
        return self.choices.one_of([i for i, t in enumerate(self.variables) if t is not None and fits(t)])

    def partner(self, index: int) -> int | None:
        """Number of a variable that can be combined with this one without changing its shape or dtype."""
        left = self.variables[index]
        return self.tensor(lambda t: t.dtype == left.dtype and broadcasts(t, left))


Rule = Callable[[Scene], Step | None]


def broadcasts(small: Tensor, large: Tensor) -> bool:
    try:
        return torch.broadcast_shapes(small.shape, large.shape) == large.shape
    except RuntimeError:
        return False


def address_range(tensor: Tensor) -> tuple[int, int]:
    """Where in memory it begins and ends."""
    extent = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    return tensor.data_ptr(), tensor.data_ptr() + extent * tensor.element_size()


def overlaps_itself(tensor: Tensor) -> bool:
    """Two of its elements lie in the same place, as after `expand`."""
    places = {sum(i * s for i, s in zip(index, tensor.stride(), strict=True)) for index in np.ndindex(*tensor.shape)}
    return len(places) < tensor.numel()


#: These read and write element by element, so an operand in exactly the same place does no harm.
ELEMENTWISE = frozenset("add mul sub copy addcmul neg".split())


def is_well_defined(step: Step, variables: Variables) -> bool:
    """Torch leaves open what a write does that writes a place twice or reads what it is about to write."""
    for position, index in enumerate(step.writes):
        written = variables[index]
        if overlaps_itself(written) and step.type not in ("zero", "fill"):
            return False
        own = 0 if step.blind or len(step.writes) > 1 else 1  # it may read the very tensor that it changes
        others = [variables[i] for i in (step.reads[own:] if len(step.writes) == 1 else step.writes[position + 1 :])]
        if any(_disturbs(written, other, step.type) for other in others):
            return False
    return True


def _disturbs(written: Tensor, other: Tensor, type_: str) -> bool:
    if written.numel() == 0 or other.numel() == 0:
        return False
    (a, b), (c, d) = address_range(other), address_range(written)
    if type_ in ELEMENTWISE and a == c and other.dtype == written.dtype:
        if other.shape == written.shape and other.stride() == written.stride():
            return False
    return a < d and c < b


def build(numbers: Sequence[Sequence[int]], inputs: Sequence[Tensor], rules: Sequence[Rule]) -> Program:
    """Choose steps while running them on a copy of the inputs, so that every choice is possible."""
    torch.manual_seed(0)
    variables: Variables = copy_together(inputs)
    given = list(variables)
    steps: list[Step] = []
    for group in numbers:
        choices = Choices(group)
        step = choices.one_of(rules)(Scene(variables, choices, given))
        if step is None or not is_well_defined(step, variables):
            continue
        try:
            out = step.call(variables)
        except (RuntimeError, IndexError, TypeError):  # a shape or dtype that this operation does not take
            continue
        found = results_of(step, out)
        if len(found) > 8 or any(t.numel() > 64 for t in found):
            continue
        variables += found
        steps.append(step)
    last = Choices([sum(map(sum, numbers))])
    alive = list({id(t): i for i, t in enumerate(variables) if t is not None}.values())
    returned = {alive[-1], alive[last.number(0, len(alive) - 1)]}
    return Program(tuple(inputs), steps, tuple(sorted(returned)))


def copy_together(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies that share memory with each other exactly where the originals do."""
    storages: dict[int, Any] = {}
    copies = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        twin = storages.setdefault(storage.data_ptr(), storage.clone())
        copy = torch.empty(0, dtype=tensor.dtype).set_(twin, tensor.storage_offset(), tensor.shape, tensor.stride())
        copies.append(copy.requires_grad_(tensor.requires_grad))
    return copies
