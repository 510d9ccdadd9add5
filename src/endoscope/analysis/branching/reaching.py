"""Which uses of a name see the value that one assignment gave it.

A reading of the text, not a full analysis: an assignment is seen by the uses after it, up to an assignment that
every path to the use must pass, and around a loop by the uses before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from endoscope.analysis.branching.syntax import SourceFile, span_of

Place = tuple[int, int]
_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_WAYS_OUT = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_CONDITIONAL = (
    ast.If, ast.IfExp, *_LOOPS, ast.Try, ast.ExceptHandler, ast.match_case, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_BRANCHES = {"body", "orelse"}


def uses_of(file: SourceFile, name: str, assignment: ast.AST) -> list[ast.Name]:
    """Uses of the name, in order, that may see what the assignment (a statement or `:=`) gave it."""
    function = file.function_around(assignment)
    names = [node for node in _own_nodes(function, name) if isinstance(node, ast.Name) and node.id == name]
    stores = [_Store(file, node) for node in names if not isinstance(node.ctx, ast.Load)]
    mine = next((store for store in stores if store.by is assignment), None)
    if mine is None:
        return []
    others = [store for store in stores if store.by is not assignment]
    loads = [node for node in names if isinstance(node.ctx, ast.Load)]
    loads.sort(key=lambda node: span_of(node)[:2])
    return [use for use in loads if _straight(file, mine, use, others) or _around(file, mine, use, others)]


def _own_nodes(function: ast.AST, name: str) -> Iterator[ast.AST]:
    """Everything in a function where the name means the same: neither other functions nor where it is bound anew."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _OTHER_SCOPES) and not _binds(node, name):
            waiting.extend(ast.iter_child_nodes(node))


def _binds(node: ast.AST, name: str) -> bool:
    """Whether it is a comprehension with a variable of this name."""
    targets = [part.target for part in getattr(node, "generators", ())]
    return any(isinstance(n, ast.Name) and n.id == name for target in targets for n in ast.walk(target))


def surely(file: SourceFile, assignment: ast.AST, use: ast.AST) -> bool:
    """Whether the use is evaluated whenever the assignment is: no condition and no way out lies between."""
    if set(_conditions(file, use)) - set(_conditions(file, assignment)):
        return False
    function = file.function_around(assignment)
    between = sorted((span_of(assignment)[:2], span_of(use)[:2]))
    exits = (node for node in _own_nodes(function, "") if isinstance(node, _WAYS_OUT))
    return not any(between[0] < span_of(node)[:2] < between[1] for node in exits)


def _conditions(file: SourceFile, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every part of a statement or expression around the node that does not always run."""
    while node in file.up:
        parent, field = file.up[node]
        if isinstance(parent, ast.BoolOp):
            if node is not parent.values[0]:
                yield parent, field
        elif isinstance(parent, _CONDITIONAL) and field not in ("test", "iter", "subject", "items"):
            yield parent, field
        node = parent


class _Store:
    """One assignment to the name."""

    def __init__(self, file: SourceFile, target: ast.AST) -> None:
        node = target
        while not isinstance(node, (ast.stmt, ast.NamedExpr, ast.comprehension)):
            node = file.up[node][0]
        self.by = node
        # A statement stores when all of it has been evaluated; a loop stores before its body runs.
        simple = isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr))
        self.time: Place = span_of(node if simple else target)[2:]
        while not isinstance(node, ast.stmt):
            node = file.up[node][0]
        self.block = file.up.get(node)

    def precedes(self, use: ast.AST) -> bool:
        return self.time <= span_of(use)[:2]


def _straight(file: SourceFile, mine: _Store, use: ast.AST, others: list[_Store]) -> bool:
    if not mine.precedes(use) or _exclusive(file, mine.by, use):
        return False
    blocks = set(_blocks(file, use))
    return not any(mine.time < o.time and o.precedes(use) and o.block in blocks for o in others)


def _around(file: SourceFile, mine: _Store, use: ast.AST, others: list[_Store]) -> bool:
    """Whether the value is seen when the innermost common loop comes round."""
    blocks = list(_blocks(file, use))
    loop = next((b for b in _blocks(file, mine.by) if isinstance(b[0], _LOOPS) and b[1] == "body"), None)
    if loop is None or not (loop in blocks or (loop[0], "test") in blocks):
        return False
    inside = [o for o in others if loop in _blocks(file, o.by)]
    overwritten_after = any(o.time > mine.time and o.block == loop for o in inside)
    overwritten_before = any(o.precedes(use) and o.block in blocks for o in inside)
    return not overwritten_after and not overwritten_before


def _blocks(file: SourceFile, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What the node is part of, innermost first: pairs of parent and field."""
    while node in file.up:
        yield file.up[node]
        node = file.up[node][0]


def _exclusive(file: SourceFile, one: ast.AST, other: ast.AST) -> bool:
    """Whether the two stand in branches of which only one runs."""
    mine = dict(_blocks(file, one))
    for parent, field in _blocks(file, other):
        if parent in mine:
            if isinstance(parent, ast.Match):
                return field == mine[parent] == "cases"
            return isinstance(parent, (ast.If, ast.IfExp)) and {field, mine[parent]} == _BRANCHES
    return False
