"""Random programs, against a slow twin that runs their outline and knows which operation belongs to which branch."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from endoscope.analysis.branching.conditionals import NOTHING
from tests.analysis.small_recorder import Block, SmallRecorder, define

# An outline is a list of tuples: ("op", name), ("if", tests, bodies) with one body more than tests if there is
# an else, ("while", test, body), ("call", name, body), ("module", name, body), ("return", test, body).
Outline = list[tuple[Any, ...]]
KINDS = ["op"] * 4 + ["if"] * 3 + ["while", "call", "module", "return"]


class Author:
    """Writes outlines, and programs from them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = itertools.count()
        self.functions: list[str] = []

    def outline(self, depth: int) -> Outline:
        # What a function does first is recorded in it, so that nobody takes it for the function that called it.
        return [("op", self.name("op"))] + [self.statement(depth) for _ in range(self.random.randint(0, 3))]

    def name(self, kind: str) -> str:
        return f"{kind}{next(self.number)}"

    def statement(self, depth: int) -> tuple[Any, ...]:
        kind = self.random.choice(KINDS) if depth else "op"
        if kind == "op":
            return "op", self.name("op")
        if kind == "if":
            tests = [self.name("test") for _ in range(self.random.choice([1, 1, 2, 3]))]
            bodies = len(tests) + self.random.randint(0, 1)
            return "if", tests, [self.outline(depth - 1) for _ in range(bodies)]
        return kind, self.name("test" if kind in ("while", "return") else kind), self.outline(depth - 1)

    def text(self, outline: Outline, indent: str = "    ") -> str:
        return "".join(self.lines(statement, indent) for statement in outline)

    def lines(self, statement: tuple[Any, ...], indent: str) -> str:
        kind, name, *rest = statement
        inner = indent + "    "
        if kind == "op":
            return f"{indent}x = x.op('{name}')\n"
        if kind == "if":
            words = ["if"] + ["elif"] * (len(name) - 1)
            parts = [f"{indent}{word} {self.asks(test)}:\n" for word, test in zip(words, name, strict=True)]
            parts += [f"{indent}else:\n"] * (len(rest[0]) - len(name))
            return "".join(p + self.text(b, inner) for p, b in zip(parts, rest[0], strict=True))
        if kind == "while":
            return f"{indent}while {self.asks(name)}:\n" + self.text(rest[0], inner)
        if kind == "return":
            return f"{indent}if {self.asks(name)}:\n{self.text(rest[0], inner)}{inner}return x\n"
        body = f"def {name}_body(x):\n{self.text(rest[0])}    return x\n"
        made = f"{name} = Block({name}_body)\n" if kind == "module" else f"{name} = {name}_body\n"
        self.functions.append(body.replace("_body", "") if kind == "call" else body + made)
        return f"{indent}x = {name}(x)\n"

    def asks(self, test: str) -> str:
        return self.random.choice(["x.ask('{}', answers)", "(x.ask('{}', answers))"]).format(test)


class Twin:
    """Runs an outline and writes down what should be found."""

    def __init__(self, answers: Iterator[bool]) -> None:
        self.answers = answers
        self.recorded: list[str] = []
        self.found: list[tuple[str, str, tuple[int, ...]]] = []  # test, branch, numbers of its operations

    def function(self, outline: Outline) -> None:
        self.block(outline)

    def block(self, outline: Outline) -> bool:
        """Whether the function returned."""
        for kind, name, *rest in outline:
            if kind == "op":
                self.recorded.append(name)
            elif kind == "if":
                if self.chain(name, rest[0]):
                    return True
            elif kind == "while":
                while self.ask(name):
                    if self.branch([name], "body", rest[0]):
                        return True
                self.found.append((name, NOTHING, ()))
            elif kind == "return":
                if self.ask(name):
                    self.branch([name], "then", rest[0])
                    return True
                self.found.append((name, NOTHING, ()))
            else:
                self.block(rest[0])
        return False

    def ask(self, test: str) -> bool:
        self.recorded.append(test)
        return next(self.answers)

    def chain(self, tests: list[str], bodies: list[Outline]) -> bool:
        for number, test in enumerate(tests):
            if self.ask(test):
                return self.branch(tests[: number + 1], f"elif {number}" if number else "then", bodies[number])
        if len(bodies) > len(tests):
            return self.branch(tests, "else", bodies[-1])
        self.found += [(test, NOTHING, ()) for test in tests]
        return False

    def branch(self, tests: list[str], name: str, body: Outline) -> bool:
        begin = len(self.recorded)
        slots = [len(self.found) + i for i in range(len(tests))]
        self.found += [("", "", ())] * len(tests)
        returned = self.block(body)
        for slot, test in zip(slots, tests, strict=True):
            self.found[slot] = (test, name, tuple(range(begin, len(self.recorded))))
        return returned


def answers(seed: int) -> Iterator[bool]:
    draw = random.Random(seed + 1)
    # After a while all say no, so that loops end.
    return itertools.chain((draw.random() < 0.6 for _ in range(40)), itertools.repeat(False))


@pytest.mark.parametrize("seed", range(150))
def test_every_branch_and_its_operations(seed: int) -> None:
    author = Author(seed)
    outline = author.outline(depth=3)
    body = f"def f(x, answers):\n{author.text(outline)}    return x\n"
    # Functions come before those that call them, and see the answers as a global name.
    text = "".join(author.functions) + body.replace("def f(x, answers)", "def f(x)")
    file = f"<program {seed}>"
    program = define("from tests.analysis.small_recorder import Block\n" + text, file)
    program.__globals__["answers"] = answers(seed)
    recorder = SmallRecorder()
    x = recorder.add("input", 0)
    out = Block(program)(x)
    twin = Twin(answers(seed))
    twin.function(outline)
    assert recorder.names[1:] == twin.recorded
    found = [
        (recorder.names[d.steering[0]], d.branch, tuple(node - 1 for node in d.branch_ops))
        for d in recorder.decisions(out)
    ]
    assert found == twin.found, text
