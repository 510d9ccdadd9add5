"""Which expression was asked for its truth, or let a value out: from one instruction to one node of the source.

The instruction that asks is a jump, a `not`, a comparison or a call. The interpreter tells the columns of every
instruction; for jumps some versions tell only the statement, and then the instruction before it, which made the
value, tells the rest.
"""

from __future__ import annotations

import ast
import dis
import sys
from dataclasses import dataclass
from types import CodeType

from endoscope.analysis.branching.steering import OPAQUE, Step
from endoscope.analysis.branching.syntax import Bytecode, SourceFile, Span, bytecode, line_of, name_of

CHANGED = "source changed: the file {} was changed after its code was loaded"
_COLUMNS = "source position not known: this code carries no columns, and line {} of {} has no single test"

_BETWEEN = frozenset("CACHE NOP EXTENDED_ARG COPY SWAP TO_BOOL PRECALL COPY_FREE_VARS NOT_TAKEN".split())
_COMPARES = frozenset("COMPARE_OP CONTAINS_OP IS_OP".split())
#: Before Python 3.12 a jump may claim the place of the whole statement, or of an earlier part of the test.
_JUMPS_ARE_EXACT = sys.version_info >= (3, 12)
_TO_BOOL_FLAG = 16  # of COMPARE_OP from Python 3.13 on: the result is asked at once
#: Expressions that hold the tested one where the position of a jump is too wide.
_WIDE = (ast.BoolOp, ast.IfExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

#: Calls that hand out the truth of what they are given, or that ask one after the other until one settles it.
_TRUTH = frozenset("bool truth not_".split())
_ONE_BY_ONE = {"any": "or", "all": "and"}
#: Ways out of torch that are called by name; the others happen inside whatever call needs a number.
_CALLED = frozenset("item tolist numpy is_nonzero equal allclose".split())
_FROM_C = frozenset("max min sorted map filter reduce next list tuple sum".split())


@dataclass(frozen=True, slots=True)
class Asking:
    """An expression whose value left torch."""

    file: SourceFile
    node: ast.expr
    route: tuple[Step, ...] = ()  # from the value that left to the value of the expression
    operand: int = -1  # in a chain of comparisons: which of them


def find_asked(file: SourceFile, code: CodeType, instruction: int, leaving: str) -> Asking | str:
    """The expression, or why there is none. `leaving` is empty for a call of Python that returned the value."""
    if not file.has_scope(code):
        return CHANGED.format(code.co_filename)
    at = _Instruction(bytecode(code), instruction)
    span = at.span
    if span is None:
        return _by_line(file, code, at)
    node = file.node_at(span)
    if node is None:
        return CHANGED.format(code.co_filename)
    if at.jumps:
        node = _tested(file, at, node)
    if isinstance(node, (ast.If, ast.While, ast.Assert)):  # rewritten code: all of it claims to be the statement
        node = node.test
        if isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.IfExp)):
            return Asking(file, node, (OPAQUE,))
    if not isinstance(node, ast.expr):
        return f"its value is used by {type(node).__name__.lower()}, which is no test"
    if not _fits(node, at.code):
        return CHANGED.format(code.co_filename)
    return _asking(file, node, at, leaving)


