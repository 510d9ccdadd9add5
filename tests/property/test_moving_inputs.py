"""What depends on what, found out by changing inputs, is what the graph says; and random functions are sound."""

from __future__ import annotations

from typing import Any

import pytest

import endoscope
from tests.property.sources import INPUTS, Source, inputs_for, moved_with, source_for


def reached_by(trace: Any, name: str) -> set[str]:
    start = next(op for op in trace.inputs if op.path == name)
    return {op.path.removeprefix("['").removesuffix("']") for op in start.relations.outputs}


def check(source: Source, seed: int, save: str) -> None:
    inputs = inputs_for(seed)
    trace = endoscope.trace(source.run, inputs, save=save)
    assert trace.complete, f"{source.text}\n{trace.warnings}"
    assert trace.conditional is source.asks, source.text
    assert not trace.recurrent, f"{source.text}\n{trace.loops}"
    for name in INPUTS:
        assert reached_by(trace, name) == moved_with(source, inputs, name), f"{name} in\n{source.text}"


@pytest.mark.parametrize("save", ["all", "none"])
@pytest.mark.parametrize("sixty", range(2))
def test_the_graph_says_what_moves(sixty: int, save: str) -> None:
    for seed in range(60 * sixty, 60 * sixty + 60):
        check(source_for(seed), seed, save)


def test_they_are_proved() -> None:
    for seed in range(1000, 1040):
        source = source_for(seed)
        report = endoscope.validate(source.run, inputs_for(seed))
        assert report, f"{source.text}\n{report}"


def test_all_fragments_are_met() -> None:
    texts = "".join(source_for(seed).text for seed in range(200))
    for part in ("as_subclass", "Plain(", "chunk", "empty_like", ".set_(", ".item()", "float(", "vmap", "func.grad"):
        assert part in texts


def test_the_oracle_sees_what_the_graph_must_not_miss() -> None:
    source = source_for(3)
    moved = {name: moved_with(source, inputs_for(3), name) for name in INPUTS}
    assert any(moved.values())
    assert all(len(outputs) <= 3 for outputs in moved.values())
