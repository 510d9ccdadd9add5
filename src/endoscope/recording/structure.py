"""The dependency graph of a recorded step: the graph of its operations, contracted to the recorded tensors.

    recorder's nodes ─► links between operations ─► analysis.contract ─► edges between items ─► plain dict + hash

Steps of equal structure share one graph: `Structures` recognises them by what was heard, without building anything.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from endoscope.analysis.contract import contract_links
from endoscope.capture.reads import named_reads
from endoscope.capture.records import slots_of
from endoscope.capture.source import source_line
from endoscope.recording.hearing import StepRecorder
from endoscope.schema.graph import Use
from endoscope.schema.recording import Key
from endoscope.stats import Plan


class Item(NamedTuple):
    """One recorded tensor of a step."""

    node: str
    role: str
    pass_: int
    kind: str
    slot: int  # where its value is held
    module: str  # address of the module it belongs to
    source: str  # file:line
    batch_dim: int | None


@dataclass(slots=True)
class Script:
    """Which tensors of a step are measured at its end, and how all of its rows are written."""

    rows: list[tuple[Item, str, int | None, Any]]  # whose it is: value, parameter, …; batch dimension; shape and type
    same: list[int | None]  # for each of these, an earlier one that is the same tensor
    keys: list[Key]  # of all rows, also of those that were measured before the end
    order: list[int] | None  # the row of each key; None if they are in order and every row has its key
    plan: Plan | None = None  # by which they were measured


class Structure(NamedTuple):
    """What all steps of one structure share."""

    items: list[Item]
    graph: dict[str, Any]
    held: Any  # code objects whose identity is part of the key: they must live as long as it does
    scripts: dict[Any, Script]  # of its steps, by what else they may differ in


#: An edge that the user stated: between positions in the list of items.
Links = Iterable[tuple[int, int]]
#: The shape of the value in a slot, if that is known.
ShapeAt = Callable[[int], tuple[int, ...] | None]
MOST_STRUCTURES = 256


class Structures:
    """Remembers the graphs of earlier steps."""

    def __init__(self) -> None:
        self._known: dict[Any, Structure] = {}

    def of(self, recorder: StepRecorder, key: Any, build: Callable[[], tuple[list[Item], dict[str, Any]]]) -> Structure:
        signature = (_signature(recorder), key)
        known = self._known.get(signature)
        if known is None:
            if len(self._known) >= MOST_STRUCTURES:  # a model that never does the same twice
                self._known.pop(next(iter(self._known)))
            known = self._known[signature] = Structure(*build(), [n[10] for n in recorder.nodes], {})
        return known


def _signature(recorder: StepRecorder) -> Any:
    heard = recorder.nodes[recorder.known_before :]
    return tuple([(n[0].type, tuple(n[4]), n[5], id(n[10]), n[11], n[12]) for n in heard]), tuple(
        [(c.module if c.is_function else id(c.module), c.parent) for c in recorder.calls.entries]
    )


def place_of(recorder: StepRecorder, slot: int) -> str:
    """file:line of the operation that made a tensor."""
    node = recorder.nodes[recorder.slot_node[slot]]
    line = source_line(node[10], node[11])
    return "" if line is None else f"{line.file}:{line.line}"


def build_graph(
    recorder: StepRecorder, items: list[Item], stated: Links, shape_at: ShapeAt, reads: dict[int, int]
) -> dict[str, Any]:
    """`reads`: slot -> the module call in which it was first read."""
    edges = {**_edges(recorder, items), **{(a, b): [""] for a, b in stated if a != b}}
    nodes = [_describe(recorder, item, shape_at, reads) for item in items]
    listed = [[a, b, uses] for (a, b), uses in sorted(edges.items())]
    return {"hash": graph_hash(items, edges), "nodes": nodes, "edges": listed}


def graph_hash(items: list[Item], edges: Iterable[tuple[int, int]]) -> str:
    """Equal where the simplified graphs are: names, roles, passes, kinds and edges count; shapes and lines do not."""
    names = [json.dumps([i.node, i.role, i.pass_, i.kind]) for i in items]
    text = "\n".join([*sorted(names), "", *sorted(f"{names[a]}>{names[b]}" for a, b in edges)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _describe(recorder: StepRecorder, item: Item, shape_at: ShapeAt, reads: dict[int, int]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "node": item.node, "role": item.role, "pass": item.pass_, "kind": item.kind,
        "module": item.module, "source": item.source,
    }  # fmt: skip
    if item.slot >= 0:
        node = recorder.nodes[recorder.slot_node[item.slot]]
        described["type"] = node[0].type
        call = reads.get(item.slot, -1) if item.slot < recorder.known_before else node[12]
        described["modules"] = list(recorder.calls.path(call))
        shape = shape_at(item.slot)
        described["shape"] = None if shape is None else list(shape)
    return described


def size_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape; sizes that differ between the samples of a nested tensor are -1."""
    return (int(tensor.size(0)), *[-1] * (tensor.dim() - 1)) if tensor.is_nested else tensor.shape


def _edges(recorder: StepRecorder, items: list[Item]) -> dict[tuple[int, int], list[str]]:
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
