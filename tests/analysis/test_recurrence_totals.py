"""Running totals are no loops in time; parameters that several layers share."""

from __future__ import annotations

import pytest

from endoscope.analysis.recurrence import find_recurrence
from endoscope.analysis.recurrence.naming import name_layers
from endoscope.analysis.recurrence.tied import tied_parameters
from tests.analysis.recurrence_programs import Program


def loops_and_reused(program: Program) -> tuple[list[int], int]:
    recurrence = find_recurrence(program.facts())
    return [loop.passes for loop in recurrence.loops], len(recurrence.reused)


@pytest.mark.parametrize("function", ["add", "bitwise_and", "cat", "maximum", "addmm"])
def test_parts_that_are_added_up(function: str) -> None:
    program, total = Program(), 0
    for _ in range(4):
        part = program.do("sin", reads=[program.input])
        total = program.do(function, reads=[total, part])
    assert loops_and_reused(program) == ([], 2)


@pytest.mark.parametrize("function", ["tanh", "matmul", "lerp", "div"])
def test_whatever_is_more_than_a_sum_is_a_loop(function: str) -> None:
    program, state = Program(), 0
    for _ in range(4):
        part = program.do("sin", reads=[program.input])
        state = program.do(function, reads=[state, part])
    assert loops_and_reused(program) == ([4], 0)


def test_a_step_that_reads_the_total_is_a_loop() -> None:
    program, state = Program(), 0
    for _ in range(4):
        change = program.do("sin", reads=[state])
        state = program.do("add", reads=[state, change])
    assert loops_and_reused(program) == ([4], 0)


def test_the_same_thing_added_again_and_again_is_a_loop() -> None:
    program = Program()
    other = program.do("exp")
    state = 0
    for _ in range(4):
        state = program.do("add", reads=[state, other])
    assert loops_and_reused(program) == ([4], 0)


def test_a_constant_added_again_and_again_is_a_loop() -> None:
    program = Program()
    for _ in range(4):
        program.do("add")
    assert loops_and_reused(program) == ([4], 0)


def test_a_total_may_be_moved_in_between() -> None:
    program, total = Program(), 0
    for _ in range(3):
        part = program.do("sin", reads=[program.input])
        program.do("to", reads=[total])
        moved = program.do("view")
        total = program.do("add", reads=[moved, part])
    assert loops_and_reused(program) == ([], 4)


def test_moving_is_no_excuse_if_others_read_what_was_moved() -> None:
    program, state = Program(), 0
    for _ in range(3):
        moved = program.do("view", reads=[state])
        change = program.do("sin", reads=[moved])
        state = program.do("add", reads=[moved, change])
    assert loops_and_reused(program) == ([3], 0)


def test_rows_that_are_written() -> None:
    program = Program()
    table = program.do("zeros", reads=[])
    for _ in range(4):
        part = program.do("sin", reads=[program.input])
        table = program.do("setitem", reads=[table, part])
    assert loops_and_reused(program) == ([], 2)


def test_rows_that_are_read_again() -> None:
    program = Program()
    table = program.do("zeros", reads=[])
    for _ in range(4):
        row = program.do("getitem", reads=[table])
        part = program.do("sin", reads=[row])
        table = program.do("setitem", reads=[table, part])
    assert loops_and_reused(program) == ([4], 0)


def test_a_sum_over_uses_of_one_weight() -> None:
    program, total = Program(), 0
    for _ in range(3):
        part = program.do("linear", reads=[program.input], parameters=["weight"])
        total = program.do("add", reads=[total, part])
    assert loops_and_reused(program) == ([], 2)


def test_a_sum_inside_a_loop_in_time() -> None:
    program, state = Program(), 0
    for _ in range(3):
        total = program.do("exp", reads=[state])
        for _ in range(2):
            part = program.do("sin", reads=[state])
            total = program.do("add", reads=[total, part])
        state = program.do("linear", reads=[total], parameters=["weight"])
    loops, reused = loops_and_reused(program)
    assert (loops, reused) == ([3], 0)


# ---- parameters of several layers ------------------------------------------------------------------------------------


def tied(program: Program) -> dict[str, list[str]]:
    """Parameter -> functions that compute with it."""
    facts = program.facts()
    layers = name_layers(facts.types, find_recurrence(facts).keys).layer
    names = {node: name for name, node in program.parameters.items()}
    found = tied_parameters(facts, layers)
    return {names[node]: [facts.types[op] for op in ops] for node, ops in found.items()}


def test_embedding_and_head() -> None:
    program = Program()
    program.do("embedding", parameters=["weight"])
    program.do("linear", parameters=["other"])
    program.do("linear", parameters=["weight"], line="head")
    assert tied(program) == {"weight": ["embedding", "linear"]}


def test_a_transposed_weight_is_the_same_weight() -> None:
    program = Program()
    state = program.do("embedding", parameters=["weight"])
    turned = program.do("t", reads=[], parameters=["weight"])
    program.do("matmul", reads=[state, turned])
    assert tied(program) == {"weight": ["embedding", "matmul"]}


def test_what_is_not_tied() -> None:
    program = Program()
    for _ in range(3):
        program.do("linear", parameters=["again"])  # one layer
    program.do("add", parameters=["position"], line=1)
    program.do("add", parameters=["position"], line=2, modules=("block",))  # handed around
    state = program.last
    for line in range(3):
        part = program.do("getitem", reads=[], parameters=["stack"], line=line)
        state = program.do("matmul", reads=[state, part], line=line)  # parts of a stack
    program.do("pow", reads=[], parameters=["again"])  # a penalty
    assert tied(program) == {}
