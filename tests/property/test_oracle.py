"""The oracle is right itself: about where elements lie, and about programs whose edges are plain to see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.property.agreement import identical
from tests.property.oracle import Oracle
from tests.property.program import Program, Step
from tests.property.samples import RULES_WITH_TURNS, program_for


def real_addresses(tensor: Tensor) -> np.ndarray:
    """Where the elements really are, asked of torch."""
    found = np.zeros(tuple(tensor.shape), dtype=np.int64)
    with torch.no_grad():
        for index in np.ndindex(*tensor.shape):
            found[index] = tensor[index].data_ptr()
    return found


def test_addresses_move_as_they_do_in_memory() -> None:
    """Two elements of any two tensors are as far apart in the books as in memory, if they share a storage."""
    compared = 0
    for seed in range(120):
        oracle = Oracle(program_for(seed, RULES_WITH_TURNS))
        shifts: dict[int, int] = {}
        for tensor in oracle.tensors:
            if tensor.numel():
                distance = real_addresses(tensor) - oracle.addresses_of(tensor)
                shift = shifts.setdefault(tensor.untyped_storage().data_ptr(), int(distance.reshape(-1)[0]))
                assert (distance == shift).all()
                compared += 1
    assert compared > 1000


def test_the_plain_run_returns_the_same() -> None:
    for seed in range(60):
        program = program_for(seed)
        torch.manual_seed(0)
        oracle = Oracle(program)
        torch.manual_seed(0)
        results = {id(t): t for t in program(*[t.clone() for t in program.inputs])}.values() if seed % 4 != 1 else []
        for (_, expected), found in zip(oracle.outputs, results, strict=False):
            assert identical(expected, found)


def view(text: str, call: Any, moves: Any) -> Step:
    return Step(text, "getitem", call, (1,), moves=lambda a, _: [moves(a)])


X = torch.arange(12.0).reshape(3, 4)
DOUBLE = Step("v0 * 2", "mul", lambda v: v[0] * 2, (0,))  # v1
FIRST = view("v1[0]", lambda v: v[1][0], lambda a: a[0])  # v2
ADD = Step("v2.add_(10)", "add", lambda v: v[2].add_(10), (2,), writes=(2,))  # v3 is v2
FILL = Step("v2.zero_()", "zero", lambda v: v[2].zero_(), (), writes=(2,), blind=True)
SUM = Step("v1.sum()", "sum", lambda v: v[1].sum(), (1,))
LAST = view("v1[2]", lambda v: v[1][2], lambda a: a[2])
ALL = view("v1[:]", lambda v: v[1][:], lambda a: a[:])
CHANGE = Step("v1.neg_()", "neg", lambda v: v[1].neg_(), (1,), writes=(1,))
SINE = Step("v2.sin()", "sin", lambda v: v[2].sin(), (2,))

MUL, GET, WRITE = ("op", 0), ("op", 1), ("op", 2)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([DOUBLE, FIRST, ADD, SUM], {MUL, WRITE}),  # the example of the design: y[0].add_(10); y.sum()
        ([DOUBLE, FIRST, ADD, LAST], {MUL}),  # written elsewhere
        ([DOUBLE, FIRST, ADD, FIRST], {WRITE}),  # only what was written is seen
        ([DOUBLE, ALL, FILL, SUM], {WRITE}),  # everything was overwritten
        ([DOUBLE, FIRST, FILL], set()),  # a blind write reads nothing
        ([DOUBLE, FIRST, ADD], {GET}),  # a write reads what it changes
        ([DOUBLE, FIRST, CHANGE, SINE], {WRITE}),  # a view sees a write to its base
        ([DOUBLE, FIRST, SUM, SINE], {GET}),  # nothing was written
    ],
    ids=lambda value: "; ".join(s.text for s in value) if isinstance(value, list) else "",
)
def test_parents_of_the_last_step(steps: list[Step], expected: set[Any]) -> None:
    assert Oracle(Program((X,), steps, (1,))).ops[-1].parents == expected
