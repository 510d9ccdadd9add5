"""Which expression was asked for its truth, or let a value out: from one instruction to one node of the source.

The instruction that asks is a jump, a `not`, a comparison or a call. The interpreter tells the columns of every
instruction; for jumps some versions tell only the statement, and then the instruction before it, which made the
value, tells the rest.
"""

from __future__ import annotations

import ast
import dis
from dataclasses import dataclass
from types import CodeType

from endoscope.analysis.steering import OPAQUE, Step
from endoscope.analysis.syntax import SourceFile, name_of, place

CHANGED = "source changed: the text of {} is not the one that the running code was made from"
_COLUMNS = "source position not known: this code carries no columns, and line {} of {} has no single test"

_BETWEEN = frozenset("CACHE NOP EXTENDED_ARG COPY SWAP TO_BOOL PRECALL COPY_FREE_VARS NOT_TAKEN".split())
_COMPARES = frozenset("COMPARE_OP CONTAINS_OP IS_OP".split())
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
    span = place(code, instruction)
    jumps = _asks(code, instruction)
    if not file.has_scope(code):
        return CHANGED.format(code.co_filename)
    if span is None:
        return _by_line(file, code, instruction, jumps)
    node = file.node_at(span)
    if node is None:
        return CHANGED.format(code.co_filename)
    if jumps:
        node = _narrow(file, code, instruction, node)
    if isinstance(
        node, (ast.If, ast.While, ast.Assert)
    ):  # rewritten code: all of it claims to be the statement
        node, jumps = node.test, True
        if isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.IfExp)):
            return Asking(file, node, (OPAQUE,))
    if not isinstance(node, ast.expr):
        return f"its value is asked by {type(node).__name__.lower()}, which is no test"
    if not _fits(node, code):
        return CHANGED.format(code.co_filename)
    return _asking(file, node, code, instruction, leaving)


def _asking(file: SourceFile, node: ast.expr, code: CodeType, instruction: int, leaving: str) -> Asking | str:
    opname = _opname(code, instruction)
    if opname.startswith("CALL"):
        return _asking_call(file, node, leaving)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Asking(file, node.operand)
    if isinstance(node, ast.Compare):
        if opname == "CONTAINS_OP":
            negated = (Step("not"),) if isinstance(node.ops[-1], ast.NotIn) else ()
            route = negated if leaving == "__contains__" else (Step("or", last=False), *negated)
            return Asking(file, node, route)
        if opname == "COMPARE_OP" and not _asks(code, instruction):
            return Asking(file, node, (OPAQUE,))  # containers compare their items
        return Asking(file, node, operand=_comparison(code, instruction, len(node.ops)))
    return Asking(file, node, () if leaving in ("__bool__", "") or _asks(code, instruction) else (OPAQUE,))


def _asking_call(file: SourceFile, node: ast.expr, leaving: str) -> Asking | str:
    name = name_of(node.func) if isinstance(node, ast.Call) else ""
    if name == leaving or (name in _TRUTH and leaving == "__bool__"):
        return Asking(file, node, (Step("not"),) if name == "not_" else ())
    if not leaving:
        return Asking(file, node, (OPAQUE,) if name in _FROM_C or name in _ONE_BY_ONE else ())
    if leaving == "__bool__" and name in _ONE_BY_ONE:
        return Asking(file, node, (Step(_ONE_BY_ONE[name], last=False),))
    if leaving.startswith("__") and leaving not in ("__bool__", "__contains__"):
        return Asking(file, node, () if name in ("int", "float") else (OPAQUE,))
    what = file.shown(node.func) if isinstance(node, ast.Call) else file.shown(node)
    return f"its value is used inside {what}(), of which no source line of yours is known"


# ---- which expression ---------------------------------------------------------------------------------------------


def _narrow(file: SourceFile, code: CodeType, instruction: int, wide: ast.AST) -> ast.AST:
    """The tested expression within what a jump claims as its position."""
    if (
        isinstance(wide, ast.expr)
        and not isinstance(wide, _WIDE)
        and not isinstance(file.up[wide][0], ast.pattern)
    ):
        return wide
    before = place(code, _before(code, instruction))
    node = file.node_at(before) if before is not None else None
    if isinstance(node, ast.Name) and isinstance(file.up[node][0], ast.NamedExpr):
        node = file.up[node][0]
    if node is not None and _is_inside(file, node, wide):
        return node
    if isinstance(wide, ast.BoolOp):
        return wide.values[0]
    if isinstance(wide, _COMPREHENSIONS):
        return next((test for part in wide.generators for test in part.ifs), wide)
    return getattr(wide, "test", wide)


def _is_inside(file: SourceFile, node: ast.AST, wide: ast.AST) -> bool:
    """Guards stand beside the pattern that the jump points at, everything else inside."""
    if isinstance(wide, ast.pattern) or isinstance(file.up[wide][0], ast.pattern):
        return True
    while node is not wide and node in file.up:
        node = file.up[node][0]
    return node is wide


def _before(code: CodeType, instruction: int) -> int:
    raw = code.co_code
    at = instruction - 2
    while at >= 0 and dis.opname[raw[at]] in _BETWEEN:
        at -= 2
    return at


def _opname(code: CodeType, instruction: int) -> str:
    raw = code.co_code
    while instruction > 0 and dis.opname[raw[instruction]] == "CACHE":
        instruction -= 2  # a frame that waits for a call may stand behind the call's own instruction
    return dis.opname[raw[instruction]] if 0 <= instruction < len(raw) else ""


def _asks(code: CodeType, instruction: int) -> bool:
    """Whether this instruction asks the value on the stack for its truth."""
    opname = _opname(code, instruction)
    if opname == "COMPARE_OP":
        return "TO_BOOL" in dis.opmap and bool(code.co_code[instruction + 1] & _TO_BOOL_FLAG)
    return "JUMP" in opname or opname == "TO_BOOL"


def _comparison(code: CodeType, instruction: int, count: int) -> int:
    """Which comparison of a chain: they stand one after the other in the code, maybe several times."""
    if count == 1:
        return -1
    mine = place(code, instruction)
    raw = code.co_code
    spots = [at for at in range(0, instruction + 1, 2) if dis.opname[raw[at]] in _COMPARES]
    return (sum(place(code, at) == mine for at in spots) - 1) % count


# ---- does the text fit? -------------------------------------------------------------------------------------------


def _fits(node: ast.expr, code: CodeType) -> bool:
    """Whether every name in the expression is known to the code."""
    known = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Lambda, *_COMPREHENSIONS)):
            continue  # has names of its own
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if name and name not in known and not name.startswith("__"):
            return False
        waiting.extend(ast.iter_child_nodes(part))
    return True


def _by_line(file: SourceFile, code: CodeType, instruction: int, jumps: bool) -> Asking | str:
    """Without columns: fine if only one test stands on the line."""
    line = next((n for start, stop, n in code.co_lines() if start <= instruction < stop and n), 0)
    tests = [
        node.test
        for node in file.up
        if isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp))
        and node.test.lineno <= line <= (node.test.end_lineno or 0)
    ]
    if len(tests) != 1 or not _fits(tests[0], code):
        return _COLUMNS.format(line, code.co_filename)
    simple = jumps and not isinstance(tests[0], (ast.BoolOp, ast.UnaryOp, ast.IfExp))
    return Asking(file, tests[0], () if simple else (OPAQUE,))
