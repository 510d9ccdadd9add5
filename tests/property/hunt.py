"""Look for programs on which trace, oracle and proof disagree, and show each in its shortest form.

    PYTHONPATH=src:. python -m tests.property.hunt FIRST LAST [all | none | some | turns]

FIRST and LAST are seeds. `none` and `some` try the other ways of keeping values, `turns` adds operations that
change the shape of a tensor in place.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from tests.property.agreement import complaints
from tests.property.program import Program, Step
from tests.property.samples import RULES, RULES_WITH_TURNS, program_for

MOST_ALIKE = 2


def shorten(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Leave out every step that can be left out; variables keep their numbers."""
    for _ in range(2):
        for position in range(len(program.steps) - 1, -1, -1):
            nothing = _nothing_like(program.steps[position])
            steps = [*program.steps[:position], nothing, *program.steps[position + 1 :]]
            for returned in ((program.returned[-1],), program.returned, (0,)):
                shorter = Program(program.inputs, steps, returned)
                if fails(shorter):
                    program = shorter
                    break
    return program


def _nothing_like(step: Step) -> Step:
    return Step("", "", lambda _: (None,) * step.results, results=step.results, drops=True)


def _kind(complaint: str) -> str:
    return complaint.partition(":")[0].split(" of ")[0]


def _signature(complaint: str) -> str:
    """Complaints that are probably about the same thing look the same without numbers and values."""
    return re.sub(r"\d+|\(.*", "", complaint)[:70]


def shortest(program: Program, kind: str, save: Any) -> Program:
    """The shortest part of the program about which there is the same kind of complaint."""

    def fails(shorter: Program) -> bool:
        try:
            return kind in map(_kind, complaints(shorter, save=save, prove=kind == "proof"))
        except Exception:
            return False

    return shorten(program, fails)


def main(first: int, last: int, mode: str) -> int:
    save = {"none": "none", "some": lambda op: True}.get(mode, "all")
    rules = RULES_WITH_TURNS if mode == "turns" else RULES
    shown = Counter[str]()
    for seed in range(first, last):
        program = program_for(seed, rules)
        found = complaints(program, save=save, prove=save == "all")
        if found:
            signature = _signature(found[0])
            shown[signature] += 1
            if shown[signature] <= MOST_ALIKE:
                short = shortest(program, _kind(found[0]), save)
                print(f"--- seed {seed}", short, *complaints(short, save=save), sep="\n", flush=True)
    print(*(f"{count} x {signature}" for signature, count in shown.most_common()), sep="\n")
    return shown.total()


if __name__ == "__main__":
    torch.set_num_threads(1)
    count = main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "all")
    sys.exit(f"{count} programs disagree" if count else 0)
