"""What a test in the source is, and the branches it chooses between."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import CodeType
from typing import Any

from endoscope.analysis.branching.steering import Steered, Step, outcome
from endoscope.analysis.branching.syntax import CallText, SourceFile, Span, function_name, span_of

#: Instead of the name of a branch: no branch runs, the code goes on.
NOTHING = "nothing"
#: Instead of the name of a branch: another test, or the rest of this one, is asked first.
UNSETTLED = "unsettled"


class Construct(StrEnum):
    """What a test belongs to."""

    IF = "if"
    ELIF = "elif"
    TERNARY = "ternary"  # a if test else b
    WHILE = "while"
    FOR = "for"  # the value says how often, or over what
    ASSERT = "assert"
    COMPREHENSION = "comprehension"
    MATCH = "match"  # a guard, a value in a pattern, or the subject
    AND = "and"  # outside of any test
    OR = "or"
    COMPARISON = "comparison"  # a < b < c, outside of any test
    NOT = "not"  # whose result goes nowhere that is known


@dataclass(frozen=True, slots=True)
class Branch:
    """One of the ways to go on."""

    name: str  # then, elif 1, else, body, rest, case 1, passes, fails
    spans: tuple[Span, ...]  # one; several in comprehensions, none where there is no text


@dataclass(frozen=True, slots=True)
class Test:
    """A test in the source, and the part of it that a tensor answered."""

    kind: Construct
    text: str  # the whole test, on one line: "a and b"
    span: Span
    asked: str  # the part that was asked: "a"
    asked_span: Span
    branches: tuple[Branch, ...]  # all of the construct: then, elif 1, else
    on_true: str  # name of a branch, NOTHING or UNSETTLED
    on_false: str
    file: str
    line: int
    function: str  # qualified name
    construct: Span  # the whole statement or expression; one for all tests of an if-elif chain
    by_name: bool  # the value was kept in a variable until then
    nothing_else: bool  # the value goes into the outcome of this test, and certainly nowhere else
    certain: bool  # it is evaluated whenever the value is asked; a variable may be set and never looked at
    function_span: Span = field(repr=False)
    calls: tuple[CallText, ...] = field(repr=False)  # all calls written in the function
    route: tuple[Step, ...] = field(repr=False)  # from what was asked to the outcome of the test

    __test__ = False  # pytest would collect it

    @property
    def repeats(self) -> bool:
        """One evaluation may ask several values at the same place: `any`, `all`, `in`."""
        return any(step.repeats for step in self.route)

    def leads_to(self, value: Any, *, exhausted: bool = False) -> str:
        """Name of the branch that runs if the asked part has this value; NOTHING, UNSETTLED.

        `exhausted` says that it was the last of the values that `any`, `all` or `in` asked.
        """
        holds = outcome(self.route, value, exhausted=exhausted)
        return UNSETTLED if holds is None else self.on_true if holds else self.on_false

    def branch(self, name: str) -> Branch | None:
        return next((branch for branch in self.branches if branch.name == name), None)

    def __str__(self) -> str:
        return f"{self.kind} {self.text} ({self.file}:{self.line} in {self.function})"


@dataclass(frozen=True, slots=True)
class Unlocated:
    """A value whose test could not be found."""

    reason: str
    file: str = ""
    line: int = 0
    function: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.file}:{self.line} in {self.function})" if self.file else self.reason


def describe(file: SourceFile, code: CodeType, steered: Steered) -> Test:
    """Put what was found in the tree into plain data."""
    parts = _parts(file, steered)
    function = file.function_around(parts.whole)
    asked, asked_span = _asked(file, steered)
    return Test(
        kind=parts.kind,
        text=file.shown(parts.test),
        span=span_of(parts.test),
        asked=asked,
        asked_span=asked_span,
        branches=tuple(Branch(name, spans) for name, spans in parts.branches),
        on_true=parts.on_true,
        on_false=parts.on_false,
        file=code.co_filename,
        line=span_of(parts.test).line,
        function=function_name(code),
        construct=span_of(parts.whole),
        by_name=steered.by_name,
        nothing_else=steered.nothing_else,
        certain=steered.certain,
        function_span=span_of(function),
        calls=file.calls_in(function),
        route=steered.route,
    )


def _asked(file: SourceFile, steered: Steered) -> tuple[str, Span]:
    """Text and place of the part that was asked; of a chain of comparisons only one of them."""
    node, number = steered.asked, steered.compared
    if isinstance(node, ast.Compare) and number >= 0:
        left, right = [node.left, *node.comparators][number : number + 2]
        return ast.unparse(ast.Compare(left, [node.ops[number]], [right])), _join([left, right])[0]
    return file.shown(node), span_of(node)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A construct, taken apart."""

    kind: Construct
    whole: ast.AST
    test: ast.AST
    branches: list[tuple[str, tuple[Span, ...]]]
    on_true: str
    on_false: str


