"""Look for programs on which trace and oracle disagree: python -m tests.property.hunt FIRST LAST

Each is shortened before it is shown. Run from the root of the project.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tests.property.agreement import complaints
from tests.property.functions import FUNCTIONS
from tests.property.program import Program, Rule, build
from tests.property.views import VIEWS
from tests.property.writes import TURNS, WRITES

RULES: tuple[Rule, ...] = (*VIEWS, *WRITES, *WRITES[:4], *FUNCTIONS)
Numbers = list[tuple[int, ...]]


def inputs_for(kind: int) -> tuple[Tensor, ...]:
    """Separate inputs, inputs that share memory, inputs with gradients."""
    x = torch.arange(1.0, 17.0).reshape(4, 4)
    if kind == 0:
        return (x,)
    if kind == 1:
        return (x, x[1:3], x.t()[0])
    if kind == 2:
        return (x.clone().requires_grad_(), torch.tensor([1, -2, 3, 4], dtype=torch.int32))
    return (x[:2].clone(), torch.tensor([[True, False, True, True], [False, True, False, True]]))


def numbers_for(seed: int) -> Numbers:
    source = random.Random(seed)
    return [tuple(source.randrange(1000) for _ in range(8)) for _ in range(source.randrange(3, 22))]


def program_for(seed: int, rules: Sequence[Rule] = RULES) -> Program:
    return build(numbers_for(seed), inputs_for(seed % 4), rules)


def shorten(numbers: Numbers, fails: Callable[[Numbers], bool]) -> Numbers:
    """Leave out whatever can be left out."""
    again = True
    while again:
        again = False
        for position in range(len(numbers) - 1, -1, -1):
            shorter = numbers[:position] + numbers[position + 1 :]
            if shorter and fails(shorter):
                numbers, again = shorter, True
    return numbers


def _kind(complaint: str) -> str:
    return complaint.partition(":")[0].split(" of ")[0]


def main(first: int, last: int, rules: Sequence[Rule], save: str) -> int:
    bad = 0
    for seed in range(first, last):
        program = program_for(seed, rules)
        found = complaints(program, save=save, prove=save == "all")
        if not found:
            continue
        bad += 1
        kind = _kind(found[0])

        def fails(numbers: Numbers, seed: int = seed, kind: str = kind) -> bool:
            try:
                shorter = complaints(build(numbers, inputs_for(seed % 4), rules), save=save, prove=kind == "proof")
            except Exception:
                return False
            return kind in map(_kind, shorter)

        short = build(shorten(numbers_for(seed), fails), inputs_for(seed % 4), rules)
        text = "\n  ".join(complaints(short, save=save, prove=save == "all"))
        print(f"--- seed {seed}\n{short}\n  {text}", flush=True)
    return bad


if __name__ == "__main__":
    torch.set_num_threads(1)
    mode = sys.argv[3] if len(sys.argv) > 3 else "all"
    chosen = (*RULES, *TURNS, *TURNS) if mode == "turns" else RULES
    count = main(int(sys.argv[1]), int(sys.argv[2]), chosen, "all" if mode == "turns" else mode)
    print(f"{count} programs disagree")
