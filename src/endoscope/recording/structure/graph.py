"""The dependency graph of a recorded step: the graph of its operations, contracted to the recorded tensors.

nodes of a traced step ─► links between operations ─► analysis.contract ─► edges between items ─► plain dict + hash
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from endoscope.analysis.structure.contract import contract_links
from endoscope.capture.data.nodes import slots_of
from endoscope.capture.views.reads import named_reads
from endoscope.recording.structure.tracer import StepRecorder
from endoscope.schema.graph import Use


class Item(NamedTuple):
    """One recorded tensor of a step."""

    node: str
    role: str
    pass_: int
    kind: str
    slot: int  # in the recorder of the traced step that the structure was learned from
    module: str  # address of the module it belongs to
    source: str  # file:line


#: An edge that the user stated: between positions in the list of items.
Links = Iterable[tuple[int, int]]
#: The shape of the tensor of an item, if that is known.
ShapeOf = Callable[[int], tuple[int, ...] | None]


def place_of(recorder: StepRecorder, slot: int) -> str:
    """file:line of the operation that made a tensor."""
    line = recorder.nodes[recorder.slot_node[slot]].position.line
    return "" if line is None else f"{line.file}:{line.line}"


def build_graph(recorder: StepRecorder, items: list[Item], stated: Links, shape_of: ShapeOf) -> dict[str, Any]:
    reads = first_calls(recorder)
    edges = {**edges_between(recorder, items), **{(a, b): [""] for a, b in stated if a != b}}
    nodes = [_describe(recorder, item, shape_of(number), reads) for number, item in enumerate(items)]
    listed = [[a, b, uses] for (a, b), uses in sorted(edges.items())]
    return {"hash": graph_hash(items, edges), "nodes": nodes, "edges": listed}


def graph_hash(items: list[Item], edges: Iterable[tuple[int, int]]) -> str:
    """Equal where the simplified graphs are: names, roles, passes, kinds and edges count; shapes and lines do not."""
    names = [json.dumps([i.node, i.role, i.pass_, i.kind]) for i in items]
    text = "\n".join([*sorted(names), "", *sorted(f"{names[a]}>{names[b]}" for a, b in edges)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def first_calls(recorder: StepRecorder) -> dict[int, int]:
    """Slot -> the module call in which it was first read."""
    calls: dict[int, int] = {}
    for node in recorder.nodes:
        for read in node.reads:
            for slot in slots_of(read):
                calls.setdefault(slot, node.call)
    return calls


def _describe(
    recorder: StepRecorder, item: Item, shape: tuple[int, ...] | None, reads: dict[int, int]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "node": item.node, "role": item.role, "pass": item.pass_, "kind": item.kind,
        "module": item.module, "source": item.source,
    }  # fmt: skip
    described["shape"] = None if shape is None else list(shape)
    is_owned = item.kind in ("parameter", "buffer")
    if item.slot >= 0 and (item.slot in reads or not is_owned):  # what nothing has read has no place
        node = recorder.nodes[recorder.slot_node[item.slot]]
        described["type"] = node.facts.type
        described["modules"] = list(recorder.calls.path(reads[item.slot] if is_owned else node.call))
    return described


def edges_between(recorder: StepRecorder, items: list[Item]) -> dict[tuple[int, int], list[str]]:
    """Places of two items -> the arguments through which the second is computed from the first."""
    by_slot: dict[int, list[int]] = {}  # items on one tensor, in the order in which they were named
    for position, item in enumerate(items):
        if item.slot >= 0:
            by_slot.setdefault(item.slot, []).append(position)
    edges: dict[tuple[int, int], list[str]] = {}
    for positions in by_slot.values():
        for inner, outer in itertools.pairwise(positions):
            edges[inner, outer] = ["0"]
    slots_of_op: dict[int, list[int]] = {}
    for slot in by_slot:
        slots_of_op.setdefault(recorder.slot_node[slot], []).append(slot)
    chosen = sorted(slots_of_op)
    for number, parents in enumerate(contract_links(_links(recorder), chosen)):
        targets = [by_slot[slot][0] for slot in slots_of_op[chosen[number]]]
        for parent, uses in parents:
            for argument, slot in uses:
                # A tensor that an operation overwrote in part was read under another slot of the same operation.
                sources = by_slot.get(slot) or [by_slot[s][-1] for s in slots_of_op[chosen[parent]]]
                for target in targets:
                    known = edges.setdefault((sources[-1], target), [])
                    if argument not in known:
                        known.append(argument)
    return {edge: uses for edge, uses in edges.items() if edge[0] != edge[1]}


def _links(recorder: StepRecorder) -> list[list[tuple[int, tuple[Use, ...]]]]:
    """Per node: its parents, each with the argument that takes it and the slot that is read."""
    links: list[list[tuple[int, tuple[Use, ...]]]] = []
    for number in range(len(recorder.nodes)):
        above: dict[int, list[Use]] = {}
        for read, argument in named_reads(recorder, number):
            for slot in slots_of(read):
                above.setdefault(recorder.slot_node[slot], []).append((argument, slot))
        links.append([(parent, tuple(uses)) for parent, uses in above.items() if parent != number])
    return links
