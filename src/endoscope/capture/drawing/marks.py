"""IF where the computation of a test begins, THEN from the value that decided to the branch that ran."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

from endoscope.analysis.branching.branches import Decision
from endoscope.analysis.picture import Edge
from endoscope.analysis.structure.reach import ascend
from endoscope.capture.views.op import Op
from endoscope.capture.views.trace_views import TraceViews

_QUESTIONS = {"while": "WHILE", "for": "FOR", "assert": "ASSERT", "elif": "ELIF", "match": "MATCH"}
_ANSWERS = {"body": "DO"}


@dataclass(frozen=True, slots=True)
class MarkedTest:
    """A decision, by node numbers, with the words that are written on edges."""

    steering: tuple[int, ...]
    computed: frozenset[int]  # what served only the test
    branch: tuple[int, ...]  # what ran because of it
    question: str = "IF"
    answer: str = "THEN"
    construct: str = ""  # where the whole statement stands in the source


def tests_of(trace: TraceViews) -> list[MarkedTest]:
    """What is known about decisions: all of it, or at least which values were asked."""
    decisions = trace.decisions
    if decisions:
        return [_marked(decision) for decision in decisions]
    return [MarkedTest((op.node,), _only_for(trace, op.node), ()) for op in trace.conditions]


def _marked(decision: Decision[Op]) -> MarkedTest:
    kind = str(getattr(decision.test, "kind", "if"))  # a test that was not found in the source has none
    own_elif = kind == "elif" and decision.branch.startswith("elif")
    return MarkedTest(
        _nodes(decision.steering),
        frozenset(_nodes(decision.test_ops)),
        _nodes(decision.branch_ops),
        _QUESTIONS.get(kind, "IF"),
        "THEN" if own_elif else _ANSWERS.get(decision.branch, decision.branch.upper()),
        str(getattr(decision.test, "construct", "")),
    )


def _nodes(ops: Iterable[Op]) -> tuple[int, ...]:
    return tuple(op.node for op in ops)


def _only_for(trace: TraceViews, condition: int) -> frozenset[int]:
    """The condition, and what was computed for nothing else."""
    graph = trace.graph_data
    above = ascend(graph.parents, [condition])
    made = [*graph.ops, *graph.orphans]
    return frozenset(node for node in made if above[node] and not graph.to_output[node])


def mark_tests(edges: Iterable[Edge], tests: Iterable[MarkedTest]) -> Iterator[Edge]:
    """The same edges; those that lead into the computation of a test carry its word."""
    question: dict[int, str] = {}
    for test in tests:
        question.update(dict.fromkeys(test.computed, test.question))
    for edge in edges:
        begins = edge.target in question and edge.source not in question
        yield replace(edge, mark=question[edge.target]) if begins else edge


def branch_edges(tests: Iterable[MarkedTest], drawn: Container[int]) -> Iterator[Edge]:
    """From the value that decided to the first operation of the branch.

    Of several values that lead to one branch (`a and b`, `elif`) the last one decided.
    """
    arrows: dict[tuple[str, int], Edge] = {}
    for test in tests:
        branch = [node for node in test.branch if node in drawn]
        if branch and test.steering:
            arrows[test.construct, min(branch)] = Edge(test.steering[-1], min(branch), mark=test.answer, control=True)
    yield from dict.fromkeys(arrows.values())
