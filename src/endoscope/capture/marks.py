"""IF where the computation of a test begins, THEN from the value that decided to the branch that ran."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from endoscope.analysis.picture import Edge
from endoscope.analysis.reach import ascend

if TYPE_CHECKING:
    from endoscope.capture.result import Trace

_QUESTIONS = {"while": "WHILE", "for": "FOR", "assert": "ASSERT", "elif": "ELIF", "match": "MATCH"}


@dataclass(frozen=True, slots=True)
class MarkedTest:
    """A decision, by node numbers, with the words that are written on edges."""

    steering: tuple[int, ...]
    computed: frozenset[int]  # what served only the test
    branch: tuple[int, ...]  # what ran because of it
    question: str = "IF"
    answer: str = "THEN"


def tests_of(trace: Trace) -> list[MarkedTest]:
    """What is known about decisions: all of it, or at least which values decided."""
    decisions = getattr(trace, "decisions", None)
    if decisions:
        return [_marked(decision) for decision in decisions]
    return [MarkedTest((op.node,), _only_for(trace, op.node), ()) for op in trace.conditions]


def _marked(decision: Any) -> MarkedTest:
    kind = str(getattr(getattr(decision, "test", None), "kind", "if"))
    branch = str(getattr(decision, "branch", "then"))
    return MarkedTest(
        _nodes(decision.steering),
        frozenset(_nodes(decision.test_ops)),
        _nodes(decision.branch_ops),
        _QUESTIONS.get(kind, "IF"),
        branch.upper(),
    )


def _nodes(ops: Iterable[Any]) -> tuple[int, ...]:
    return tuple(op.node for op in ops)


def _only_for(trace: Trace, condition: int) -> frozenset[int]:
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
    """From the value that decided to the first operation of the branch."""
    known: set[Edge] = set()
    for test in tests:
        branch = [node for node in test.branch if node in drawn]
        if branch and test.steering:
            edge = Edge(test.steering[-1], min(branch), mark=test.answer, control=True)
            if edge not in known:
                known.add(edge)
                yield edge
