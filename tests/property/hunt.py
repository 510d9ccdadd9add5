"""Look for programs on which trace and oracle disagree: python -m tests.property.hunt FIRST LAST

Each is shortened before it is shown. Run from the root of the project.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tests.property.agreement import complaints
from tests.property.functions import FUNCTIONS
from tests.property.program import Program, Rule, Step, build
from tests.property.views import VIEWS
from tests.property.writes import TURNS, WRITES

RULES: tuple[Rule, ...] = (*VIEWS, *WRITES, *WRITES[:4], *FUNCTIONS)
MOST_ALIKE = 2
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


def shorten(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Leave out every step that can be left out; variables keep their numbers."""
    for _ in range(2):
        for position in range(len(program.steps) - 1, -1, -1):
            step = program.steps[position]
            nothing = Step("", "", lambda _, step=step: (None,) * step.results, results=step.results, drops=True)
            steps = [*program.steps[:position], nothing, *program.steps[position + 1 :]]
            for returned in ((program.returned[-1],), program.returned, (0,)):
                shorter = Program(program.inputs, steps, returned)
                if fails(shorter):
                    program = shorter
                    break
    return program


def _kind(complaint: str) -> str:
    return complaint.partition(":")[0].split(" of ")[0]


def _signature(complaint: str) -> str:
    """Complaints that are probably about the same thing look the same without numbers and values."""
    return re.sub(r"\d+|\(.*", "", complaint)[:70]


def main(first: int, last: int, rules: Sequence[Rule], save: Any) -> int:
    bad, shown = 0, Counter[str]()
    for seed in range(first, last):
        program = program_for(seed, rules)
        found = complaints(program, save=save, prove=save == "all")
        if not found:
            continue
        bad += 1
        kind = _kind(found[0])
        shown[_signature(found[0])] += 1
        if shown[_signature(found[0])] > MOST_ALIKE:
            continue

        def fails(shorter: Program, kind: str = kind) -> bool:
            try:
                found = complaints(shorter, save=save, prove=kind == "proof")
            except Exception:
                return False
            return kind in map(_kind, found)

        short = shorten(program, fails)
        text = "\n  ".join(complaints(short, save=save, prove=save == "all"))
        print(f"--- seed {seed}\n{short}\n  {text}", flush=True)
    print("\n".join(f"{count} x {signature}" for signature, count in shown.most_common()))
    return bad


if __name__ == "__main__":
    torch.set_num_threads(1)
    mode = sys.argv[3] if len(sys.argv) > 3 else "all"
    chosen = (*RULES, *TURNS, *TURNS) if mode == "turns" else RULES
    save = {"turns": "all", "some": lambda op: True}.get(mode, mode)
    count = main(int(sys.argv[1]), int(sys.argv[2]), chosen, save)
    print(f"{count} programs disagree")
