"""Branches whose work is done elsewhere: in functions and modules that they call, and in great number."""

from __future__ import annotations

import time

import pytest

from tests.analysis.decisions_as_text import told
from tests.analysis.small_recorder import Block, Number, listen

# ---- branches that call functions ---------------------------------------------------------------------------------


def deeper(x):
    return x.sin()


def helper(x):
    return deeper(x) * 3


def other(x):
    return x.mean() - 1


def test_functions_called_from_a_branch() -> None:
    def f(x):
        if x > 0:
            x = x + 1
            x = helper(x)
            x = x + 1
        return other(x)

    assert told(f, 1) == ["x > 0: True -> then; gt | add sin mul add"]


def test_functions_at_the_end_of_a_branch_and_after_it() -> None:
    def f(x):
        if x > 0:
            x = helper(x)
        return other(x)

    assert told(f, 1) == ["x > 0: True -> then; gt | sin mul"]


def test_functions_only_after_a_branch() -> None:
    def f(x):
        if x > 0:
            x = x * 2
        return helper(x)

    assert told(f, 1) == ["x > 0: True -> then; gt | mul"]


def test_a_call_that_was_heard_itself_does_not_answer_for_what_follows() -> None:
    def f(x):
        if x > 0:
            x = x.mean()
        g = helper
        return g(x)

    assert told(f, 1) == ["x > 0: True -> then; gt | mean"]


def test_modules_called_from_a_branch_and_after_it() -> None:
    first, second = Block(helper), Block(other)

    def f(x):
        if x > 0:
            x = first(x)
        x = second(x)
        return x

    assert told(f, 1) == ["x > 0: True -> then; gt | sin mul"]


def test_modules_within_themselves() -> None:
    def forward(x, depth):
        if x > 0:
            x = x + 1
            if depth:
                x = block(x, depth - 1)
            x = x * 2
        return x.sin()

    block = Block(forward)
    lines = told(lambda x: block(x, 1), 1)
    assert lines == [
        "x > 0: True -> then; gt | add gt add mul sin mul",
        "x > 0: True -> then; gt | add mul",
    ]


def test_a_module_that_ends_with_the_branch() -> None:
    def forward(x):
        if x > 0:
            x = helper(x)
        return x

    block = Block(forward)

    def f(x):
        return (lambda y: deeper(y))(block(x))

    assert told(f, 1) == ["x > 0: True -> then; gt | sin mul"]


# ---- speed --------------------------------------------------------------------------------------------------------


def step(x: Number, total: Number) -> tuple[Number, Number]:
    x = x + 1
    if x > 3:
        x = x.sin()
    total = total + x
    return x, total


def many(x: Number, total: Number) -> Number:
    for _ in range(3000):
        x, total = step(x, total)
        if total > 1e9:
            break
    return x


@pytest.mark.parametrize("outputs", [True, False])
def test_thousands_of_decisions(outputs: bool) -> None:
    recorder, out = listen(many, 0, 0)
    started = time.process_time()
    found = recorder.decisions(out if outputs else None)
    taken = time.process_time() - started
    assert len(found) == 6000
    assert recorder.named(found[-2].branch_ops) == "sin"
    assert taken < 3  # about 0.4 s where nothing else runs
