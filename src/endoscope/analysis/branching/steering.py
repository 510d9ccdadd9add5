"""From a value to the statements that it steers: climb from the expression to the test it is part of.

    t ─► `t and u` ─► `not (…)` ─► the test of an `if`          steps: and, not
    bool(t) ─► `ok = …` ─► `ok` in the test of a `while`        through a name, within one function

On the way the steps are written down that turn the value into the outcome of the test.
"""

from __future__ import annotations

import ast
import operator
from dataclasses import dataclass, replace
from typing import Any

from endoscope.analysis.branching.reaching import surely, uses_of
from endoscope.analysis.branching.syntax import SourceFile, name_of

_COMPARISONS: dict[type[ast.cmpop], Any] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
#: Functions of numbers: what they return is followed through names, which no other call's result is.
_OF_NUMBERS = frozenset(
    "bool int float abs min max round any all sum isnan isinf isfinite sqrt log exp floor ceil".split()
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens to a value on its way into a test."""

    verb: str  # not, and, or, compare; opaque where the result cannot be told from the value
    last: bool = True  # of `and` and `or`: no operand follows
    compare: Any = None  # function of the value and `other`
    other: Any = None
    repeats: bool = False  # of `any`, `all` and `in`: the same place asks one value after the other

    def goes_on(self, exhausted: bool) -> bool:
        """Whether something else is asked, unless this value settles it."""
        return not self.last and not (self.repeats and exhausted)


OPAQUE = Step("opaque")


def outcome(route: tuple[Step, ...], value: Any, *, exhausted: bool = False) -> bool | None:
    """Whether a test holds, given one value that goes into it; None if that value alone does not decide.

    `exhausted` says that of the values which are asked one after the other this was the last.
    """
    if not isinstance(value, (bool, int, float)):
        return None
    for step in route:
        if step.verb == "not":
            value = not value
        elif step.verb == "compare":
            value = step.compare(value, step.other)
        elif step.verb == "opaque" or (step.goes_on(exhausted) and bool(value) is (step.verb == "and")):
            return None
    return bool(value)


@dataclass(frozen=True, slots=True)
class Steered:
    """A place where a value decides what runs next."""

    by: ast.AST  # If, While, For, IfExp, Assert, comprehension, match_case, Match, BoolOp, Compare
    asked: ast.expr  # the part of the test through which the value comes in
    route: tuple[Step, ...]
    operand: int = 0  # of BoolOp and Compare: which operand; of a comprehension: which `if`, -1 its source
    compared: int = -1  # where `asked` is a chain of comparisons: which of them
    by_name: bool = False  # the value was kept under a name until then
    nothing_else: bool = False  # the value goes nowhere else
    certain: bool = True  # the test is evaluated whenever the value leaves torch


@dataclass(frozen=True, slots=True)
class Way:
    """What happened to a value up to some point."""

    route: tuple[Step, ...] = ()
    followable: bool = True  # so far only what numbers go through: a name that it is given is followed
    plain: bool = True  # it is a number of Python for sure, and not computed together with tensors
    by_name: bool = False
    kept: bool = False  # a name was given to it on the way, so that it may be used for something else, too
    certain: bool = True


class Trail:
    """Climbs from one expression; `found` are the places it steers, `end` says why there are none.

    `returned` is set if the value left through `return`: the caller's frame knows more.
    """

    def __init__(self, file: SourceFile, function: str) -> None:
        self.file = file
        self.function = function
        self.found: list[Steered] = []
        self.end = "its value steers nothing in the code around it"
        self.returned: Way | None = None
        self._asked: ast.expr | None = None
        self._compared = -1
        self._followed: set[tuple[ast.AST, str]] = set()

    def start(self, asked: ast.expr, way: Way, operand: int = -1) -> None:
        """`operand` is given where one comparison of a chain was asked."""
        short: Steered | None = None
        self._asked, self._compared = asked, operand
        if isinstance(asked, ast.Compare) and 0 <= operand < len(asked.ops) - 1:
            short = Steered(asked, asked, way.route, operand)
            way = replace(way, route=(*way.route, Step("and", last=False)))
        self._climb(asked, way, short)

    def _climb(self, asked: ast.expr, way: Way, short: Steered | None = None) -> None:
        """`short` is the first `and`, `or` or chain on the way that may stop early: steered itself outside of tests."""
        node: ast.AST = asked
        strict = not way.plain  # a tensor may have come of it, whose own truth is recorded: no methods, no calls
        named: list[tuple[ast.NamedExpr, Way]] = []
        while node in self.file.up:
            parent, field = self.file.up[node]
            operand = _tested(parent, field, node)
            if operand is not None:
                route = _with_pattern(parent, field, way.route)
                nothing_else = way.followable and not way.kept and field == "test"
                self._find(Steered(parent, asked, route, operand, -1, way.by_name, nothing_else, way.certain))
                break
            if isinstance(parent, (ast.stmt, ast.Lambda)):
                if short is not None:
                    self._find(short)
                self._finish(node, way)
                break
            if isinstance(parent, ast.BoolOp):
                position = next(i for i, value in enumerate(parent.values) if value is node)
                if position < len(parent.values) - 1 and short is None and not way.by_name:
                    short = Steered(parent, asked, way.route, position)
            elif isinstance(parent, ast.NamedExpr):
                named.append((parent, way))
            way = _through(parent, field, node, way)
            if strict and not way.followable:
                return
            node = parent
        for expression, so_far in named:
            self._follow(expression.target, expression, so_far)

    def _find(self, place: Steered) -> None:
        if place.asked is self._asked:
            place = replace(place, compared=self._compared)
        if all(place.by is not other.by for other in self.found):
            self.found.append(place)

    def _finish(self, node: ast.AST, way: Way) -> None:
        """The value has gone through a whole expression: what becomes of it?"""
        parent, field = self.file.up[node]
        leaves = isinstance(parent, ast.Return) or (isinstance(parent, ast.Lambda) and field == "body")
        if leaves and way.followable:
            self.returned = Way(way.route, plain=way.plain, certain=way.certain, kept=way.kept)
            self.end = f"its value is returned by {self.function}, and the code that tests it is not known"
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and field == "value":
            if isinstance(parent, ast.AugAssign):
                way = replace(way, route=(*way.route, OPAQUE), plain=False)
            for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
                if isinstance(target, ast.Name) and way.followable:
                    self._follow(target, parent, way)
                    self.end = f"its value is kept in {target.id}, which no test in {self.function} uses"
                else:
                    self.end = f"its value goes into {self.file.shown(target)}, which is not followed"
        elif isinstance(parent, ast.Expr) and isinstance(node, ast.Call) and node is not self._asked:
            self.end = f"its value is handed to {self.file.shown(node.func)}()"

    def _follow(self, target: ast.Name, assignment: ast.AST, way: Way) -> None:
        if (assignment, target.id) in self._followed:
            return
        self._followed.add((assignment, target.id))
        for use in uses_of(self.file, target.id, assignment):
            certain = way.certain and surely(self.file, assignment, use)
            self._climb(use, replace(way, by_name=True, kept=True, certain=certain))


def _through(parent: ast.AST, field: str, node: ast.AST, way: Way) -> Way:
    """The way after the expression that the value is part of."""
    if isinstance(parent, ast.BoolOp):
        step = Step("and" if isinstance(parent.op, ast.And) else "or", last=node is parent.values[-1])
        return replace(way, route=(*way.route, step))
    if isinstance(parent, ast.NamedExpr):
        return replace(way, kept=True)
    return replace(
        way,
        route=(*way.route, *_step(parent, field)),
        followable=way.followable and _stays_a_number(parent),
        plain=way.plain and _stays_plain(parent, node),
    )


def _tested(parent: ast.AST, field: str, node: ast.AST) -> int | None:
    """A number if the node is what `parent` tests; of a comprehension, which of its conditions."""
    if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return 0 if field == "test" else None
    if isinstance(parent, (ast.For, ast.AsyncFor)):
        return -1 if field == "iter" else None
    if isinstance(parent, ast.comprehension):
        return next((i for i, test in enumerate(parent.ifs) if test is node), -1)
    if isinstance(parent, ast.match_case):
        return 0 if field in ("pattern", "guard") else None
    return 0 if isinstance(parent, ast.Match) and field == "subject" else None


def _with_pattern(parent: ast.AST, field: str, route: tuple[Step, ...]) -> tuple[Step, ...]:
    """A value in a pattern decides only where it is the whole pattern and no condition follows."""
    if isinstance(parent, ast.Match):
        return (*route, OPAQUE)
    if isinstance(parent, ast.match_case) and field == "pattern":
        whole = isinstance(parent.pattern, ast.MatchValue)
        return (*route, Step("and", last=parent.guard is None) if whole else OPAQUE)
    return (*route, OPAQUE) if field == "iter" else route


def _step(parent: ast.AST, field: str) -> tuple[Step, ...]:
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return (Step("not"),)
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
        compare = _COMPARISONS.get(type(parent.ops[0]))
        other = _constant(parent.comparators[0] if field == "left" else parent.left)
        if compare is not None and other is not None:
            swapped = field != "left"
            return (Step("compare", compare=_swapped(compare) if swapped else compare, other=other),)
        return (OPAQUE,)
    if isinstance(parent, (ast.IfExp, ast.pattern)):
        return ()
    if isinstance(parent, ast.Call) and name_of(parent.func) == "bool" and len(parent.args) == 1:
        return ()
    return (OPAQUE,)


def _swapped(compare: Any) -> Any:
    mirror = {
        operator.lt: operator.gt,
        operator.gt: operator.lt,
        operator.le: operator.ge,
        operator.ge: operator.le,
    }
    return mirror.get(compare, compare)


def _constant(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _constant(node.operand)
        return -value if value is not None else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) else None


def _stays_a_number(parent: ast.AST) -> bool:
    if isinstance(parent, ast.Call):
        return name_of(parent.func) in _OF_NUMBERS
    return isinstance(parent, (ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp))


def _stays_plain(parent: ast.AST, node: ast.AST) -> bool:
    """Whether everything else that goes into the expression is a plain number, too."""
    if isinstance(parent, ast.Call):
        return name_of(parent.func) in ("bool", "int", "float")
    others = [part for part in ast.iter_child_nodes(parent) if isinstance(part, ast.expr) and part is not node]
    return isinstance(parent, ast.IfExp) or all(_constant(part) is not None for part in others)