def _parts(file: SourceFile, steered: Steered) -> _Parts:
    node = steered.by
    if isinstance(node, ast.If):
        return _if(file, node)
    if isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
        kind, test = (Construct.WHILE, node.test) if isinstance(node, ast.While) else (Construct.FOR, node.iter)
        return _two(kind, node, test, ("body", node.body), ("else", node.orelse))
    if isinstance(node, ast.IfExp):
        return _two(Construct.TERNARY, node, node.test, ("then", [node.body]), ("else", [node.orelse]))
    if isinstance(node, ast.Assert):
        message = (span_of(node.msg),) if node.msg else ()
        branches: list[tuple[str, tuple[Span, ...]]] = [("passes", ()), ("fails", message)]
        return _Parts(Construct.ASSERT, node, node.test, branches, "passes", "fails")
    if isinstance(node, ast.comprehension):
        return _comprehension(file, node, steered.operand)
    if isinstance(node, (ast.Match, ast.match_case)):
        return _match(file, node)
    if isinstance(node, (ast.BoolOp, ast.Compare)):
        return _short(node, steered.operand)
    return _Parts(Construct.NOT, node, node, [], NOTHING, NOTHING)


def _two(
    kind: Construct, whole: ast.AST, test: ast.AST, first: tuple[str, Sequence[ast.AST]],
    second: tuple[str, Sequence[ast.AST]],
) -> _Parts:  # fmt: skip
    branches = [(name, _join(body)) for name, body in (first, second) if body]
    return _Parts(kind, whole, test, branches, first[0], second[0] if second[1] else NOTHING)


def _join(nodes: Sequence[ast.AST]) -> tuple[Span, ...]:
    """One span from the first to the last."""
    return (Span(*span_of(nodes[0])[:2], *span_of(nodes[-1])[2:]),)


def _if(file: SourceFile, node: ast.If) -> _Parts:
    """The whole chain, from its `if`; which of its tests this is; what follows."""
    head, kind = node, Construct.IF
    while _is_elif(file, head):
        head, kind = file.up[head][0], Construct.ELIF  # type: ignore[assignment]
    branches, part, name, following = [("then", _join(head.body))], head, "then", 0
    mine = name
    while part.orelse and isinstance(part.orelse[0], ast.If) and _is_elif(file, part.orelse[0]):
        part, following = part.orelse[0], following + 1
        name = f"elif {following}"
        branches.append((name, _join(part.body)))
        mine = name if part is node else mine
    if part.orelse:
        branches.append(("else", _join(part.orelse)))
    otherwise = UNSETTLED if part is not node else "else" if part.orelse else NOTHING
    return _Parts(kind, head, node.test, branches, mine, otherwise)


def _is_elif(file: SourceFile, node: ast.If) -> bool:
    parent, field_ = file.up[node]
    typed = file.lines[node.lineno - 1][node.col_offset :]
    return isinstance(parent, ast.If) and field_ == "orelse" and typed.startswith(b"elif")


def _comprehension(file: SourceFile, node: ast.comprehension, condition: int) -> _Parts:
    """What it makes, and every part that runs only after the test."""
    whole, _ = file.up[node]
    generators: list[ast.comprehension] = whole.generators  # type: ignore[attr-defined]
    later = generators[next(i for i, part in enumerate(generators) if part is node) + 1 :]
    made = [getattr(whole, name) for name in ("elt", "key", "value") if hasattr(whole, name)]
    rest = [*node.ifs[condition + 1 :], *(part for g in later for part in (g.iter, *g.ifs))]
    spans = tuple(span_of(part) for part in (*made, *rest))
    if condition < 0:
        return _Parts(Construct.FOR, whole, node.iter, [("body", spans)], "body", NOTHING)
    settled = condition == len(node.ifs) - 1
    test = node.ifs[condition]
    return _Parts(Construct.COMPREHENSION, whole, test, [("then", spans)], "then" if settled else UNSETTLED, NOTHING)


def _match(file: SourceFile, node: ast.Match | ast.match_case) -> _Parts:
    whole = node if isinstance(node, ast.Match) else file.up[node][0]
    assert isinstance(whole, ast.Match)
    names = [f"case {number}" for number in range(1, len(whole.cases) + 1)]
    branches = [(name, _join(case.body)) for name, case in zip(names, whole.cases, strict=True)]
    if isinstance(node, ast.Match):
        return _Parts(Construct.MATCH, whole, node.subject, branches, UNSETTLED, UNSETTLED)
    position = next(i for i, case in enumerate(whole.cases) if case is node)
    otherwise = NOTHING if position == len(names) - 1 else UNSETTLED
    return _Parts(Construct.MATCH, whole, node.guard or node.pattern, branches, names[position], otherwise)


def _short(node: ast.BoolOp | ast.Compare, operand: int) -> _Parts:
    """The rest of an expression, which is skipped if the first part settles it."""
    rest = node.values[operand + 1 :] if isinstance(node, ast.BoolOp) else node.comparators[operand + 1 :]
    branches = [("rest", _join(rest))]
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return _Parts(Construct.OR, node, node, branches, NOTHING, "rest")
    kind = Construct.AND if isinstance(node, ast.BoolOp) else Construct.COMPARISON
    return _Parts(kind, node, node, branches, "rest", NOTHING)
