"""Which values left torch, and which `if`, `while`, … each of them steered; all by number.

departures, operations, calls ─► analysis/branching/branches.py
"""

from __future__ import annotations

from collections import Counter

from endoscope.analysis.branching.branches import Decision, branches
from endoscope.analysis.branching.conditionals import Test
from endoscope.analysis.branching.timeline import Asked, CallSite, Ran
from endoscope.capture.data.functions import SHARING
from endoscope.capture.data.nodes import Departure, slots_of
from endoscope.capture.data.record import Record
from endoscope.capture.views.assemble import Graph
from endoscope.schema.ops import Kind, Notice


def decisions_by_node(record: Record, graph: Graph) -> list[Decision[int]]:
    last = len(record.nodes)
    asked = [
        Asked(
            left.node,
            tuple(record.slot_node[slot] for read in left.reads for slot in slots_of(read)),
            left.value,
            *left.position.place,
            left.name,
            left.call,
            left.callers,
        )
        for left in record.departures
    ]
    made = (Kind.COMPUTED, Kind.GENERATED)
    ran = [Ran(n, *raw.position.place) for n, raw in enumerate(record.nodes) if graph.kinds[n] in made]
    calls = [
        CallSite(call.first_node, last if call.last_node is None else call.last_node, *call.position.place)
        for call in record.calls.entries
    ]
    return branches(asked, ran, graph.parents, graph.to_output, calls)


def conditions_by_node(record: Record, decisions: list[Decision[int]]) -> list[int]:
    """Nodes whose value decided an `if`, `while` or the like, in the order in which they were asked.

    What gives a bool can do nothing else; a number decides if the source says that a test asks for it.
    """
    steering = [(left.node, node) for left in record.departures if left.control for node in _makers(record, left)]
    steering += [(found.node, node) for found in decisions for node in found.steering]
    return list(dict.fromkeys(node for _, node in sorted(steering, key=lambda asked: asked[0])))


def left_for_python(record: Record, graph: Graph, decisions: list[Decision[int]]) -> list[Notice]:
    """Values that may come back unseen: those that depend on an input, and are used for more than a test."""
    only_tested: dict[tuple[int, tuple[int, ...]], bool] = {}
    for found in decisions:
        key, only = (found.node, found.steering), isinstance(found.test, Test) and found.test.nothing_else
        only_tested[key] = only and only_tested.get(key, True)
    times = Counter([(left.node, _makers(record, left)) for left in record.departures])
    notices: dict[Notice, None] = {}
    for left in record.departures:
        makers = _makers(record, left)
        if left.control or (left.name not in SHARING and not any(_depends_on_input(graph, n) for n in makers)):
            continue
        if times[left.node, makers] > 1 or not only_tested.get((left.node, makers), False):
            made = f"a value was converted to Python by {left.name}()"
            message = f"{made}; if the model computes with it, the graph lacks an edge"
            notices[Notice("left", message, left.position.line)] = None
    return list(notices)


def _makers(record: Record, left: Departure) -> tuple[int, ...]:
    return tuple([record.slot_node[slot] for read in left.reads for slot in slots_of(read)])


def _depends_on_input(graph: Graph, node: int) -> bool:
    return bool(graph.from_input[node]) or graph.kinds[node] is Kind.PARAMETER
