"""On random programs the trace, the slow oracle and the proof by replay agree about every edge and value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.property.agreement import complaints
from tests.property.program import build
from tests.property.samples import KINDS_OF_INPUTS, RULES, RULES_WITH_TURNS, inputs_of_kind, program_for

STEP = st.lists(st.integers(0, 999), min_size=8, max_size=8)
SLOWLY = settings(max_examples=250, suppress_health_check=list(HealthCheck))


def agree(program: Any, **how: Any) -> None:
    found = complaints(program, **how)
    assert not found, "\n".join(["", str(program), *found])


@SLOWLY
@given(st.lists(STEP, min_size=3, max_size=20), st.integers(0, KINDS_OF_INPUTS - 1))
def test_small_programs_that_hypothesis_can_shorten(numbers: Sequence[Sequence[int]], kind: int) -> None:
    program = build(numbers, inputs_of_kind(kind), RULES)
    note(str(program))
    agree(program)


@pytest.mark.parametrize("hundred", range(5))
def test_programs_and_their_proof(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        agree(program_for(seed))


def test_structure_alone_has_the_same_edges() -> None:
    for seed in range(1000, 1250):
        agree(program_for(seed), save="none", prove=False)


def test_values_that_are_chosen_one_by_one_are_the_values_at_that_moment() -> None:
    for seed in range(2000, 2250):
        agree(program_for(seed), save=lambda op: True, prove=False)


def test_operations_that_change_only_the_shape_of_a_tensor() -> None:
    for seed in range(3000, 3080):
        agree(program_for(seed, RULES_WITH_TURNS))
