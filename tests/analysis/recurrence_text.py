"""A recurrence as text: layers with their passes and what differs between these, loops, layers used again."""

from __future__ import annotations

from typing import Any

from endoscope.analysis.recurrence import OpFacts, Recurrence
from endoscope.analysis.recurrence.arguments import differing
from endoscope.analysis.recurrence.naming import Names

SHOWN_VALUES = 3


def found_in(trace: Any) -> tuple[OpFacts, Recurrence, Names]:
    graph = trace.graph_data
    return graph.recurrence.facts, graph.recurrence, graph.names


def recurrence_text(trace: Any) -> str:
    facts, recurrence, names = found_in(trace)
    nodes = trace.recorder.nodes
    calls: list[list[tuple[Any, Any]]] = [[] for _ in names.label]
    for op, layer in enumerate(names.layer):
        calls[layer].append(nodes[facts.nodes[op]][2:4])
    lines = []
    for layer, (label, passes) in enumerate(zip(names.label, names.passes, strict=True)):
        changes = [f"  {name}: {shown(values)}" for name, values in differing(calls[layer]).items()]
        lines.append(f"{label} (x{passes})" + ",".join(changes) if passes > 1 else label)
    return "\n".join([*lines, *loop_lines(recurrence, names)]) + "\n"


def shown(values: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, values[:SHOWN_VALUES])) + (", ..." if len(values) > SHOWN_VALUES else "")


def loop_lines(recurrence: Recurrence, names: Names) -> list[str]:
    lines = []
    depths: list[int] = []
    for loop in recurrence.loops:
        depths.append(0 if loop.parent is None else depths[loop.parent] + 1)
        body = " ".join(names.label[names.layer[op]] for op in loop.body)
        lines.append(f"{'  ' * depths[-1]}loop (x{loop.passes}, {loop.kind}): {body}")
    reused = [names.layer[op] for op, key in enumerate(recurrence.keys) if key in recurrence.reused]
    if reused:
        lines.append("used again: " + " ".join(names.label[layer] for layer in dict.fromkeys(reused)))
    return lines


def modules_text(trace: Any) -> str:
    """For models whose operations change from version to version: modules with parameters, and loops."""
    facts, recurrence, names = found_in(trace)
    lines = []
    for op, node in enumerate(facts.nodes):
        if names.pass_[op] == 1 and not facts.parameters.isdisjoint(facts.parents[node]):
            lines.append(f"{trace.op_at(node).modules[-1]} (x{names.passes[names.layer[op]]})")
    loops = [f"loop (x{loop.passes}, {loop.kind})" for loop in recurrence.loops]
    return "\n".join([*lines, *loops, *["used again"] * bool(recurrence.reused)]) + "\n"
