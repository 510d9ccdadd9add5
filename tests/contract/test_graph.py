"""The graph as a whole: orphans kept apart, edges in both directions, order, and the user's source line."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import computed, identical, only, types
from tests.models import AttentionBlock, OrganizedNetwork

X = torch.arange(1.0, 7.0).reshape(2, 3)


def test_orphans_are_kept_apart() -> None:
    def target(x: Tensor) -> Tensor:
        unused = torch.ones(2)
        unused.cosh()
        return x.exp()

    trace = endoscope.trace(target, X)
    assert types(computed(trace)) == ["exp"]
    assert types(trace.orphans) == ["ones", "cosh"]
    assert trace.complete is True
    assert all(identical(trace[op.label].value, op.value) for op in trace.orphans)


def test_what_comes_from_the_input_is_no_orphan_though_it_leads_nowhere() -> None:
    def target(x: Tensor) -> Tensor:
        x.cosh()
        return x.exp()

    trace = endoscope.trace(target, X)
    assert types(computed(trace)) == ["cosh", "exp"]
    assert not trace.orphans


def test_what_reaches_an_output_is_no_orphan_though_no_input_feeds_it() -> None:
    trace = endoscope.trace(lambda x: (x.exp(), torch.ones(2).cosh()), X)
    assert types(computed(trace)) == ["exp", "ones", "cosh"]
    assert not trace.orphans


def test_parents_and_children_mirror_each_other() -> None:
    trace = endoscope.trace(AttentionBlock(), torch.randn(2, 3, 8))
    nodes = [*trace.ops, *trace.parameters, *trace.buffers, *trace.constants, *trace.orphans]
    downward = {(parent.label, op.label) for op in nodes for parent in op.parents}
    upward = {(op.label, child.label) for op in nodes for child in op.children}
    assert downward == upward
    assert len(downward) > 10
    assert all(isinstance(op.parents, tuple) and isinstance(op.children, tuple) for op in nodes)


def test_parents_come_before_their_children() -> None:
    trace = endoscope.trace(OrganizedNetwork(), torch.rand(5, 5))
    place = {op.label: position for position, op in enumerate(trace.ops)}
    assert all(place[parent.label] < place[op.label] for op in trace.ops for parent in op.parents)
    assert len(place) == len(trace)


def test_the_users_source_line() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        layer_result: Tensor = layer(y)
        return F.gumbel_softmax(layer_result, dim=-1)

    layer = nn.Linear(3, 3)
    trace = endoscope.trace(target, X)
    first = target.__code__.co_firstlineno
    assert only(trace, "mul").source.line == first + 1
    assert only(trace, "linear").source.line == first + 2
    assert {op.source.line for op in trace.ops if op.type in ("softmax", "log")} == {first + 3}
    assert all(op.source.file.endswith("test_graph.py") for op in computed(trace))
    assert all(op.source.function.endswith("target") for op in computed(trace))
