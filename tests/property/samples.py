"""Inputs and operations that random programs are made of."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from tests.property.functions import FUNCTIONS
from tests.property.program import Program, Rule, build
from tests.property.views import VIEWS
from tests.property.writes import TURNS, WRITES

#: Writes stand in the list twice: without them there is little to find.
RULES: tuple[Rule, ...] = (*VIEWS, *WRITES, *WRITES[:4], *FUNCTIONS)
#: Also operations that change the shape of a tensor in place.
RULES_WITH_TURNS: tuple[Rule, ...] = (*RULES, *TURNS, *TURNS)
KINDS_OF_INPUTS = 4


def inputs_of_kind(kind: int) -> tuple[Tensor, ...]:
    """One input, inputs that share memory, an input with a gradient, an input and a mask."""
    x = torch.arange(1.0, 17.0).reshape(4, 4)
    if kind == 0:
        return (x,)
    if kind == 1:
        return (x, x[1:3], x.t()[0])
    if kind == 2:
        return (x.clone().requires_grad_(), torch.tensor([1, -2, 3, 4], dtype=torch.int32))
    return (x[:2].clone(), torch.tensor([[True, False, True, True], [False, True, False, True]]))


def program_for(seed: int, rules: tuple[Rule, ...] = RULES) -> Program:
    """The same program for the same seed, everywhere."""
    source = random.Random(seed)
    numbers = [[source.randrange(1000) for _ in range(8)] for _ in range(source.randrange(3, 22))]
    return build(numbers, inputs_of_kind(seed % KINDS_OF_INPUTS), rules)
