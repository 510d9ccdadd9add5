"""What must be true of the statistics of a tensor: a small expression, read once and computed for many tensors at once.

Statistics of the whole tensor have one number, those of samples a number for each sample along the last dimension; they
combine as arrays do. A comparison with a number that is not there (NaN) is false.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from endoscope.analysis.selecting.plain_patterns import nearest
from endoscope.errors import BadArgument
from endoscope.schema import plugins
from endoscope.schema.stats import SAMPLE, WHOLE

Numbers = Mapping[str, Any]  # statistic -> number or array; of samples under "sample.<statistic>"
OF_SAMPLE = "sample."
_DEEPEST = 50
_LONGEST = 2000
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", lambda a, b: (a != b) & (a == a) & (b == b)),
}
_COMPUTE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FLIPPED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison in a condition: what is measured, and with what it is compared."""

    sign: str
    left: ast.expr
    right: ast.expr

    def sides(self, numbers: Numbers) -> tuple[Any, Any]:
        """(what is measured, with what it is compared)."""
        return _compute(self.left, numbers), _compute(self.right, numbers)


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is true or false of every tensor, or of every sample of it."""

    text: str
    tree: ast.expr
    statistics: tuple[str, ...]  # that it needs, of the whole tensor
    sample_statistics: tuple[str, ...]  # and of every sample
    comparisons: tuple[Comparison, ...]

    @property
    def per_sample(self) -> bool:
        return bool(self.sample_statistics)

    def holds(self, numbers: Numbers) -> Any:
        """True or False, in the shape that the numbers have together."""
        return _truth(self.tree, numbers)


def read_condition(text: str, start: int = 0) -> Condition:
    """A condition that begins at a place of a text; errors show that place."""
    return _Reader(text, start).condition()


class _Reader:
    """Takes a parsed expression apart, and refuses what no condition can mean."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.body = text[start:]
        self.shift = start + len(self.body) - len(self.body.lstrip())
        self.whole: dict[str, None] = {}
        self.samples: dict[str, None] = {}
        self.comparisons: list[Comparison] = []

    def condition(self) -> Condition:
        body = self.body.strip()
        if not body:
            raise self.error("a condition is expected here, and the text ends", None)
        if len(body) > _LONGEST:
            raise self.error(f"a condition of more than {_LONGEST} characters", None)
        try:
            tree = ast.parse(body, mode="eval").body
        except SyntaxError as error:
            at = error.offset - 1 if error.offset and error.lineno == 1 else None
            raise self.error(f"it cannot be read from here on ({error.msg})", at) from None
        except (ValueError, RecursionError, MemoryError):
            raise self.error("it is nested too deeply, or contains a null character", None) from None
        self.truth(tree, 0)
        return Condition(body, tree, tuple(self.whole), tuple(self.samples), tuple(self.comparisons))

    def truth(self, node: ast.expr, depth: int) -> None:
        """An expression that is true or false."""
        self.check_depth(node, depth)
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                self.truth(part, depth + 1)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.truth(node.operand, depth + 1)
        elif isinstance(node, ast.Compare):
            self.compare(node, depth)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            raise self.error("& and | are for patterns; in a condition write and, or, not", node.col_offset)
        else:
            raise self.error("a comparison such as abs_max > 1 is expected here", node.col_offset)

    def compare(self, node: ast.Compare, depth: int) -> None:
        sides = [node.left, *node.comparators]
        measured = [self.number(side, depth + 1) for side in sides]
        for place, sign in enumerate(node.ops):
            if type(sign) not in _COMPARE:
                raise self.error("numbers are compared by > >= < <= == !=", sides[place + 1].col_offset)
            if not measured[place] and not measured[place + 1]:
                raise self.error("one side of a comparison has to be a statistic", sides[place].col_offset)
            word = _COMPARE[type(sign)][0]
            left, right = sides[place], sides[place + 1]
            if not measured[place]:
                word, left, right = _FLIPPED[word], right, left
            self.comparisons.append(Comparison(word, left, right))

    def number(self, node: ast.expr, depth: int) -> bool:
        """An expression that is a number; returns whether a statistic is in it."""
        self.check_depth(node, depth)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
                raise self.error(f"{node.value!r} is no number", node.col_offset)
            return False
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return self.number(node.operand, depth + 1)
        if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTE:
            left, right = self.number(node.left, depth + 1), self.number(node.right, depth + 1)
            if not left and not right and _is_zero_division(node):
                raise self.error("this divides by zero", node.col_offset)
            return left or right
        if _is_abs(node):
            return self.number(node.args[0], depth + 1)  # type: ignore[attr-defined]
        return self.statistic(node)

    def statistic(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            if node.id not in WHOLE:
                plugins.load()  # one of them may register it
            if node.id not in WHOLE:
                raise self.unknown(node.id, WHOLE, "of the whole tensor", node.col_offset)
            self.whole[node.id] = None
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sample":
            if node.attr not in SAMPLE:
                raise self.unknown(node.attr, SAMPLE, "of a single sample", node.col_offset)
            self.samples[node.attr] = None
        else:
            raise self.error(
                "a number, a statistic such as abs_max, or one of a sample such as sample.norm is expected here; "
                "they are combined by + - * / and abs()",
                node.col_offset,
            )
        return True

    def check_depth(self, node: ast.expr, depth: int) -> None:
        if depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} levels inside each other", node.col_offset)

    def unknown(self, name: str, known: Sequence[str], what: str, at: int) -> BadArgument:
        close = nearest(name, known, 1)
        hint = f", did you mean {close[0]!r}?" if close else "."
        return self.error(f"there is no statistic {name!r} {what}{hint} There are {' '.join(known)}", at)

    def error(self, what: str, at: int | None) -> BadArgument:
        place = len(self.text.rstrip()) if at is None else self.shift + at
        return BadArgument(
            f"The rule cannot be read: {what}.\n    {self.text.rstrip()}\n    {' ' * place}^\n"
            "Write it like encoder.2: abs_max > 1, or head: sample.norm > 3 * norm and zeros / count < 0.5."
        )


def _is_abs(node: ast.expr) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs"
    return is_call and len(node.args) == 1 and not node.keywords  # type: ignore[attr-defined]


def _is_zero_division(node: ast.BinOp) -> bool:
    try:
        _compute(node, {})
    except (ZeroDivisionError, OverflowError):
        return True
    return False


def _compute(node: ast.expr, numbers: Numbers) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        inner = _compute(node.operand, numbers)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        return _COMPUTE[type(node.op)](_compute(node.left, numbers), _compute(node.right, numbers))
    if isinstance(node, ast.Call):
        return abs(_compute(node.args[0], numbers))
    if isinstance(node, ast.Name):
        return numbers[node.id]
    assert isinstance(node, ast.Attribute)
    return numbers[OF_SAMPLE + node.attr]


def _truth(node: ast.expr, numbers: Numbers) -> Any:
    if isinstance(node, ast.BoolOp):
        join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        return reduce(join, (_truth(part, numbers) for part in node.values))
    if isinstance(node, ast.UnaryOp):
        return ~_truth(node.operand, numbers)
    assert isinstance(node, ast.Compare)
    return reduce(operator.and_, _pairs(node, numbers))


def _pairs(node: ast.Compare, numbers: Numbers) -> Iterator[Any]:
    sides = [_compute(side, numbers) for side in (node.left, *node.comparators)]
    for place, sign in enumerate(node.ops):
        yield _COMPARE[type(sign)][1](sides[place], sides[place + 1])
