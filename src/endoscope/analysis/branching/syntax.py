"""Source text as a tree that can be asked: what stands at this place, and what is around it?

    code object, instruction ─► Span (line and columns, told by the interpreter)
    file name ─► linecache ─► SourceFile (parsed once) ─► the node that stands at the span

Text comes from `linecache`, so cells of a notebook are found like files, and so is code that was executed with
an entry there. Columns count bytes of UTF-8, as they do in `ast` and in code objects.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections import OrderedDict
from types import CodeType
from typing import NamedTuple

#: Comprehensions are written inside a function and run there; some versions of Python give them a code object.
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_FILES_KEPT, _CODES_KEPT = 64, 256


class Span(NamedTuple):
    """A stretch of source text; lines count from 1, columns from 0, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def covers(self, other: Span) -> bool:
        return self[:2] <= other[:2] and other[2:] <= self[2:]

    def __str__(self) -> str:
        return f"{self.line}:{self.column}-{self.end_line}:{self.end_column}"


class CallText(NamedTuple):
    """A call as it is written."""

    name: str  # the last part: `relu` in `torch.relu(x)`, empty if what is called has no name
    span: Span


class SourceFile:
    """One parsed text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.encode().split(b"\n")
        self.up: dict[ast.AST, tuple[ast.AST, str]] = {}  # node -> what it is part of, and as which field
        self._at: dict[Span, ast.AST] = {}  # the innermost node of exactly this span
        self._ends: dict[tuple[int, int], list[ast.expr]] = {}  # calls and attributes by where they end
        self._scopes: set[tuple[int, str]] = set()  # first line and name of every function and class
        self._calls: dict[ast.AST, tuple[CallText, ...]] = {}
        self._index()

    def _index(self) -> None:
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, (ast.expr, ast.stmt, ast.pattern)):
                self._at[span_of(node)] = node  # a parent is met before its children: the innermost stays
                if isinstance(node, (ast.Call, ast.Attribute)):
                    self._ends.setdefault(span_of(node)[2:], []).append(node)
                elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    self._scopes.add((span_of(node).line, node.name))
            for field, value in ast.iter_fields(node):
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST):
                        self.up[child] = (node, field)
                        waiting.append(child)

    def node_at(self, span: Span) -> ast.AST | None:
        node = self._at.get(span)
        if node is None:
            # The interpreter lets a call of a method start at the method's name if that is on a line of its own.
            around = [n for n in self._ends.get(span[2:], ()) if span_of(n).covers(span)]
            node = max(around, key=lambda n: span_of(n)[:2], default=None)
        return node

    def has_scope(self, code: CodeType) -> bool:
        """Whether a function of this name starts on this line; nameless code is believed."""
        return code.co_name.startswith("<") or (code.co_firstlineno, code.co_name) in self._scopes

    def function_around(self, node: ast.AST) -> ast.AST:
        """The innermost function, class or module whose code runs the node; comprehensions do not count."""
        while True:
            if node is self.tree:
                return node
            parent, field = self.up[node]
            if isinstance(parent, _FUNCTIONS) and field == "body":
                return parent
            node = parent

    def calls_in(self, function: ast.AST) -> tuple[CallText, ...]:
        """All calls written in a function, nested functions included."""
        if function not in self._calls:
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            self._calls[function] = tuple(CallText(name_of(node.func), span_of(node)) for node in calls)
        return self._calls[function]

    def shown(self, node: ast.AST) -> str:
        """The node as typed; on one line, whatever it took in the file."""
        span = span_of(node)
        if span.line != span.end_line:
            return ast.unparse(node)
        return self.lines[span.line - 1][span.column : span.end_column].decode(errors="replace")


def span_of(node: ast.AST) -> Span:
    """Where a node stands; decorators belong to what they decorate, a module begins at the top."""
    if isinstance(node, ast.Module):
        return Span(1, 0, node.body[-1].end_lineno or 1, node.body[-1].end_col_offset or 0) if node.body else _START
    line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
    for decorator in getattr(node, "decorator_list", ()):
        line, column = min((line, column), (decorator.lineno, column))
    return Span(line, column, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


_START = Span(1, 0, 1, 0)


def name_of(function: ast.AST) -> str:
    """The last part of a dotted name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def home_of(code: CodeType) -> tuple[str, str]:
    """File and qualified name of the function that a code object is written in, comprehensions left out."""
    return code.co_filename, function_name(code)


@functools.lru_cache(maxsize=4096)
def _without_comprehensions(qualname: str) -> str:
    parts = qualname.split(".")
    while parts and parts[-1] in COMPREHENSIONS:
        parts.pop()
        if parts and parts[-1] == "<locals>":
            parts.pop()
    return ".".join(parts) or "<module>"


def function_name(code: CodeType) -> str:
    return _without_comprehensions(code.co_qualname)


class Bytecode:
    """What one code object says about its instructions."""

    def __init__(self, code: CodeType) -> None:
        self.code = code  # held, so that its id stays its own
        self.raw = code.co_code
        positions = list(code.co_positions())
        self.spans = [as_span(position) for position in positions]
        self.lines = [position[0] for position in positions]
        self.names = frozenset((*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars))

    def span(self, instruction: int) -> Span | None:
        """Where an instruction comes from; None where the interpreter does not know."""
        return self.spans[instruction // 2] if 0 <= instruction // 2 < len(self.spans) else None


_bytecode: OrderedDict[int, Bytecode] = OrderedDict()


def bytecode(code: CodeType) -> Bytecode:
    """Kept for the last code objects. By id, for code of different files can be equal."""
    known = _bytecode.get(id(code))
    if known is None:
        known = _bytecode[id(code)] = Bytecode(code)
        if len(_bytecode) > _CODES_KEPT:
            _bytecode.popitem(last=False)
    return known


def line_of(code: CodeType, instruction: int) -> int:
    lines = bytecode(code).lines
    known = lines[instruction // 2] if 0 <= instruction // 2 < len(lines) else None
    return known or code.co_firstlineno


def as_span(position: tuple[int | None, int | None, int | None, int | None]) -> Span | None:
    line, end_line, column, end_column = position
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return Span(line, column, end_line, end_column)


# ---- parsed texts, kept -------------------------------------------------------------------------------------------

_parsed: OrderedDict[str, tuple[list[str], SourceFile | None]] = OrderedDict()


def open_source(filename: str) -> SourceFile | str:
    """The parsed text of a file, or why there is none."""
    lines = linecache.getlines(filename)
    if not lines:
        return f"source not available: nothing is known of the text of {filename}"
    kept = _parsed.get(filename)
    if kept is None or (kept[0] is not lines and kept[0] != lines):
        try:
            kept = (lines, SourceFile("".join(lines)))
        except (SyntaxError, ValueError, RecursionError):
            kept = (lines, None)
        _parsed[filename] = kept
        if len(_parsed) > _FILES_KEPT:
            _parsed.popitem(last=False)
    return kept[1] or f"source not available: the text of {filename} is not Python that this interpreter reads"


def reread(filename: str) -> bool:
    """Look at the disk again; whether the text is another one now."""
    before = linecache.getlines(filename)
    linecache.checkcache(filename)
    return linecache.getlines(filename) != before
