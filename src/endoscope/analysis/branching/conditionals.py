"""Which `if`, `while`, `assert`, … a tensor steers: from a code object and an instruction to the source.

    __bool__ called at (code, instruction) ─► the expression that was asked     asking.py, syntax.py
                                          ─► the test that it is part of       steering.py, reaching.py
                                          ─► Test: text, branches, which runs when   constructs.py

What cannot be found is an `Unlocated` that says why; nothing here raises because of the user's code.
`branches.py` goes on from there: which branch ran, and which operations belong to it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import CodeType

from endoscope.analysis.branching.asking import Asking, find_asked
from endoscope.analysis.branching.constructs import NOTHING, UNSETTLED, Branch, Construct, Test, Unlocated, describe
from endoscope.analysis.branching.steering import Steered, Trail, Way
from endoscope.analysis.branching.syntax import Span, function_name, line_of, open_source, reread

__all__ = [
    "NOTHING",
    "UNSETTLED",
    "Branch",
    "Construct",
    "Position",
    "Span",
    "Test",
    "Unlocated",
    "locate",
    "locate_all",
]

Position = tuple[CodeType, int]  # code object and offset of an instruction


def locate(
    code: CodeType | None, instruction: int, *, leaving: str = "__bool__", callers: Sequence[Position] = ()
) -> Test | Unlocated:
    """The test that a value steers which left torch at this instruction; of several the first.

    `leaving` is the function through which it left (`__bool__`, `item`, `__float__`, …). `callers` are the frames
    around, innermost first: they are asked if the value is returned.
    """
    found = locate_all(code, instruction, leaving=leaving, callers=callers)
    return found if isinstance(found, Unlocated) else found[0]


def locate_all(
    code: CodeType | None, instruction: int, *, leaving: str = "__bool__", callers: Sequence[Position] = ()
) -> tuple[Test, ...] | Unlocated:
    """Like `locate`; a value that is kept under a name may steer several tests."""
    if code is None:
        return Unlocated("source not available: no Python code of yours was running")
    here = _search(code, instruction, leaving)
    tests, otherwise = here.tests, here.otherwise
    for outer, call in callers:
        if here.returned is None:
            break
        here = _search(outer, call, "", here.returned)
        tests += here.tests
        if isinstance(otherwise, Unlocated):
            otherwise = here.otherwise
    return tests or otherwise


@dataclass(frozen=True, slots=True)
class _Search:
    """What was found in one function."""

    tests: tuple[Test, ...]
    otherwise: tuple[Test, ...] | Unlocated  # where there are none: a bare `not`, or the reason
    returned: Way | None = None  # what had happened to the value when it was returned, if it was


_FRESH = Way()


def _search(code: CodeType, instruction: int, leaving: str, way: Way = _FRESH) -> _Search:
    """`way` is what had happened to the value before it was returned to this function."""
    where = (code.co_filename, line_of(code, instruction), function_name(code))
    asking = _ask(code, instruction, leaving)
    if isinstance(asking, str):
        return _Search((), Unlocated(asking, *where))
    trail = Trail(asking.file, function_name(code))
    trail.start(asking.node, replace(way, route=(*way.route, *asking.route)), asking.operand)
    tests, bare = (
        tuple(describe(asking.file, code, steered) for steered in found) for found in (trail.found, _negation(asking))
    )
    return _Search(tests, bare or Unlocated(trail.end, *where), trail.returned)


def _ask(code: CodeType, instruction: int, leaving: str) -> Asking | str:
    """Read the file again if its text does not fit: the code may be newer than the text that is remembered."""
    asking: Asking | str = ""
    for _ in range(2):
        file = open_source(code.co_filename)
        asking = file if isinstance(file, str) else find_asked(file, code, instruction, leaving)
        if not isinstance(asking, str) or not reread(code.co_filename):
            break
    return asking


def _negation(asking: Asking) -> list[Steered]:
    """`not t` where nothing is known of what becomes of it."""
    parent, _ = asking.file.up[asking.node]
    negates = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    return [Steered(parent, asking.node, asking.route)] if negates else []