class _Instruction:
    """One instruction, and what it asks."""

    def __init__(self, code: Bytecode, offset: int) -> None:
        self.code = code
        while 0 < offset < len(code.raw) and dis.opname[code.raw[offset]] == "CACHE":
            offset -= 2  # a frame that waits for a call may stand behind the call's own instruction
        self.offset = offset
        self.span = code.span(offset)
        self.name = dis.opname[code.raw[offset]] if 0 <= offset < len(code.raw) else ""

    @property
    def jumps(self) -> bool:
        """Whether it asks the value on the stack for its truth."""
        if self.name == "COMPARE_OP":
            return "TO_BOOL" in dis.opmap and bool(self.code.raw[self.offset + 1] & _TO_BOOL_FLAG)
        return "JUMP" in self.name or self.name == "TO_BOOL"

    @property
    def before(self) -> Span | None:
        """Where the value on the stack comes from."""
        at = self.offset - 2
        while at >= 0 and dis.opname[self.code.raw[at]] in _BETWEEN:
            at -= 2
        return self.code.span(at)

    def comparison(self, count: int) -> int:
        """Which of a chain of comparisons: they stand one after the other in the code, maybe several times."""
        if count == 1:
            return -1
        raw, spans = self.code.raw, self.code.spans
        same = (at for at in range(0, self.offset + 1, 2) if spans[at // 2] == self.span)
        return (sum(dis.opname[raw[at]] in _COMPARES for at in same) - 1) % count


def _asking(file: SourceFile, node: ast.expr, at: _Instruction, leaving: str) -> Asking | str:
    if at.name.startswith("CALL"):
        return _asking_call(file, node, leaving)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Asking(file, node.operand)
    if isinstance(node, ast.Compare):
        if at.name == "CONTAINS_OP":
            negated = (Step("not"),) if isinstance(node.ops[-1], ast.NotIn) else ()
            route = negated if leaving == "__contains__" else (Step("or", last=False, repeats=True), *negated)
            return Asking(file, node, route)
        if not at.jumps:
            return Asking(file, node, (OPAQUE,))  # containers compare their items
        return Asking(file, node, operand=at.comparison(len(node.ops)))
    return Asking(file, node, () if leaving in ("__bool__", "") or at.jumps else (OPAQUE,))


def _asking_call(file: SourceFile, node: ast.expr, leaving: str) -> Asking | str:
    name = name_of(node.func) if isinstance(node, ast.Call) else ""
    if name == leaving or (name in _TRUTH and leaving == "__bool__"):
        return Asking(file, node, (Step("not"),) if name == "not_" else ())
    if not leaving:
        return Asking(file, node, (OPAQUE,) if name in _FROM_C or name in _ONE_BY_ONE else ())
    if leaving == "__bool__" and name in _ONE_BY_ONE:
        return Asking(file, node, (Step(_ONE_BY_ONE[name], last=False, repeats=True),))
    if leaving.startswith("__") and leaving not in ("__bool__", "__contains__"):
        return Asking(file, node, () if name in ("int", "float") else (OPAQUE,))
    what = file.shown(node.func) if isinstance(node, ast.Call) else file.shown(node)
    return f"its value is used inside {what}(), which is not in your source code"


# ---- which expression ---------------------------------------------------------------------------------------------


def _tested(file: SourceFile, at: _Instruction, claimed: ast.AST) -> ast.AST:
    """The tested expression; `claimed` is what the jump itself gives as its position."""
    exact = isinstance(claimed, ast.expr) and not isinstance(claimed, _WIDE)
    if exact and _JUMPS_ARE_EXACT:
        return claimed
    before = at.before
    node = file.node_at(before) if before is not None else None
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        named = file.up[node][0]
        node = named if isinstance(named, ast.NamedExpr) else None
    if node is not None:
        return node
    if isinstance(claimed, ast.BoolOp):
        return claimed.values[0]
    if isinstance(claimed, _COMPREHENSIONS):
        return next((test for part in claimed.generators for test in part.ifs), claimed)
    return getattr(claimed, "test", claimed)


# ---- does the text fit? -------------------------------------------------------------------------------------------


def _fits(node: ast.expr, code: Bytecode) -> bool:
    """Whether every name in the expression is known to the code."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Lambda, *_COMPREHENSIONS)):
            continue  # has names of its own
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if name and name not in code.names and not name.startswith("__"):
            return False
        waiting.extend(ast.iter_child_nodes(part))
    return True


def _by_line(file: SourceFile, code: CodeType, at: _Instruction) -> Asking | str:
    """Without columns: fine if only one test stands on the line."""
    line = line_of(code, at.offset)
    tests = [
        node.test
        for node in file.up
        if isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp))
        and node.test.lineno <= line <= (node.test.end_lineno or 0)
    ]
    if len(tests) != 1 or not _fits(tests[0], at.code):
        return _COLUMNS.format(line, code.co_filename)
    simple = at.jumps and not isinstance(tests[0], (ast.BoolOp, ast.UnaryOp, ast.IfExp))
    return Asking(file, tests[0], () if simple else (OPAQUE,))
