"""Numbers that record what is done with them, as the recorder does with tensors: for tests without torch."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from endoscope.analysis.branching.branches import Asked, CallSite, Decision, Ran, branches
from endoscope.analysis.branching.conditionals import Test, Unlocated, locate_all
from endoscope.analysis.branching.syntax import Span
from endoscope.analysis.structure.reach import ascend


class SmallRecorder:
    """Everything that is recorded of one run."""

    def __init__(self) -> None:
        self.ran: list[Ran] = []
        self.names: list[str] = []  # by node
        self.parents: list[tuple[int, ...]] = []
        self.asked: list[Asked] = []
        self.calls: list[CallSite] = []
        self.open: list[int] = [-1]

    def note(self, name: str, value: Any, parents: tuple[Number, ...]) -> Number:
        code, instruction = frames()[0]
        self.ran.append(Ran(len(self.names), code, instruction))
        return self.add(name, value, parents)

    def add(self, name: str, value: Any, parents: tuple[Number, ...] = ()) -> Number:
        self.names.append(name)
        self.parents.append(tuple(p.node for p in parents))
        return Number(self, value, len(self.names) - 1)

    def let_out(self, number: Number, name: str, value: Any) -> Any:
        (code, instruction), *callers = frames()
        self.asked.append(
            Asked(len(self.names), (number.node,), value, code, instruction, name, self.open[-1], tuple(callers))
        )
        return value

    def located(self) -> list[tuple[Test, ...] | Unlocated]:
        return [locate_all(a.code, a.instruction, leaving=a.leaving, callers=a.callers) for a in self.asked]

    def decisions(self, out: Any) -> list[Decision]:
        outputs = [out] if isinstance(out, Number) else [o for o in out or () if isinstance(o, Number)]
        to_output = ascend(self.parents, [o.node for o in outputs])
        return branches(self.asked, self.ran, self.parents, to_output, self.calls)

    def named(self, nodes: tuple[int, ...]) -> str:
        return " ".join(self.names[node] for node in nodes)


class Number:
    """Stands for a tensor."""

    def __init__(self, recorder: SmallRecorder, value: Any, node: int) -> None:
        self.recorder, self.value, self.node = recorder, value, node

    def _do(self, name: str, function: Callable[..., Any], other: Any) -> Number:
        parents = (self, other) if isinstance(other, Number) else (self,)
        return self.recorder.note(name, function(self.value, getattr(other, "value", other)), parents)

    def __add__(self, other: Any) -> Number:
        return self._do("add", lambda a, b: a + b, other)

    def __sub__(self, other: Any) -> Number:
        return self._do("sub", lambda a, b: a - b, other)

    def __mul__(self, other: Any) -> Number:
        return self._do("mul", lambda a, b: a * b, other)

    def __gt__(self, other: Any) -> Number:
        return self._do("gt", lambda a, b: a > b, other)

    def __lt__(self, other: Any) -> Number:
        return self._do("lt", lambda a, b: a < b, other)

    def __eq__(self, other: object) -> Number:  # type: ignore[override]
        return self._do("eq", lambda a, b: a == b, other)

    __hash__ = object.__hash__

    def sin(self) -> Number:
        return self._do("sin", lambda a, _: a, None)

    def mean(self) -> Number:
        return self._do("mean", lambda a, _: a, None)

    def op(self, name: str) -> Number:
        """An operation of this name."""
        return self._do(name, lambda a, _: a, None)

    def ask(self, name: str, answers: Any) -> Number:
        """An operation whose result is the next of the answers."""
        return self._do(name, lambda a, _: next(answers), None)

    def __bool__(self) -> bool:
        return bool(self.recorder.let_out(self, "__bool__", bool(self.value)))

    def item(self) -> Any:
        return self.recorder.let_out(self, "item", self.value)

    def __float__(self) -> float:
        return float(self.recorder.let_out(self, "__float__", float(self.value)))

    def __index__(self) -> int:
        return int(self.recorder.let_out(self, "__index__", int(self.value)))


class Block:
    """Stands for a module: its calls are known with the line that made them."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        self.forward = forward

    def __call__(self, x: Number, *rest: Any) -> Any:
        recorder, number = x.recorder, len(x.recorder.calls)
        code, instruction = frames()[0]
        recorder.calls.append(CallSite(len(recorder.names), 1 << 60, code, instruction))
        recorder.open.append(number)
        out = self.forward(x, *rest)
        recorder.open.pop()
        recorder.calls[number] = recorder.calls[number]._replace(last=len(recorder.names))
        return out


def frames() -> list[tuple[CodeType, int]]:
    """Frames of the user, innermost first."""
    found = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def listen(function: Callable[..., Any], *values: Any) -> tuple[SmallRecorder, Any]:
    """Run a function on numbers."""
    recorder = SmallRecorder()
    return recorder, function(*(recorder.add("input", value) for value in values))


def all_tests_of(function: Callable[..., Any], *values: Any) -> list[Test]:
    """The first test of every value that left; all must be found."""
    found = []
    for located in listen(function, *values)[0].located():
        assert isinstance(located, tuple), located
        found.append(located[0])
    return found


def first_test_of(function: Callable[..., Any], *values: Any) -> Test:
    return all_tests_of(function, *values)[0]


def decisions_of(function: Callable[..., Any], *values: Any) -> list[Decision]:
    recorder, out = listen(function, *values)
    return recorder.decisions(out)


def written(test: Test, name: str) -> str:
    """The text of a branch, as it stands in the file."""
    branch = test.branch(name)
    assert branch is not None, f"no branch {name} in {test.branches}"
    return " | ".join(cut(test.file, span) for span in branch.spans)


def cut(file: str, span: Span) -> str:
    lines = [line.encode() for line in linecache.getlines(file)[span.line - 1 : span.end_line]]
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return " ".join(b"".join(lines).decode().split())


def define(text: str, file: str, *, remembered: bool = True, name: str = "f") -> Callable[..., Any]:
    """Execute text and return a function of it; `remembered` puts the text into linecache, as notebooks do."""
    if remembered:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    return names[name]  # type: ignore[no-any-return]
